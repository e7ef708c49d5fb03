"""Models of other libraries, freshly drawn, give the same logits and beams in ours.

Nothing is downloaded. All numbers are float64 and compared to 1e-10, and once more as
they come, in float32. That beams equal those of Hugging Face's `generate` is tested for
targets that end by themselves and for such that are cut.
"""

import copy
import json
import math
from argparse import Namespace
from collections.abc import Callable
from itertools import product

import pytest
import torch
import transformers
from reference import EXACT
from torch import Tensor, nn

from transformer_lib.convert.models import (
    from_fairseq,
    from_fsmt,
    from_marian,
    from_torch,
)
from transformer_lib.convert.positions import fix_positions, sinusoid_halves
from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.constraints import GenerationConfig
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.model.transformer import Transformer

CLOSE = {"rtol": 0.0, "atol": 1e-5}  # float32
PAD = {"marian": 12, "fsmt": 1}
EOS = {"marian": 2, "fsmt": 2}
START = {"marian": 12, "fsmt": 2}  # Marian's is its padding, fairseq's its end
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
    "dropout": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "forced_eos_token_id": None,
}


def draw(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Move every number, norms and biases too, away from its start; in float64."""
    torch.manual_seed(seed)
    theirs = make().double().eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(0.5 * torch.randn_like(parameter))
    return theirs


def make_marian(seed: int = 0, **options) -> transformers.MarianMTModel:
    options = {"vocab_size": 13, "activation_function": "swish"} | SIZES | options
    config = transformers.MarianConfig(
        **options, pad_token_id=PAD["marian"], decoder_start_token_id=START["marian"]
    )
    theirs = draw(lambda: transformers.MarianMTModel(config), seed)
    theirs.final_logits_bias.normal_()
    return theirs


def make_fsmt(seed: int = 0, **options) -> transformers.FSMTForConditionalGeneration:
    options = {"src_vocab_size": 11, "tgt_vocab_size": 13} | SIZES | options
    config = transformers.FSMTConfig(
        **options, pad_token_id=PAD["fsmt"], decoder_start_token_id=START["fsmt"]
    )
    theirs = draw(lambda: transformers.FSMTForConditionalGeneration(config), seed)
    for stack in (theirs.model.encoder, theirs.model.decoder):
        table = stack.embed_positions.weight  # they compute it in float32
        exact = fairseq_table(*table.shape)
        assert (table - exact)[2:].abs().max() < 1e-5
        with torch.no_grad():
            table.copy_(exact)
    return theirs


def fairseq_table(n_rows: int, width: int) -> Tensor:
    """Write fairseq's positions as a loop, in float64."""
    half = width // 2
    table = torch.zeros(n_rows, width, dtype=torch.float64)
    for row, column in product(range(n_rows), range(half)):
        angle = row * 10_000 ** (-column / (half - 1))
        table[row, column] = math.sin(angle)
        table[row, half + column] = math.cos(angle)
    return table


def use_exact_positions(model: Transformer) -> Transformer:
    """Ours are float32 until they are needed in float64, which only tests do."""
    torch.set_default_dtype(torch.float64)
    try:
        start, max_len = model.config.pad_id + 1, model.config.max_len
        table = sinusoid_halves(start + max_len, model.config.d_model, "fairseq")
        fix_positions(model, table[start:])
    finally:
        torch.set_default_dtype(torch.float32)
    return model


MAKE = {"marian": make_marian, "fsmt": make_fsmt}
LOAD = {"marian": from_marian, "fsmt": from_fsmt}
KINDS = pytest.mark.parametrize("kind", list(MAKE))


def load(kind: str, theirs: nn.Module) -> Transformer:
    model = LOAD[kind](theirs.state_dict(), theirs.config)
    return use_exact_positions(model) if kind == "fsmt" else model


def make_batch(kind: str) -> tuple[Tensor, Tensor]:
    """Sentences of 5, 3 and 2 tokens, and targets that begin as the model's do."""
    pad, start = PAD[kind], START[kind]
    src = [[3, 5, 10, 7, 2], [4, 4, 2, pad, pad], [9, 2, pad, pad, pad]]
    tgt_in = [[start, 3, 10, 4], [start, 9, 6, pad], [start, 5, 5, 11]]
    return torch.tensor(src), torch.tensor(tgt_in)


@torch.no_grad()
def run_theirs(theirs: nn.Module, src: Tensor, tgt_in: Tensor) -> Tensor:
    """Score the next token, one place after the other: FSMT has no mask in float64."""
    kept, logits = None, []
    for token in tgt_in.split(1, dim=1):
        found = theirs(
            input_ids=src,
            attention_mask=(src != theirs.config.pad_token_id).long(),
            decoder_input_ids=token,
            past_key_values=kept,
            use_cache=True,
        )
        kept = found.past_key_values
        logits.append(found.logits)
    return torch.cat(logits, dim=1)


# Logits


@torch.no_grad()
@KINDS
@pytest.mark.parametrize("seed", range(3))
def test_logits_are_equal(kind, seed) -> None:
    theirs = MAKE[kind](seed)
    src, tgt_in = make_batch(kind)
    real = tgt_in != PAD[kind]
    real[:, 0] = True
    found, expected = load(kind, theirs)(src, tgt_in), run_theirs(theirs, src, tgt_in)
    torch.testing.assert_close(found[real], expected[real], **EXACT)
    assert expected.std() > 0.3  # the comparison can fail


@torch.no_grad()
@KINDS
def test_logits_are_equal_in_single_precision(kind) -> None:
    theirs = MAKE[kind]().float()
    src, tgt_in = make_batch(kind)
    model = LOAD[kind](theirs.state_dict(), theirs.config)
    assert model.lm_head.weight.dtype == torch.float32
    real = tgt_in[:, 1:] != PAD[kind]
    found, expected = model(src, tgt_in), run_theirs(theirs, src, tgt_in)
    torch.testing.assert_close(found[:, 1:][real], expected[:, 1:][real], **CLOSE)


@torch.no_grad()
@KINDS
@pytest.mark.parametrize("theirs_is", ["relu", "gelu", "silu"])
def test_every_activation_is_theirs(kind, theirs_is) -> None:
    theirs = MAKE[kind](activation_function=theirs_is)
    src, tgt_in = make_batch(kind)
    model = load(kind, theirs)
    assert model.config.activation == {"silu": "swish"}.get(theirs_is, theirs_is)
    found, expected = model(src, tgt_in), run_theirs(theirs, src, tgt_in)
    torch.testing.assert_close(found[0], expected[0], **EXACT)


@torch.no_grad()
@pytest.mark.parametrize(
    ("options", "tying"),
    [
        ({}, "all"),
        ({"tie_word_embeddings": False}, "none"),
        ({"share_encoder_decoder_embeddings": False}, "decoder"),
    ],
)
def test_marians_ways_of_tying(options, tying) -> None:
    theirs = make_marian(**options)
    src, tgt_in = make_batch("marian")
    model = load("marian", theirs)
    assert model.config.tie_embeddings == tying
    found, expected = model(src, tgt_in), run_theirs(theirs, src, tgt_in)
    torch.testing.assert_close(found[0], expected[0], **EXACT)


@torch.no_grad()
@pytest.mark.parametrize("kept", ["model.shared.weight", "lm_head.weight"])
def test_a_file_that_keeps_tied_matrices_once_is_read(kept) -> None:
    theirs = make_marian()
    tied = ("shared", "embed_tokens", "lm_head")
    state = {
        key: tensor
        for key, tensor in theirs.state_dict().items()
        if key == kept or not any(name in key for name in tied)
    }
    content = json.loads(json.dumps(theirs.config.to_dict()))
    src, tgt_in = make_batch("marian")
    found = from_marian(state, content)(src, tgt_in)
    torch.testing.assert_close(found[0], run_theirs(theirs, src, tgt_in)[0], **EXACT)


@torch.no_grad()
def test_an_old_configuration_that_does_not_say_so_shares_all_matrices() -> None:
    theirs = make_marian()
    shared = ("embed_tokens", "lm_head")
    state = {
        key: tensor
        for key, tensor in theirs.state_dict().items()
        if not any(name in key for name in shared)
    }
    options = theirs.config.to_dict()
    for name in ("share_encoder_decoder_embeddings", "tie_word_embeddings"):
        options.pop(name, None)
    src, tgt_in = make_batch("marian")
    found = from_marian(state, options)(src, tgt_in)
    torch.testing.assert_close(found[0], run_theirs(theirs, src, tgt_in)[0], **EXACT)


@torch.no_grad()
def test_two_embeddings_and_a_head_that_is_the_targets_are_read() -> None:
    theirs = make_marian(share_encoder_decoder_embeddings=False)
    state = dict(theirs.state_dict())
    del state["lm_head.weight"]
    src, tgt_in = make_batch("marian")
    found = from_marian(state, theirs.config)(src, tgt_in)
    torch.testing.assert_close(found[0], run_theirs(theirs, src, tgt_in)[0], **EXACT)


def test_a_head_of_its_own_that_is_missing_is_not_made_up() -> None:
    theirs = make_marian(tie_word_embeddings=False)
    state = dict(theirs.state_dict())
    del state["lm_head.weight"]
    with pytest.raises(ValueError, match=r"^Marian has no matrix .* lm_head\.weight"):
        from_marian(state, theirs.config)


def test_fsmts_tied_matrices_are_read_once() -> None:
    theirs = make_fsmt(src_vocab_size=13)
    table = theirs.model.decoder.embed_tokens.weight
    state = dict(theirs.state_dict()) | {"model.encoder.embed_tokens.weight": table}
    options = theirs.config.to_dict() | {"tie_word_embeddings": True}
    del state["model.decoder.embed_tokens.weight"]
    del state["model.decoder.output_projection.weight"]
    assert from_fsmt(state, options).config.tie_embeddings == "all"
    options["tie_word_embeddings"] = False
    with pytest.raises(ValueError, match="^FSMT has no matrix for our tgt_embeddings"):
        from_fsmt(state, options)


@KINDS
def test_rates_of_dropout_are_taken_over(kind) -> None:
    rates = {"dropout": 0.15, "attention_dropout": 0.2, "activation_dropout": 0.3}
    config = load(kind, MAKE[kind](**rates)).config
    assert {name: getattr(config, name) for name in rates} == rates


@torch.no_grad()
def test_a_bias_of_zeros_is_none() -> None:
    theirs = make_marian()
    theirs.final_logits_bias.zero_()
    assert load("marian", theirs).lm_head.bias is None
    theirs.final_logits_bias[0, 3] = 1.0
    assert load("marian", theirs).lm_head.bias[3] == 1.0


@torch.no_grad()
def test_a_file_in_half_precision_is_read() -> None:
    theirs = make_marian()
    src, tgt_in = make_batch("marian")
    state = {key: tensor.half() for key, tensor in theirs.state_dict().items()}
    found = from_marian(state, theirs.config)(src, tgt_in)
    assert found.dtype == torch.float32
    close = {"rtol": 0.0, "atol": 0.05, "check_dtype": False}
    torch.testing.assert_close(found[0], run_theirs(theirs, src, tgt_in)[0], **close)


def test_positions_are_fixed_and_end_with_the_table() -> None:
    theirs = make_fsmt()
    model = load("fsmt", theirs)
    positions = model.src_embeddings.positions
    assert not positions.table.requires_grad
    assert model.config.max_len == len(positions.table)
    with pytest.raises(IndexError, match="out of range"):
        positions(torch.tensor([len(positions.table)]))


@pytest.mark.parametrize("layout", ["marian", "fairseq"])
def test_sinusoids_of_other_layouts_follow_their_formulas(layout) -> None:
    table = sinusoid_halves(200, 8, layout)
    for row, column in product((0, 1, 50, 199), range(4)):
        angle = row / 10_000 ** (column / (4 if layout == "marian" else 3))
        assert table[row, column].item() == pytest.approx(math.sin(angle), abs=1e-6)
        cosine = table[row, 4 + column].item()
        assert cosine == pytest.approx(math.cos(angle), abs=1e-6)
    with pytest.raises(ValueError, match="even and at least 2, not 5"):
        sinusoid_halves(4, 5, layout)
    with pytest.raises(ValueError, match="n_positions must be at least 1, not 0"):
        sinusoid_halves(0, 8, layout)
    with pytest.raises(ValueError, match="need a d_model of 4, not 2"):
        sinusoid_halves(4, 2, "fairseq")


def test_the_narrowest_of_fairseqs_sinusoids_have_two_wavelengths() -> None:
    sines = [math.sin(3), math.sin(3 / 10_000), math.cos(3), math.cos(3 / 10_000)]
    assert sinusoid_halves(4, 4, "fairseq")[3].tolist() == pytest.approx(sines)


def test_an_unknown_layout_of_sinusoids_is_refused() -> None:
    with pytest.raises(ValueError, match="layout must be one of .*, not 'paper'"):
        sinusoid_halves(4, 8, "paper")


def test_a_fixed_table_is_the_models_own_and_ends_it() -> None:
    model, table = load("fsmt", make_fsmt()).float(), torch.randn(5, 6)
    fix_positions(model, table)
    assert (model.config.learned_positions, model.config.max_len) == (True, 5)
    first, second = model.src_embeddings.positions, model.tgt_embeddings.positions
    second.table += 1.0
    assert torch.equal(second.table, table + 1.0)
    assert torch.equal(first.table, table)


# Beams


def search_theirs(theirs, src, n_beams, length_penalty, max_len):
    found = theirs.generate(
        input_ids=src,
        attention_mask=(src != theirs.config.pad_token_id).long(),
        num_beams=n_beams,
        num_return_sequences=n_beams,
        length_penalty=length_penalty,
        early_stopping=False,
        max_new_tokens=max_len,
        do_sample=False,
        bad_words_ids=[[theirs.config.pad_token_id]],
        return_dict_in_generate=True,
        output_scores=True,
    )
    rows = [
        [token for token in row[1:] if token != theirs.config.pad_token_id]
        for row in found.sequences.tolist()
    ]
    return rows, found.sequences_scores.tolist()


@KINDS
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n_beams", "length_penalty"), [(2, 1.0), (5, 0.0)])
def test_beams_are_equal(kind, seed, n_beams, length_penalty) -> None:
    theirs = MAKE[kind](seed)
    src, _ = make_batch(kind)
    config = GenerationConfig(bos_id=START[kind], eos_id=EOS[kind], max_len=8)
    found = beam_search(load(kind, theirs), src, config, n_beams, length_penalty)
    flat = [hypothesis for of_one in found for hypothesis in of_one]
    rows, scores = search_theirs(theirs, src, n_beams, length_penalty, max_len=8)
    assert [hypothesis.ids for hypothesis in flat] == rows
    assert [hypothesis.score for hypothesis in flat] == pytest.approx(scores, abs=1e-5)


@KINDS
def test_some_of_these_beams_end_by_themselves_and_some_are_cut(kind) -> None:
    finished = set()
    for seed in range(4):
        config = GenerationConfig(bos_id=START[kind], eos_id=EOS[kind], max_len=8)
        model = load(kind, MAKE[kind](seed))
        for of_one in beam_search(model, make_batch(kind)[0], config, 5, 0.0):
            finished |= {hypothesis.finished for hypothesis in of_one}
    assert finished == {False, True}


@KINDS
def test_greedy_search_is_equal(kind) -> None:
    theirs = MAKE[kind](3)
    src, _ = make_batch(kind)
    config = GenerationConfig(bos_id=START[kind], eos_id=EOS[kind], max_len=8)
    found = [found.ids for found in greedy_decode(load(kind, theirs), src, config)]
    expected = theirs.generate(
        input_ids=src,
        attention_mask=(src != PAD[kind]).long(),
        num_beams=1,
        max_new_tokens=8,
        do_sample=False,
        bad_words_ids=[[PAD[kind]]],
    )
    rows = [[t for t in row[1:] if t != PAD[kind]] for row in expected.tolist()]
    assert found == rows


# Fairseq


def fairseq_arguments(**others) -> Namespace:
    """What fairseq keeps in its checkpoints, for the model of `make_fsmt`."""
    both = {"embed_dim": 6, "ffn_embed_dim": 10, "attention_heads": 3}
    arguments = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {**both, "normalize_before": False}.items()
    }
    arguments |= {"encoder_layers": 2, "decoder_layers": 3, "activation_fn": "relu"}
    return Namespace(**{**arguments, "max_target_positions": 11, **others})


