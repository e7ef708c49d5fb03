"""The cross-walk: its rows are read right, its names exist, its facts hold."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from reference import EXACT, draw_parameters
from torch import nn

from transformer_lib.convert import crosswalk
from transformer_lib.convert import names as crosswalk_names
from transformer_lib.convert.crosswalk import (
    DIALECTS,
    WEIGHTS,
    convert_weights,
    read_rows,
)
from transformer_lib.convert.lookup import (
    check_name,
    find_parts,
    look_up,
    own_things,
)
from transformer_lib.interpret.recording import record_attention, record_hidden_states
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.transformer import Transformer

CONFIG = TransformerConfig(
    src_vocab_size=13,
    tgt_vocab_size=11,
    d_model=6,
    n_heads=2,
    d_ff=10,
    n_encoder_layers=2,
    n_decoder_layers=3,
    max_len=9,
    norm_first=True,
    tie_embeddings="none",
)
SRC = torch.tensor([[3, 5, 12, 7, 2], [4, 4, 2, 0, 0]])
TGT_IN = torch.tensor([[1, 3, 10, 4], [1, 9, 6, 0]])


@pytest.fixture(scope="module")
def marian():
    import transformers

    options = transformers.MarianConfig(
        d_model=16,
        vocab_size=13,
        pad_token_id=0,
        decoder_start_token_id=1,
        encoder_layers=2,
        decoder_layers=2,
    )
    torch.manual_seed(0)
    return transformers.MarianMTModel(options).eval()


# Rows


def test_every_row_has_a_term_and_names_in_two_dialects() -> None:
    rows = read_rows()
    assert {row.topic for row in rows} > {"Masks", "Calls", WEIGHTS}
    for row in rows:
        assert row.term
        assert set(row.names) <= set(DIALECTS)
        assert len(row.names) >= 2, row.term
    assert len({(row.topic, row.term) for row in rows}) == len(rows)


def test_a_row_reads_names_and_facts(monkeypatch) -> None:
    text = "Topic\n  a thing\n    post: f(x) | a fact; g\n    paper: $y$\n"
    monkeypatch.setattr(crosswalk, "NAMES", text)
    row = read_rows()[0]
    assert (row.topic, row.term) == ("Topic", "a thing")
    assert [(n.text, n.fact) for n in row.names["post"]] == [
        ("f(x)", "a fact"),
        ("g", ""),
    ]
    assert crosswalk.to_markdown([row]).splitlines() == [
        "**Topic**",
        "",
        "|  | paper | post |",
        "| --- | --- | --- |",
        "| a thing | $y$ | `f(x)`: a fact; `g` |",
    ]


def test_a_cell_without_a_name_has_a_dash(monkeypatch) -> None:
    text = "Topic\n  one\n    paper: $x$\n    post: f\n  two\n    post: g\n"
    monkeypatch.setattr(crosswalk, "NAMES", text)
    *_, last = crosswalk.to_markdown(read_rows()[:2]).splitlines()
    assert last == "| two | – | `g` |"


def test_an_unknown_dialect_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(crosswalk, "NAMES", "Topic\n  a thing\n    latin: f\n")
    with pytest.raises(ValueError, match="a thing: 'latin' is none of"):
        read_rows()


@pytest.mark.parametrize(
    ("word", "term"),
    [
        ("key_padding_mask", "multi-head attention"),
        ("encoder_padding_mask", "mask of source padding"),
        ("MarianMTModel", "whole model"),
        ("prev_output_tokens", "target the decoder reads"),
        ("in_proj_weight", "encoder self-attention, query projection"),
        ("a_2", "encoder norm of self-attention"),
        ("encoder.tok_embed.weight", "source embedding"),
        ("decoder.tok_embed.weight", "target embedding"),
        ("W_k", "encoder self-attention, key projection"),
        ("W_v", "encoder self-attention, value projection"),
        ("W_h", "encoder self-attention, output projection"),
        ("enc_attn.fc_q", "decoder cross-attention, query projection"),
        ("cnn.2", "encoder feed-forward, $W_2$ and $b_2$"),
        ("enc_attn_ln", "decoder norm of cross-attention"),
        ("enc_layers.N.layernorm2", "encoder norm of feed-forward"),
    ],
)
def test_a_word_is_found_in_every_dialect(word, term) -> None:
    assert term in [row.term for row in crosswalk.find(word.upper())]
    assert crosswalk.find(word[:-1]) == []  # whole words only


def test_tables_have_as_many_cells_in_each_row_as_in_their_head() -> None:
    for table in crosswalk.to_markdown(read_rows()).split("\n\n**"):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        assert len(lines) > 2
        assert len({line.count("|") for line in lines}) == 1


# Names


def test_every_name_of_the_library_exists() -> None:
    found, rest = look_up({"transformer_lib": own_things()})["transformer_lib"]
    assert len(found) > 25
    assert set(rest) == {"tgt_out", "scores", "alignment"}


def test_every_name_of_pytorch_exists() -> None:
    things = {"nn": nn, "F": F, "nn.MultiheadAttention": nn.MultiheadAttention(4, 1)}
    found, rest = look_up({"torch.nn": things})["torch.nn"]
    assert len(found) > 25
    assert rest == []


def test_every_name_of_hugging_face_exists(marian) -> None:
    import transformers

    configs = (getattr(transformers, f"{n}Config") for n in ("Marian", "Bert", "Bart"))
    things = find_parts(marian, *configs)
    found, rest = look_up({"Hugging Face": things})["Hugging Face"]
    assert len(found) > 25
    assert rest == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nn.Transformer(heads)", "no parameter 'heads'"),
        ("nn.Transformer(nhead=6)", "default of nhead is 8"),
        ("nn.Transformer.forward(tgt, src)", "the order is"),
        ("nn.Transformer.lm_head", "has no 'lm_head'"),
        ("F.scaled_dot_product_attention(key, query)", "the order is"),
        (
            "F.scaled_dot_product_attention(dropout_p=0.5)",
            "default of dropout_p is 0.0",
        ),
    ],
)
def test_a_wrong_name_is_refused(name, message) -> None:
    with pytest.raises(LookupError, match=message):
        check_name(name, {"nn": nn, "F": F})


def test_what_names_no_object_is_told_apart() -> None:
    assert not check_name("$d_k$", {"nn": nn})
    assert not check_name("nnn.Linear", {"nn": nn})
    assert check_name("F.softmax(dim=None)", {"F": F})


# Weights


def make_torch_model() -> nn.Transformer:
    """Pre-norm, without the warning that nested tensors are not used then."""
    layer = nn.TransformerEncoderLayer(6, 2, 10, norm_first=True)
    norm = nn.LayerNorm(6)
    encoder = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False)
    sizes = {"dim_feedforward": 10, "custom_encoder": encoder}
    return draw_parameters(nn.Transformer(6, 2, 2, 3, **sizes, norm_first=True))


def test_pytorchs_weights_go_there_and_back() -> None:
    state = make_torch_model().state_dict()
    ours = convert_weights(state, "torch.nn", "transformer_lib")
    layers = {key for key in Transformer(CONFIG).state_dict() if "coder" in key}
    assert set(ours) == layers
    back = convert_weights(ours, "transformer_lib", "torch.nn")
    assert set(back) == set(state)
    for key, tensor in state.items():
        assert torch.equal(back[key], tensor), key


def test_a_key_without_another_name_is_left_out_or_refused() -> None:
    state = {"decoder.fc.bias": torch.ones(3), "decoder.extra.weight": torch.ones(2)}
    places = ("post", "transformer_lib")
    assert list(convert_weights(state, *places)) == ["lm_head.bias"]
    with pytest.raises(ValueError, match="^decoder.extra.weight of post have no name"):
        convert_weights(state, *places, strict=True)
    del state["decoder.extra.weight"]
    assert list(convert_weights(state, *places, strict=True)) == ["lm_head.bias"]


def test_packed_rows_land_in_the_right_projection() -> None:
    packed = torch.arange(18.0)[:, None].expand(18, 6)
    state = {"encoder.layers.1.self_attn.in_proj_weight": packed}
    ours = convert_weights(state, "torch.nn", "transformer_lib")
    starts = {key.split(".")[-2]: tensor[0, 0].item() for key, tensor in ours.items()}
    assert starts == {"q_proj": 0.0, "k_proj": 6.0, "v_proj": 12.0}
    assert all(key.startswith("encoder.layers.1.self_attn.") for key in ours)


# A layer of each text, its names read off its pages: theirs -> ours.
LECTURE = {
    "mha.W_q.weight": "self_attn.q_proj.weight",
    "mha.W_k.weight": "self_attn.k_proj.weight",
    "mha.W_v.weight": "self_attn.v_proj.weight",
    "mha.W_h.weight": "self_attn.out_proj.weight",
    "mha.W_h.bias": "self_attn.out_proj.bias",
    "cnn.0.weight": "feed_forward.expand.weight",
    "cnn.2.bias": "feed_forward.contract.bias",
    "layernorm1.weight": "self_attn_connection.norm.gain",
    "layernorm2.bias": "feed_forward_connection.norm.bias",
}
POST = {
    "dec_attn.fc_q.weight": "self_attn.q_proj.weight",
    "dec_attn.fc.bias": "self_attn.out_proj.bias",
    "enc_attn.fc_k.weight": "cross_attn.k_proj.weight",
    "enc_attn.fc_v.weight": "cross_attn.v_proj.weight",
    "ff.fc1.weight": "feed_forward.expand.weight",
    "ff.fc2.bias": "feed_forward.contract.bias",
    "dec_attn_ln.weight": "self_attn_connection.norm.gain",
    "enc_attn_ln.bias": "cross_attn_connection.norm.bias",
    "ff_ln.weight": "feed_forward_connection.norm.gain",
}
REVISITED = {
    "self_attn.q_proj.weight": "self_attn.q_proj.weight",
    "src_attn.out_proj.bias": "cross_attn.out_proj.bias",
    "feed_forward.expand.bias": "feed_forward.expand.bias",
    "feed_forward.contract.weight": "feed_forward.contract.weight",
    "sublayer.0.norm.a_2": "self_attn_connection.norm.gain",
    "sublayer.1.norm.b_2": "cross_attn_connection.norm.bias",
    "sublayer.2.norm.a_2": "feed_forward_connection.norm.gain",
}


@pytest.mark.parametrize(
    ("dialect", "names", "theirs", "ours"),
    [
        ("lecture", LECTURE, "enc_layers.1.", "encoder.layers.1."),
        ("post", POST, "decoder.layers.1.", "decoder.layers.1."),
        ("revisited", REVISITED, "decoder.layers.1.", "decoder.layers.1."),
    ],
)
def test_a_layer_of_each_text_is_renamed(dialect, names, theirs, ours) -> None:
    state = {theirs + name: torch.randn(6) for name in names}
    found = convert_weights(state, dialect, "transformer_lib", strict=True)
    assert set(found) == {ours + name for name in names.values()}
    for name, our_name in names.items():
        assert torch.equal(found[ours + our_name], state[theirs + name])
        assert found[ours + our_name].data_ptr() == state[theirs + name].data_ptr()


def test_only_the_lectures_encoder_has_a_text() -> None:
    assert {row.term.split()[0] for row in read_rows() if "lecture" in row.names
            and row.topic == WEIGHTS} == {"encoder"}  # fmt: skip


def test_the_posts_embeddings_are_renamed() -> None:
    names = {"tok_embed.weight": "tokens.weight", "pos_embed.weight": "positions.table"}
    for stack, side in (("encoder", "src"), ("decoder", "tgt")):
        state = {f"{stack}.{name}": torch.randn(5, 6) for name in names}
        found = convert_weights(state, "post", "transformer_lib", strict=True)
        for name, our_name in names.items():
            ours = found[f"{side}_embeddings.{our_name}"]
            assert torch.equal(ours, state[f"{stack}.{name}"])


@pytest.mark.parametrize("places", [("latin", "post"), ("post", "paper")])
def test_a_dialect_without_weights_is_refused(places) -> None:
    with pytest.raises(ValueError, match="has no weights; known are .*fairseq"):
        convert_weights({}, *places)


# Facts


def make_model() -> Transformer:
    return draw_parameters(Transformer(CONFIG)).eval()


def hidden_by(run: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Whether the last key can't be seen: moving it moves nothing before it."""
    torch.manual_seed(0)
    x = torch.randn(2, 5, 4)
    moved = x.clone()
    moved[:, -1] += 9.0
    return torch.equal(run(x)[:, :-1], run(moved)[:, :-1])


