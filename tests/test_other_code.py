"""The crosswalk: its names exist, its facts hold; masks do as they say."""

import pytest
import torch
import torch.nn.functional as F
import transformers
from reference import EXACT, draw_parameters
from torch import nn

from transformer_book.other_code.crosswalk import (
    DIALECTS,
    WEIGHTS,
    find_parts,
    find_rows,
    is_found,
    look_up,
    read_rows,
    to_markdown,
)
from transformer_book.other_code.dialects import convert_mask
from transformer_lib import causal_mask

SRC = torch.tensor([[3, 5, 12, 7, 2], [4, 4, 2, 0, 0]])
TGT_IN = torch.tensor([[1, 3, 10, 4], [1, 9, 6, 0]])


@pytest.fixture(scope="module")
def marian():
    sizes = {"d_model": 16, "vocab_size": 13, "encoder_layers": 2, "decoder_layers": 2}
    ids = {"pad_token_id": 0, "decoder_start_token_id": 1}
    torch.manual_seed(0)
    return transformers.MarianMTModel(transformers.MarianConfig(**sizes, **ids)).eval()


# Rows


def test_every_row_has_names_in_two_dialects_and_a_term_of_its_own() -> None:
    rows = read_rows()
    assert {row.topic for row in rows} > {"Masks", "Calls", WEIGHTS}
    for row in rows:
        assert set(row.names) <= set(DIALECTS)
        assert len(row.names) >= 2, row.term
    assert len({(row.topic, row.term) for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("word", "term"),
    [
        ("key_padding_mask", "multi-head attention"),
        ("prev_output_tokens", "target the decoder reads"),
        ("in_proj_weight", "encoder self-attention, query projection"),
        ("enc_layers.N.layernorm2", "encoder norm of feed-forward"),
    ],
)
def test_a_word_is_found_in_every_dialect(word, term) -> None:
    assert term in [row.term for row in find_rows(word.upper())]
    assert find_rows(word[:-1]) == []  # whole words only


def test_tables_show_names_facts_and_gaps() -> None:
    (row,) = (row for row in read_rows() if row.term == "scores before the softmax")
    assert to_markdown([row]).splitlines() == [
        "**Inputs and outputs**",
        "",
        "|  | paper | transformer_lib | fairseq | lecture | post |",
        "| --- | --- | --- | --- | --- | --- |",
        "| scores before the softmax | $QK^\\top/\\sqrt{d_k}$ | `scores` "
        "| `attn_weights` | `scores` | `energy` |",
    ]
    tables = to_markdown(read_rows())
    assert "| – |" in tables
    assert "`MultiHeadAttention.forward`: returns (H, A)" in tables


# Names


def test_every_name_of_hugging_face_exists(marian) -> None:
    """Chapter 16 looks up those of the library, of PyTorch and of the texts."""
    configs = (getattr(transformers, f"{n}Config") for n in ("Marian", "Bart", "Bert"))
    found, rest = look_up({"Hugging Face": find_parts(marian, *configs)})[
        "Hugging Face"
    ]
    assert len(found) > 25
    assert not rest


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nn.Transformer(heads)", "no 'heads' in this place of .'d_model"),
        ("nn.Transformer(nhead=6)", "no 'nhead=6' in this place of .*'nhead=8'"),
        ("nn.Transformer.forward(tgt, src)", "no 'src'"),
        ("F.scaled_dot_product_attention(key, query)", "no 'query'"),
    ],
)
def test_a_wrong_name_is_refused(name, message) -> None:
    with pytest.raises(LookupError, match=message):
        is_found(name, {"nn": nn, "F": F})
    assert not is_found("$d_k$", {"nn": nn})


# Facts


# What True means is shown where the library is compared with the others, mask by mask:
# nn.Transformer in test_model.py, nn.MultiheadAttention and PyTorch's function in
# test_attention.py, Hugging Face's models, which mask the future themselves, in
# test_interop.py. The library's own axes, and after which layers it records, are shown
# in test_interpret.py.


def test_pytorchs_mask_of_the_future_is_added() -> None:
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    assert torch.equal(mask == 0, causal_mask(3))
    assert torch.equal(mask == -torch.inf, ~causal_mask(3))


def test_pytorch_has_the_length_first_by_default_and_takes_vectors() -> None:
    model = draw_parameters(nn.Transformer(6, 2, 1, 1, 10)).eval()
    src, tgt = torch.randn(3, 2, 6).double(), torch.randn(5, 2, 6).double()
    alone = model(src[:, :1], tgt[:, :1])  # one sentence: the second axis
    torch.testing.assert_close(model(src, tgt)[:, :1], alone, **EXACT)
    with pytest.raises(RuntimeError):
        model(torch.tensor([[1, 2]]), torch.tensor([[1, 2]]))


@torch.no_grad()
def test_hugging_face_counts_the_embeddings_and_has_a_map_for_each_head(marian) -> None:
    marian.set_attn_implementation("eager")
    how = {"output_hidden_states": True, "output_attentions": True}
    found = marian(input_ids=SRC, decoder_input_ids=TGT_IN, **how)
    assert len(found.encoder_hidden_states) == 1 + 2
    assert found.encoder_attentions[0].shape == (2, 16, 5, 5)
    assert found.encoder_last_hidden_state.shape == (2, 5, 16)  # batch first


SHOWN_HERE = {  # dialect -> facts: all that these tests have shown
    "torch.nn": {
        "True = attend", "True = ignore", "0 = attend, -inf = ignore",
        "vectors, not ids", "(length, batch, d_model) by default",
    },
    "transformer_lib": {
        "True = attend", "(batch, length, d_model)", "after each layer",
        "one map for each head",
    },
    "Hugging Face": {
        "1 = attend", "made by the decoder itself", "the embeddings too",
        "one map for each head", "(batch, length, d_model)",
    },
}  # fmt: skip


@pytest.mark.parametrize("dialect", SHOWN_HERE)
def test_every_fact_about_what_can_be_imported_is_shown(dialect) -> None:
    names = [name for row in read_rows() for name in row.names.get(dialect, [])]
    facts = {name.partition(" | ")[2] for name in names} - {""}
    assert facts == SHOWN_HERE[dialect]


def test_a_finite_fill_value_counts_as_hidden_and_a_result_is_infinite() -> None:
    attend = torch.tensor([[True, False, True], [True, True, False]])
    additive = torch.zeros(2, 3).masked_fill(~attend, -1e4)
    assert torch.equal(convert_mask(additive, "additive", "attend"), attend)
    half = convert_mask(attend, "attend", "additive", dtype=torch.float16)
    assert half.dtype == torch.float16
    assert half.isneginf().sum() == 2
