"""Models of PyTorch and Hugging Face, freshly drawn, give the same numbers in ours.

Nothing is downloaded. That beams equal those of Hugging Face's `generate` is tested for
targets that end by themselves and for such that are cut.
"""

import json
import math
from itertools import product

import pytest
import torch
import transformers
from torch import nn

from transformer_lib import (
    GenerationConfig,
    Transformer,
    TransformerConfig,
    beam_search,
    record_attention,
    record_hidden_states,
    sinusoid_table,
)
from transformer_lib.convert import (
    convert_weights,
    fix_positions,
    from_fsmt,
    from_marian,
    from_torch,
    sinusoid_halves,
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
IDS = {
    "Marian": {"pad_token_id": 12, "decoder_start_token_id": 12, "vocab_size": 13},
    "FSMT": {
        "pad_token_id": 1,
        "decoder_start_token_id": 2,
        "src_vocab_size": 11,
        "tgt_vocab_size": 13,
    },
    "Bart": {"pad_token_id": 1, "decoder_start_token_id": 2, "vocab_size": 13},
    "MBart": {"pad_token_id": 1, "decoder_start_token_id": 2, "vocab_size": 13},
}
LOAD = {"Marian": from_marian, "FSMT": from_fsmt}
KINDS = pytest.mark.parametrize("kind", LOAD)


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


def load(theirs: transformers.PreTrainedModel) -> Transformer:
    kind = type(theirs).__name__.partition("For")[0].removesuffix("MTModel")
    if kind in LOAD:
        return LOAD[kind](theirs.state_dict(), theirs.config)
    config = TransformerConfig(
        src_vocab_size=13, tgt_vocab_size=13, d_model=6, n_heads=3, d_ff=10,
        n_encoder_layers=2, n_decoder_layers=3, max_len=11, dropout=0.0, pad_id=1,
        learned_positions=True, embedding_norm_eps=1e-5, norm_first=kind == "MBart",
    )  # fmt: skip
    model = Transformer(config).eval()
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
def compare(theirs, model: Transformer | None = None) -> Transformer:
    """The logits, and every layer's output on the way."""
    model = load(theirs) if model is None else model
    src, tgt_in = make_batch(theirs)
    attend = (src != theirs.config.pad_token_id).long()
    how = {"output_hidden_states": True, "use_cache": False}
    expected = theirs(src, attend, decoder_input_ids=tgt_in, **how)
    with record_hidden_states(model) as states:
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


# Logits


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", IDS)
def test_every_layer_and_logits_are_equal(kind, seed) -> None:
    theirs = make_theirs(kind, seed)
    model = compare(theirs)
    with torch.no_grad():
        model.decoder.layers[1].cross_attn.k_proj.weight.mul_(1.1)
    with pytest.raises(AssertionError):
        compare(theirs, model)


@KINDS
@pytest.mark.parametrize("theirs_is", ["gelu", "silu", "swish"])
def test_every_activation_is_theirs(kind, theirs_is) -> None:
    model = compare(make_theirs(kind, activation_function=theirs_is))
    assert model.config.activation == {"silu": "swish"}.get(theirs_is, theirs_is)


@pytest.mark.parametrize(
    ("options", "tying"),
    [
        ({}, "all"),
        ({"tie_word_embeddings": False}, "none"),
        ({"share_encoder_decoder_embeddings": False}, "decoder"),
    ],
)
def test_marians_ways_of_tying(options, tying) -> None:
    assert compare(make_theirs("Marian", **options)).config.tie_embeddings == tying


def test_rates_are_taken_over_and_the_configuration_may_be_a_files_content() -> None:
    rates = {"dropout": 0.15, "attention_dropout": 0.2, "activation_dropout": 0.3}
    theirs = make_theirs("Marian", **rates)
    theirs.final_logits_bias.zero_()
    content = json.loads(json.dumps(theirs.config.to_dict()))
    model = compare(theirs, from_marian(theirs.state_dict(), content))
    assert {name: getattr(model.config, name) for name in rates} == rates
    assert model.lm_head.bias is None


def test_cross_attention_weights_are_equal() -> None:
    theirs = make_theirs("Marian")
    theirs.set_attn_implementation("eager")
    src, tgt_in = make_batch(theirs)
    attend = (src != 12).long()
    expected = theirs(src, attend, decoder_input_ids=tgt_in, output_attentions=True)
    with record_attention(model := load(theirs)) as maps:
        model(src, tgt_in)
    for i, weights in enumerate(expected.cross_attentions):
        found = maps[f"decoder.layers.{i}.cross_attn"]
        torch.testing.assert_close(found, weights, **CLOSE)


@pytest.mark.parametrize("kind", IDS)
def test_weights_go_there_and_back(kind) -> None:
    dialect = "fairseq" if kind == "FSMT" else "Hugging Face"
    state = {
        key.removeprefix("model.") if kind == "FSMT" else key: tensor
        for key, tensor in make_theirs(kind).state_dict().items()
        if "positions" not in key
        and key not in ("model.shared.weight", "final_logits_bias")
    }
    ours = convert_weights(state, dialect, "transformer_lib", strict=True)
    back = convert_weights(ours, "transformer_lib", dialect, strict=True)
    assert back.keys() == state.keys()
    assert all(torch.equal(back[key], state[key]) for key in state)


# Positions


@pytest.mark.parametrize("layout", ["marian", "fairseq"])
def test_sinusoids_of_other_layouts_follow_their_formulas(layout) -> None:
    table = sinusoid_halves(200, 8, layout)
    for row, column in product((0, 1, 50, 199), range(4)):
        angle = row / 10_000 ** (column / (4 if layout == "marian" else 3))
        pair = table[row, [column, 4 + column]].tolist()
        assert pair == pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)