LAST = torch.tensor([[False, False, False, False, True]]).repeat(2, 1)


def pytorch_attention(**masks):
    layer = nn.MultiheadAttention(4, 2, batch_first=True).eval()
    return lambda x: layer(x, x, x, **masks)[0]


def test_pytorchs_modules_take_true_as_ignore() -> None:
    assert hidden_by(pytorch_attention(key_padding_mask=LAST))
    assert not hidden_by(pytorch_attention(key_padding_mask=~LAST))
    assert hidden_by(pytorch_attention(attn_mask=LAST[:1].expand(5, 5)))
    assert not hidden_by(pytorch_attention(attn_mask=~LAST[:1].expand(5, 5)))


def test_pytorchs_function_takes_true_as_attend() -> None:
    mask = ~LAST[:1].expand(5, 5)
    assert hidden_by(lambda x: F.scaled_dot_product_attention(x, x, x, mask))
    assert not hidden_by(lambda x: F.scaled_dot_product_attention(x, x, x, ~mask))


def test_the_librarys_masks_take_true_as_attend() -> None:
    layer = MultiHeadAttention(4, 2).eval()
    mask = ~LAST[:, None, None]
    assert hidden_by(lambda x: layer(x, x, x, mask))
    assert not hidden_by(lambda x: layer(x, x, x, ~mask))
    assert torch.equal(padding_mask(SRC, 0)[:, 0, 0], SRC != 0)
    assert causal_mask(3)[2, 0] and not causal_mask(3)[0, 2]