def fairseq_state() -> dict[str, Tensor]:
    state = {
        key.removeprefix("model."): tensor
        for key, tensor in make_fsmt().state_dict().items()
        if "embed_positions" not in key
    }
    state["encoder.version"] = state["decoder.version"] = torch.tensor([3.0])
    state["encoder.embed_positions._float_tensor"] = torch.zeros(1)
    state["decoder.embed_positions._float_tensor"] = torch.zeros(1)
    return state


@torch.no_grad()
def test_fairseqs_own_state_gives_the_same_model_as_fsmt() -> None:
    theirs = make_fsmt()
    model = use_exact_positions(from_fairseq(fairseq_state(), fairseq_arguments()))
    src, tgt_in = make_batch("fsmt")
    found, expected = model(src, tgt_in), run_theirs(theirs, src, tgt_in)
    torch.testing.assert_close(found[0], expected[0], **EXACT)
    assert model.config.max_len == 11


def test_fairseqs_shared_matrices_are_read_once() -> None:
    state = fairseq_state()
    del state["decoder.output_projection.weight"]
    options = fairseq_arguments(share_decoder_input_output_embed=True)
    model = from_fairseq(state, options)
    assert model.lm_head.weight is model.tgt_embeddings.tokens.weight
    assert model.config.tie_embeddings == "decoder"


