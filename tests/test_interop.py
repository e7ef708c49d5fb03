"""Models of PyTorch and Hugging Face, freshly drawn, give the same numbers in ours.

Nothing is downloaded.
"""

import pytest
import torch
import transformers
from torch import nn

import transformer_lib as tl
from transformer_lib.convert import (
    convert_weights,
    fix_positions,
    from_fsmt,
    from_marian,
    from_torch,
)

CLOSE = {"rtol": 0.0, "atol": 2e-5}  # float32
SIZES = {
    "d_model": 6,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 10,
    "decoder_ffn_dim": 10,
    "max_position_embeddings": 11,
    "scale_embedding": True,
    "activation_function": "relu",
    "dropout": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "forced_eos_token_id": None,
}
# Marian starts targets with its padding token, fairseq with its end token.
FAIRSEQ = {"pad_token_id": 1, "decoder_start_token_id": 2}
IDS = {
    "Marian": {"pad_token_id": 12, "decoder_start_token_id": 12, "vocab_size": 13},
    "FSMT": FAIRSEQ | {"src_vocab_size": 11, "tgt_vocab_size": 13},
    "Bart": FAIRSEQ | {"vocab_size": 13},
    "MBart": FAIRSEQ | {"vocab_size": 13},
}
LOAD = {"Marian": from_marian, "FSMT": from_fsmt}


def make_theirs(kind: str, seed: int = 0, **options) -> transformers.PreTrainedModel:
    """Every number, norms and biases too, is moved away from its start."""
    options = getattr(transformers, f"{kind}Config")(**SIZES | IDS[kind] | options)
    end = "MTModel" if kind == "Marian" else "ForConditionalGeneration"
    torch.manual_seed(seed)
    theirs = getattr(transformers, kind + end)(options).eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "embed_positions" not in name or "Bart" in kind:  # sinusoids elsewhere
                parameter.add_(0.5 * torch.randn_like(parameter))
    if kind == "Marian":
        theirs.final_logits_bias.normal_()
    return theirs


def load(theirs: transformers.PreTrainedModel) -> tl.Transformer:
    kind = type(theirs).__name__.partition("For")[0].removesuffix("MTModel")
    if kind in LOAD:
        return LOAD[kind](theirs.state_dict(), theirs.config)
    config = tl.TransformerConfig(
        src_vocab_size=13, tgt_vocab_size=13, d_model=6, n_heads=3, d_ff=10,
        n_encoder_layers=2, n_decoder_layers=3, max_len=11, dropout=0.0, pad_id=1,
        learned_positions=True, embedding_norm_eps=1e-5, norm_first=kind == "MBart",
    )  # fmt: skip
    model = tl.Transformer(config).eval()
    weights = convert_weights(theirs.state_dict(), "Hugging Face", "transformer_lib")
    model.load_state_dict(weights)
    return model


def make_batch(theirs) -> tuple[torch.Tensor, torch.Tensor]:
    """Sentences of 5, 3 and 2 tokens, and targets that begin as the model's do."""
    pad, start = theirs.config.pad_token_id, theirs.config.decoder_start_token_id
    src = [[3, 5, 10, 7, 2], [4, 4, 2, pad, pad], [9, 2, pad, pad, pad]]
    return torch.tensor(src), torch.tensor([[start, 3, 10, 4], [start, 9, 6, 5]] + [
        [start, 5, 5, 11]])  # fmt: skip


@torch.no_grad()
def compare(theirs, model: tl.Transformer | None = None) -> tl.Transformer:
    """The logits, and every layer's output on the way."""
    model = load(theirs) if model is None else model
    src, tgt_in = make_batch(theirs)
    attend = (src != theirs.config.pad_token_id).long()
    how = {"output_hidden_states": True, "use_cache": False}
    expected = theirs(src, attend, decoder_input_ids=tgt_in, **how)
    with tl.record_hidden_states(model) as states:
        logits = model(src, tgt_in)
    torch.testing.assert_close(logits, expected.logits, **CLOSE)
    assert expected.logits.std() > 0.3  # the comparison can fail
    real = {"encoder": attend.bool(), "decoder": torch.ones_like(tgt_in).bool()}
    for side, keep in real.items():
        # The first are the embeddings; the last of a pre-norm model are normalized.
        for i, state in enumerate(expected[f"{side}_hidden_states"][1:-1]):
            ours = states[f"{side}.layers.{i}"]
            torch.testing.assert_close(ours[keep], state[keep], **CLOSE)
    return model