@pytest.mark.parametrize(
    "name",
    ["src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"],
)
def test_nn_transformer_takes_true_as_ignore(name) -> None:
    model = nn.Transformer(4, 2, 1, 1, 8, batch_first=True).eval()
    last = LAST.clone()

    def run(x):
        other = torch.ones(2, 5, 4)
        side = (other, x) if name.startswith("tgt") else (x, other)
        if name.startswith("memory"):  # cross-attention alone
            return model.decoder(other, x, memory_key_padding_mask=last)
        masks = {name: last}
        if name.startswith("src"):
            masks["memory_key_padding_mask"] = last
        return model(*side, **masks)

    assert hidden_by(run)
    last.logical_not_()
    assert not hidden_by(run)


def test_pytorchs_mask_of_the_future_is_added() -> None:
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    assert torch.equal(mask == 0, causal_mask(3))
    assert torch.equal(mask == -torch.inf, ~causal_mask(3))


def test_pytorch_has_the_length_first_by_default_and_takes_vectors() -> None:
    model = make_torch_model().eval()
    src, tgt = torch.randn(3, 2, 6).double(), torch.randn(5, 2, 6).double()
    alone = model(src[:, :1], tgt[:, :1])  # one sentence: the second axis
    torch.testing.assert_close(model(src, tgt)[:, :1], alone, **EXACT)
    with pytest.raises(RuntimeError):
        model(torch.tensor([[1, 2]]), torch.tensor([[1, 2]]))