def test_fairseqs_matrices_that_are_all_shared_are_read_once() -> None:
    state = fairseq_state()
    table = state.pop("decoder.embed_tokens.weight")
    state["encoder.embed_tokens.weight"] = table
    del state["decoder.output_projection.weight"]
    model = from_fairseq(state, fairseq_arguments(share_all_embeddings=True))
    assert model.config.tie_embeddings == "all"
    with pytest.raises(ValueError, match="^fairseq has no matrix for our tgt_embed"):
        from_fairseq(state, fairseq_arguments())


def test_what_fairseqs_arguments_leave_out_is_as_fairseq_has_it() -> None:
    arguments = fairseq_arguments()
    del arguments.activation_fn, arguments.max_target_positions
    config = from_fairseq(fairseq_state(), arguments).config
    assert (config.activation, config.max_len) == ("relu", 1024)
    assert (config.scale_embeddings, config.embedding_norm_eps) == (True, None)


def test_fairseqs_embeddings_may_have_a_norm_and_no_scale() -> None:
    state = fairseq_state()
    for side in ("encoder", "decoder"):
        state[f"{side}.layernorm_embedding.weight"] = torch.full((6,), 3.0).double()
        state[f"{side}.layernorm_embedding.bias"] = torch.zeros(6).double()
    choices = {"layernorm_embedding": True, "no_scale_embedding": True}
    model = from_fairseq(state, fairseq_arguments(**choices))
    assert model.tgt_embeddings.norm.gain[0] == 3.0
    assert model.tgt_embeddings.norm.eps == nn.LayerNorm(6).eps
    assert model.tgt_embeddings.scale == 1.0