def test_a_fixed_table_is_the_models_own_and_ends_it() -> None:
    model, table = load(make_theirs("FSMT")), torch.randn(5, 6)
    fix_positions(model, table)
    assert (model.config.learned_positions, model.config.max_len) == (True, 5)
    first, second = model.src_embeddings.positions, model.tgt_embeddings.positions
    second.table += 1.0
    assert torch.equal(second.table, table + 1.0)
    assert torch.equal(first.table, table)
    assert not first.table.requires_grad


# Beams


@KINDS
@pytest.mark.parametrize(("n_beams", "length_penalty"), [(1, 1.0), (2, 1.0), (5, 0.0)])
def test_beams_are_equal(kind, n_beams, length_penalty) -> None:
    ended = set()
    for seed in (0, 2, 6):
        theirs = make_theirs(kind, seed)
        pad, start = theirs.config.pad_token_id, theirs.config.decoder_start_token_id
        src, _ = make_batch(theirs)
        config = GenerationConfig(bos_id=start, eos_id=2, max_len=8)
        found = beam_search(load(theirs), src, config, n_beams, length_penalty)
        flat = [hypothesis for of_one in found for hypothesis in of_one]
        expected = theirs.generate(
            src,
            attention_mask=(src != pad).long(),
            num_beams=n_beams,
            num_return_sequences=n_beams,
            length_penalty=length_penalty,
            early_stopping=False,
            max_new_tokens=8,
            do_sample=False,
            bad_words_ids=[[pad]],
            return_dict_in_generate=True,
            output_scores=True,
        )
        rows = [[t for t in row[1:] if t != pad] for row in expected.sequences.tolist()]
        assert [hypothesis.ids for hypothesis in flat] == rows
        if n_beams > 1:
            scores = [hypothesis.score for hypothesis in flat]
            theirs_are = expected.sequences_scores.tolist()
            assert scores == pytest.approx(theirs_are, abs=1e-4)
        ended |= {hypothesis.finished for hypothesis in flat}
    assert ended == {False, True}  # some by themselves, some are cut


# PyTorch