def test_our_axes_and_recorded_states() -> None:
    model = make_model()
    with record_attention(model) as maps, record_hidden_states(model) as states:
        model(SRC, TGT_IN)
    memory = model.encode(SRC, padding_mask(SRC, 0))
    assert memory.shape == (2, 5, 6)  # (batch, length, d_model)
    assert maps["decoder.layers.0.cross_attn"].shape == (2, 2, 4, 5)  # each head
    assert len(states) == 2 + 3  # after each layer, without the embeddings
    last = states["encoder.layers.1"]
    torch.testing.assert_close(model.encoder.norm(last), memory, **EXACT)


@torch.no_grad()
def test_hugging_face_masks_are_one_for_attend(marian) -> None:
    def run(**masks):
        out = marian(input_ids=SRC[1:], decoder_input_ids=TGT_IN[1:], **masks)
        return out.logits[:, :3]

    source, target = (SRC[1:] != 0).long(), (TGT_IN[1:] != 0).long()
    alone = marian(input_ids=SRC[1:, :3], decoder_input_ids=TGT_IN[1:, :3]).logits
    torch.testing.assert_close(run(attention_mask=source), alone)
    both = run(attention_mask=source, decoder_attention_mask=target)
    torch.testing.assert_close(both, alone)
    assert not torch.allclose(run(attention_mask=1 - source), alone, atol=1e-5)
    wrong = run(attention_mask=source, decoder_attention_mask=1 - target)
    assert not torch.allclose(wrong, alone, atol=1e-5)