def test_fairseqs_keys_without_a_place_are_refused() -> None:
    state = fairseq_state() | {"encoder.adapter.weight": torch.ones(6)}
    with pytest.raises(ValueError, match=r"^encoder\.adapter\.weight of fairseq have"):
        from_fairseq(state, fairseq_arguments())


def test_fairseqs_pre_norm_needs_its_norms_at_the_end() -> None:
    state = fairseq_state()
    before = {f"{side}_normalize_before": True for side in ("encoder", "decoder")}
    with pytest.raises(ValueError, match=r"^fairseq has no encoder\.norm\.gain"):
        from_fairseq(state, fairseq_arguments(**before))
    for side in ("encoder", "decoder"):
        state[f"{side}.layer_norm.weight"] = torch.full((6,), 2.0).double()
        state[f"{side}.layer_norm.bias"] = torch.zeros(6).double()
    model = from_fairseq(state, fairseq_arguments(**before))
    assert model.config.norm_first
    assert model.decoder.norm.gain[0] == 2.0


# PyTorch


class Tutorial(nn.Module):
    """`nn.Transformer` with embeddings, as PyTorch's tutorial on translation has it."""

    def __init__(self, **options) -> None:
        super().__init__()
        self.transformer = nn.Transformer(
            6, 3, 2, 3, 10, dropout=0.0, batch_first=True, **options
        )
        self.src_tok_emb = nn.ModuleDict({"embedding": nn.Embedding(13, 6)})
        self.tgt_tok_emb = nn.ModuleDict({"embedding": nn.Embedding(11, 6)})
        self.generator = nn.Linear(6, 11)
        self.positional_encoding = nn.Module()
        table = torch.zeros(9, 6, dtype=torch.float64)
        for pos, i in product(range(9), range(3)):
            angle = pos / 10_000 ** (2 * i / 6)
            table[pos, 2 * i] = math.sin(angle)
            table[pos, 2 * i + 1] = math.cos(angle)
        self.positional_encoding.register_buffer("pos_embedding", table[:, None])

    def embed(self, embedding: nn.Module, ids: Tensor) -> Tensor:
        vectors = embedding["embedding"](ids) * 6**0.5
        return vectors + self.positional_encoding.pos_embedding[: ids.size(1), 0]

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        length = tgt_in.size(1)
        features = self.transformer(
            self.embed(self.src_tok_emb, src),
            self.embed(self.tgt_tok_emb, tgt_in),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=src == 0,
            memory_key_padding_mask=src == 0,
        )
        return self.generator(features)