class Tutorial(nn.Module):
    """`nn.Transformer` with embeddings, as PyTorch's tutorial on translation has it."""

    def __init__(self, **options) -> None:
        super().__init__()
        sizes = {"dropout": 0.0, "batch_first": True, **options}
        self.transformer = nn.Transformer(6, 3, 2, 3, 10, **sizes)
        self.src_tok_emb = nn.ModuleDict({"embedding": nn.Embedding(13, 6)})
        self.tgt_tok_emb = nn.ModuleDict({"embedding": nn.Embedding(11, 6)})
        self.generator = nn.Linear(6, 11)
        self.positional_encoding = nn.Module()
        table = sinusoid_table(9, 6)[:, None]
        self.positional_encoding.register_buffer("pos_embedding", table)
        for parameter in self.eval().parameters():
            parameter.data.add_(0.3 * torch.randn_like(parameter))

    def embed(self, embedding: nn.Module, ids: torch.Tensor) -> torch.Tensor:
        table = self.positional_encoding.pos_embedding
        return embedding["embedding"](ids) * 6**0.5 + table[: ids.size(1), 0]

    def forward(self, src: torch.Tensor, tgt_in: torch.Tensor) -> torch.Tensor:
        length = tgt_in.size(1)
        features = self.transformer(
            self.embed(self.src_tok_emb, src),
            self.embed(self.tgt_tok_emb, tgt_in),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=src == 0,
            memory_key_padding_mask=src == 0,
        )
        return self.generator(features)


SRC = torch.tensor([[3, 5, 12, 7, 2], [4, 4, 2, 0, 0]])
TGT_IN = torch.tensor([[1, 3, 10, 4], [1, 9, 6, 5]])


def load_tutorial(theirs: Tutorial, **options) -> Transformer:
    return from_torch(theirs.state_dict(), theirs.transformer, pad_id=0, **options)


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_pytorchs_logits_are_equal(norm_first, activation) -> None:
    """Post-norm too, where `nn.Transformer` has one more norm at the end of stacks."""
    torch.manual_seed(0)
    theirs = Tutorial(norm_first=norm_first, activation=activation)
    model = load_tutorial(theirs)
    torch.testing.assert_close(model(SRC, TGT_IN), theirs(SRC, TGT_IN), **CLOSE)
    assert (model.config.max_len, model.config.final_norm) == (9, True)
    assert theirs(SRC, TGT_IN).std() > 0.3


def test_what_is_left_of_pytorchs_choices_is_taken_over() -> None:
    theirs = Tutorial()
    for stack in (theirs.transformer.encoder, theirs.transformer.decoder):
        for layer in stack.layers:
            layer.dropout1.p, layer.self_attn.dropout, layer.dropout.p = 0.1, 0.2, 0.3
    model = load_tutorial(theirs, scale_embeddings=False)
    assert model.src_embeddings.scale == 1.0
    assert (model.config.dropout, model.config.attention_dropout) == (0.1, 0.2)
    assert model.config.activation_dropout == 0.3


@torch.no_grad()
def test_other_names_and_learned_positions_are_found_by_them() -> None:
    theirs = Tutorial()
    state = {
        key.replace("transformer.", "net."): tensor
        for key, tensor in theirs.state_dict().items()
        if "positional" not in key
    }
    state |= {"pos.src.table": torch.randn(8, 6), "pos.tgt.table": torch.randn(8, 6)}
    names = {"net.": "", "generator.": "lm_head."}
    for side in ("src", "tgt"):
        names[f"{side}_tok_emb.embedding."] = f"{side}_embeddings.tokens."
        names[f"pos.{side}."] = f"{side}_embeddings.positions."
    model = from_torch(state, theirs.transformer, 7, names)
    assert (model.config.learned_positions, model.config.max_len) == (True, 8)
    assert torch.equal(model.tgt_embeddings.positions.table, state["pos.tgt.table"])
    assert model.config.pad_id == 7