@torch.no_grad()
def test_hugging_face_makes_the_mask_of_the_future_and_counts_the_embeddings(
    marian,
) -> None:
    marian.set_attn_implementation("eager")
    how = {"output_hidden_states": True, "output_attentions": True}
    before = marian(input_ids=SRC, decoder_input_ids=TGT_IN, **how)
    other = TGT_IN.clone()
    other[:, -1] = 8
    after = marian(input_ids=SRC, decoder_input_ids=other)
    torch.testing.assert_close(before.logits[:, :-1], after.logits[:, :-1])
    assert not torch.allclose(before.logits[:, -1], after.logits[:, -1])
    assert len(before.encoder_hidden_states) == 1 + 2
    assert before.encoder_attentions[0].shape == (2, 16, 5, 5)  # a map for each head
    assert before.encoder_last_hidden_state.shape == (2, 5, 16)  # batch first


SHOWN_HERE = {  # (dialect, fact): all that the tests above have shown
    ("torch.nn", "True = ignore"),
    ("torch.nn", "True = attend"),
    ("torch.nn", "0 = attend, -inf = ignore"),
    ("torch.nn", "vectors, not ids"),
    ("torch.nn", "(length, batch, d_model) by default"),
    ("transformer_lib", "True = attend"),
    ("transformer_lib", "(batch, length, d_model)"),
    ("transformer_lib", "after each layer"),
    ("transformer_lib", "one map for each head"),
    ("Hugging Face", "1 = attend"),
    ("Hugging Face", "made by the decoder itself"),
    ("Hugging Face", "the embeddings too"),
    ("Hugging Face", "one map for each head"),
    ("Hugging Face", "(batch, length, d_model)"),
}


def test_every_fact_about_what_can_be_imported_is_shown() -> None:
    facts = {
        (dialect, name.fact)
        for row in read_rows()
        for dialect in ("torch.nn", "transformer_lib", "Hugging Face")
        for name in row.names.get(dialect, ())
        if name.fact
    }
    assert facts == SHOWN_HERE
    assert "True = ignore" in crosswalk_names.NAMES


def test_a_weight_that_is_no_tensor_is_named() -> None:
    with pytest.raises(TypeError, match="encoder must be a Tensor, not 1"):
        convert_weights({"encoder": 1}, "torch.nn", "transformer_lib")