@pytest.fixture
def exact_sinusoids():
    """Ours are float32 until they are needed in float64, which only tests do."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(params=[False, True], ids=["post-norm", "pre-norm"])
def tutorial(request, exact_sinusoids) -> Tutorial:
    """Post-norm too, where `nn.Transformer` has one more norm at the end of stacks."""
    return draw(lambda: Tutorial(norm_first=request.param, activation="gelu"), 0)


SRC = torch.tensor([[3, 5, 12, 7, 2], [4, 4, 2, 0, 0]])
TGT_IN = torch.tensor([[1, 3, 10, 4], [1, 9, 6, 5]])


def load_tutorial(theirs: Tutorial, **options) -> Transformer:
    state = theirs.state_dict()
    return from_torch(state, theirs.transformer, pad_id=0, **options)


@torch.no_grad()
def test_pytorchs_logits_are_equal(tutorial) -> None:
    model = load_tutorial(tutorial)
    torch.testing.assert_close(model(SRC, TGT_IN), tutorial(SRC, TGT_IN), **EXACT)
    assert model.config.final_norm
    assert (model.config.max_len, model.config.activation) == (9, "gelu")


def test_greedy_search_equals_recomputing_with_pytorch(tutorial) -> None:
    config = GenerationConfig(bos_id=1, eos_id=2, max_len=6)
    found = greedy_decode(load_tutorial(tutorial), SRC, config)
    for hypothesis, src in zip(found, SRC, strict=True):
        said = [1]
        while len(said) <= 6 and (said[-1] != 2 or len(said) == 1):
            logits = tutorial(src[src != 0][None], torch.tensor([said]))[0, -1]
            logits[0] = -torch.inf
            said.append(int(logits.argmax()))
        assert hypothesis.ids == said[1:]


@torch.no_grad()
def test_embeddings_of_other_names_are_found_by_them(exact_sinusoids) -> None:
    theirs = draw(Tutorial, 0)
    state = {
        key.replace("transformer.", "net.").replace("generator", "out"): tensor
        for key, tensor in theirs.state_dict().items()
    }
    names = {
        "net.": "",
        "src_tok_emb.embedding.": "src_embeddings.tokens.",
        "tgt_tok_emb.embedding.": "tgt_embeddings.tokens.",
        "out.": "lm_head.",
        "positional_encoding.pos_embedding": "sinusoids",
    }
    model = from_torch(state, theirs.transformer, 0, names)
    torch.testing.assert_close(model(SRC, TGT_IN), theirs(SRC, TGT_IN), **EXACT)
    with pytest.raises(ValueError, match=r"net\.\S+ begins with none of transformer\."):
        from_torch(state, theirs.transformer, 0)


def test_what_pytorchs_model_does_not_tell_is_taken_as_said() -> None:
    model = load_tutorial(Tutorial(), scale_embeddings=False)
    assert model.src_embeddings.scale == 1.0
    assert not model.config.learned_positions
    theirs = Tutorial()
    assert from_torch(theirs.state_dict(), theirs.transformer, 7).config.pad_id == 7


def test_pytorchs_activation_may_be_a_module_and_its_rates_are_taken_over() -> None:
    theirs = Tutorial()
    for stack in (theirs.transformer.encoder, theirs.transformer.decoder):
        for layer in stack.layers:
            layer.activation = nn.GELU()
            layer.dropout1.p, layer.self_attn.dropout, layer.dropout.p = 0.1, 0.2, 0.3
    config = load_tutorial(theirs).config
    assert config.activation == "gelu"
    assert (config.dropout, config.attention_dropout) == (0.1, 0.2)
    assert config.activation_dropout == 0.3


def test_pytorchs_table_may_have_the_batch_first() -> None:
    theirs = Tutorial()
    name = "positional_encoding.pos_embedding"
    state = theirs.state_dict()
    batch_first = state | {name: state[name].transpose(0, 1)}
    assert from_torch(batch_first, theirs.transformer, 0).config.max_len == 9


@torch.no_grad()
def test_positions_that_were_learned_around_pytorchs_are_taken_over() -> None:
    theirs = Tutorial()
    state = theirs.state_dict()
    del state["positional_encoding.pos_embedding"]
    tables = {"pos.src.": torch.randn(8, 6), "pos.tgt.": torch.randn(8, 6)}
    names = {"transformer.": "", "generator.": "lm_head."}
    for side in ("src", "tgt"):
        names[f"{side}_tok_emb.embedding."] = f"{side}_embeddings.tokens."
        names[f"pos.{side}."] = f"{side}_embeddings.positions."
    state |= {f"{name}table": table for name, table in tables.items()}
    model = from_torch(state, theirs.transformer, 0, names)
    assert (model.config.learned_positions, model.config.max_len) == (True, 8)
    assert torch.equal(model.tgt_embeddings.positions.table, tables["pos.tgt."])


# Refusals


def test_keys_of_pytorch_without_a_place_are_refused() -> None:
    theirs = Tutorial()
    state = theirs.state_dict() | {"transformer.adapter.weight": torch.ones(6)}
    with pytest.raises(ValueError, match=r"^adapter\.weight of torch\.nn have no name"):
        from_torch(state, theirs.transformer, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation_function": "gelu_new"}, "activation 'gelu_new' cannot be mapped"),
        ({"normalize_before": True}, "normalize_before=True cannot be mapped"),
        ({"add_final_layer_norm": True}, "add_final_layer_norm=True cannot"),
        ({"normalize_embedding": True}, "normalize_embedding=True cannot"),
        ({"static_position_embeddings": False}, "static_position_embeddings=False"),
        ({"decoder_attention_heads": 2}, "encoder_attention_heads is 3 and decoder_at"),
        ({"decoder_ffn_dim": 9}, "encoder_ffn_dim is 10 and decoder_ffn_dim is 9"),
        ({"d_model": 12}, r"\(11, 6\) does not hold .* of shape \(11, 12\)"),
    ],
)
def test_a_configuration_without_a_place_is_refused_by_name(options, message) -> None:
    theirs = make_marian()
    with pytest.raises(ValueError, match=message):
        from_marian(theirs.state_dict(), theirs.config.to_dict() | options)


def test_a_configuration_may_be_any_object_that_turns_into_a_dictionary() -> None:
    class Options:
        __slots__ = ()

        def to_dict(self):
            return theirs.config.to_dict()

    theirs = make_marian()
    assert from_marian(theirs.state_dict(), Options()).config.d_model == 6


def test_a_configuration_that_lacks_something_is_refused() -> None:
    theirs = make_marian()
    options = theirs.config.to_dict()
    del options["encoder_layers"]
    with pytest.raises(ValueError, match="configuration has no encoder_layers"):
        from_marian(theirs.state_dict(), options)


@KINDS
def test_keys_without_a_place_and_places_without_a_key_are_refused(kind) -> None:
    theirs = MAKE[kind]()
    state = theirs.state_dict()
    extra = state | {"model.encoder.layer_norm.weight": torch.ones(6)}
    with pytest.raises(ValueError, match=r"has encoder\.norm\.gain, but the model"):
        LOAD[kind](extra, theirs.config)
    with pytest.raises(ValueError, match=r"adapter\.weight of .* have no name"):
        LOAD[kind](state | {"adapter.weight": torch.ones(6)}, theirs.config)
    del state["model.encoder.layers.1.fc2.bias"]
    name = {"marian": "Marian", "fsmt": "FSMT"}[kind]
    message = rf"^{name} has no encoder\.layers\.1\S+contract\.bias"
    with pytest.raises(ValueError, match=message):
        LOAD[kind](state, theirs.config)


@KINDS
def test_positions_that_were_learned_are_refused(kind) -> None:
    theirs = MAKE[kind]()
    state = copy.deepcopy(theirs.state_dict())
    name = "model.decoder.embed_positions.weight"
    learned = state[name].clone()
    learned[5] += 0.1
    for table in (learned, 1.5 * state[name]):
        with pytest.raises(ValueError, match=r"embed_positions\.weight of .* sinus"):
            LOAD[kind](state | {name: table}, theirs.config)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("encoder_learned_pos", True),
        ("decoder_learned_pos", True),
        ("no_cross_attention", True),
        ("no_token_positional_embeddings", True),
        ("adaptive_softmax_cutoff", "10000,20000"),
        ("no_decoder_final_norm", True),
        ("cross_self_attention", True),
        ("activation_fn", "gelu_fast"),
        ("decoder_embed_dim", 8),
        ("decoder_normalize_before", True),
    ],
)
def test_fairseqs_options_without_a_place_are_refused_by_name(option, value) -> None:
    name = "gelu_fast" if option == "activation_fn" else option
    with pytest.raises(ValueError, match=name):
        from_fairseq(fairseq_state(), fairseq_arguments(**{option: value}))


def test_layers_of_pytorch_that_differ_are_refused() -> None:
    theirs = Tutorial()
    theirs.transformer.decoder.layers[1].activation = nn.functional.gelu
    with pytest.raises(ValueError, match="activation is relu in one layer and gelu"):
        load_tutorial(theirs)
    theirs.transformer.decoder.layers[1].activation = nn.GELU(approximate="tanh")
    with pytest.raises(ValueError, match="tanh.* cannot be mapped"):
        load_tutorial(theirs)


def test_a_table_that_is_not_the_papers_is_refused() -> None:
    theirs = Tutorial()
    theirs.positional_encoding.pos_embedding[:, 0] = sinusoid_halves(9, 6, "marian")
    with pytest.raises(ValueError, match="does not hold the sinusoids of shape"):
        load_tutorial(theirs)