RATES = {"dropout": 0.15, "attention_dropout": 0.2, "activation_dropout": 0.3}
MODELS = [  # kind, what is said in its configuration, and what ours says then
    ("Marian", {}, {"tie_embeddings": "all"}),
    ("Marian", {"tie_word_embeddings": False}, {"tie_embeddings": "none"}),
    ("Marian", {"share_encoder_decoder_embeddings": False},
     {"tie_embeddings": "decoder"}),
    ("Marian", {"activation_function": "silu"}, {"activation": "swish"}),
    ("Marian", RATES, RATES),
    ("FSMT", {"activation_function": "gelu"}, {"activation": "gelu"}),
    ("FSMT", {"scale_embedding": False}, {"scale_embeddings": False}),
    ("Bart", {}, {}),
    ("MBart", {}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "ours_says"), MODELS, ids=str)
def test_every_layer_and_logits_are_equal(kind, options, ours_says) -> None:
    theirs = make_theirs(kind, **options)
    model = compare(theirs)
    assert {name: getattr(model.config, name) for name in ours_says} == ours_says
    with torch.no_grad():
        model.decoder.layers[1].cross_attn.k_proj.weight.mul_(1.1)
    with pytest.raises(AssertionError):
        compare(theirs, model)


def test_a_fixed_table_is_the_models_own_and_ends_it() -> None:
    model, table = load(make_theirs("FSMT")), torch.randn(5, 6)
    fix_positions(model, table)
    assert (model.config.learned_positions, model.config.max_len) == (True, 5)
    first, second = model.src_embeddings.positions, model.tgt_embeddings.positions
    second.table += 1.0
    assert torch.equal(second.table, table + 1.0)
    assert torch.equal(first.table, table)
    assert not first.table.requires_grad


@pytest.mark.parametrize("seed", [0, 2, 6])
def test_beams_that_start_with_the_end_token_are_equal(seed) -> None:
    theirs = make_theirs("FSMT", seed)
    src, _ = make_batch(theirs)
    config = tl.GenerationConfig(bos_id=2, eos_id=2, max_len=8)
    found = tl.beam_search(load(theirs), src, config, 3)
    expected = theirs.generate(
        src, attention_mask=(src != 1).long(), num_beams=3, num_return_sequences=3,
        early_stopping=False, max_new_tokens=8, do_sample=False, bad_words_ids=[[1]],
    )  # fmt: skip
    rows = [[t for t in row[1:] if t != 1] for row in expected.tolist()]
    assert [hypothesis.ids for of_one in found for hypothesis in of_one] == rows


SRC = torch.tensor([[3, 5, 12, 7, 2], [4, 4, 2, 0, 0]])
TGT_IN = torch.tensor([[1, 3, 10, 4], [1, 9, 6, 5]])


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_pytorchs_logits_are_equal(norm_first, activation, scaled) -> None:
    """Post-norm too, where `nn.Transformer` has one more norm at the end of stacks."""
    torch.manual_seed(0)
    theirs = nn.Transformer(
        6, 3, 2, 3, 10, 0.25, activation, norm_first=norm_first, batch_first=True
    ).eval()
    tokens, head = (nn.Embedding(13, 6), nn.Embedding(11, 6)), nn.Linear(6, 11)
    for parameter in theirs.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    scale = 6**0.5 if scaled else 1
    read = zip(tokens, (SRC, TGT_IN), strict=True)
    vectors = [of(ids) * scale + tl.sinusoid_table(ids.size(1), 6) for of, ids in read]
    features = theirs(
        *vectors,
        tgt_mask=torch.ones(4, 4, dtype=torch.bool).triu(1),
        src_key_padding_mask=SRC == 0,
        memory_key_padding_mask=SRC == 0,
    )
    model = from_torch(theirs, *tokens, head, pad_id=0, scale_embeddings=scaled)
    torch.testing.assert_close(model(SRC, TGT_IN), head(features), **CLOSE)
    assert head(features).std() > 0.2
    assert model.config.final_norm
    assert {getattr(model.config, name) for name in RATES} == {0.25}
