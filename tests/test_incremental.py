"""Decoding step by step against the full pass: all decoders, steps and layers."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from reference import EXACT
from small_models import BOS, CONFIG, SRC, VOCAB, make_config, make_model
from torch import Tensor, nn

import transformer_lib as tl
from transformer_lib.fast import Engine, make_engine
from transformer_lib.generation import RecomputingDecoder, make_decoder

VARIANTS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "pre-norm, no final norm": {"norm_first": True, "final_norm": False},
    "post-norm, final norm": {"final_norm": True, "norm_eps": 0.1},
    "no bias": {"attention_bias": False},
    "bias of the head": {"head_bias": True, "scale_embeddings": False},
    "learned": {"learned_positions": True, "max_len": 12},
    "norm of embeddings": {"embedding_norm_eps": 1e-5},
    "gelu": {"activation": "gelu"},
    "swish": {"activation": "swish", "n_encoder_layers": 2},
    "tied": {"tie_embeddings": "all"},
}
DECODERS = {
    "engine": make_engine,
    "engine with little room": partial(Engine, capacity=2),
    "modules": tl.IncrementalDecoder,
    "modules with little room": partial(tl.IncrementalDecoder, capacity=2),
    "recomputing": RecomputingDecoder,
}
SOME = torch.cat([SRC, SRC[:1] * 0])  # the last one is all padding
MANY = torch.cat([SOME] * 7)  # enough for all ways to multiply


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def draw_targets(n_rows: int, length: int = 9) -> Tensor:
    torch.manual_seed(1)
    return torch.randint(3, VOCAB, (n_rows, length))


def start(model: tl.Transformer, n_beams: int = 1) -> tl.IncrementalDecoder:
    decoder = tl.IncrementalDecoder(model)
    decoder.prefill(SRC, n_beams)
    return decoder


@pytest.mark.parametrize("choices", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("make", DECODERS.values(), ids=DECODERS)
@pytest.mark.parametrize(
    ("src", "n_beams"), [(SRC[:1], 1), (SOME, 3), (MANY, 1), (MANY, 3)]
)
def test_after_any_course_of_a_search_the_logits_are_those_of_the_full_pass(
    choices, make, src, n_beams
):
    model = make_model(**choices)
    decoder = make(model)
    decoder.prefill(src, n_beams)
    generator = torch.Generator().manual_seed(0)
    src = src.repeat_interleave(n_beams, 0)
    tgt = src[:, :0]
    for n_new in (1, 3, 1, 1, 2, 1):
        ids = torch.randint(1, VOCAB, (len(src), n_new), generator=generator)
        tgt = torch.cat([tgt, ids], dim=1)
        found, expected = decoder.step(ids), model(src, tgt)[:, -1]
        torch.testing.assert_close(found, expected, **EXACT)
        assert decoder.length == tgt.size(1)
        n_left = len(src) // n_beams
        parents = torch.randint(n_beams, (n_left, n_beams), generator=generator)
        decoder.reorder(parents)
        tgt = tgt[(parents + n_beams * torch.arange(n_left)[:, None]).flatten()]
        left = torch.randperm(n_left, generator=generator)[: max(n_left - 1, 1)]
        decoder.select(left)
        # The rows of these sentences, all beams of each.
        src, tgt = (x.view(n_left, n_beams, -1)[left].flatten(0, 1) for x in (src, tgt))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
@pytest.mark.parametrize("make", [make_engine, tl.IncrementalDecoder])
@pytest.mark.parametrize("src", [SRC[:1], SRC, MANY[:33]], ids=len)
def test_numbers_of_fewer_bits_agree_as_far_as_they_reach(dtype, activation, make, src):
    # wide enough for all ways to multiply
    model = make_model(d_model=96, d_ff=512, activation=activation).to(dtype)
    for parameter in model.parameters():
        parameter.mul_(0.3)
    tgt = draw_targets(len(src), 5)
    expected, decoder = model.double()(src, tgt), make(model.to(dtype))
    decoder.prefill(src)
    bound = (1e-4 if dtype == torch.float32 else 0.1) * expected.abs().max()
    for i, ids in enumerate(tgt.split(1, dim=1)):
        logits = decoder.step(ids)
        assert logits.dtype == torch.float32
        assert (logits.double() - expected[:, i]).abs().max() < bound


def observe(model: tl.Transformer, read: Callable[[], Tensor]) -> dict[str, Tensor]:
    """Read targets; keep everything that can be looked at."""
    with (
        tl.record_hidden_states(model.decoder) as states,
        tl.record_attention(model.decoder) as maps,
    ):
        features = read()
    return {"logits": model.lm_head(features), **states, **maps}


def assert_rows(found: dict, expected: dict, first: int, last: int) -> None:
    """Everything found is what was expected for the positions from first to last."""
    assert found.keys() == expected.keys()
    for name, value in found.items():
        rows = expected[name]
        if name.endswith("attn"):  # (batch, n_heads, q_len, k_len)
            k_len = last if "self" in name else rows.size(3)
            rows = rows[:, :, first:last, :k_len]
        else:
            rows = rows[:, first:last]
        torch.testing.assert_close(value, rows, **EXACT, msg=name)


@pytest.mark.parametrize("steps", [[1] * 9, [3, 1, 5]], ids=["one by one", "several"])
def test_every_layer_and_map_is_that_of_reading_at_once(steps):
    model, tgt = make_model(), draw_targets(len(SRC))
    mask = tl.padding_mask(SRC, 0)
    given = tgt, model.encode(SRC, mask), mask, tl.causal_mask(tgt.size(1))
    expected = observe(model, partial(model.decode, *given))  # without a cache
    assert len(expected) == 1 + 2 + 4  # logits, layers, attentions
    decoder = start(model)
    for new in tgt.split(steps, dim=1):
        first, last = decoder.length, decoder.length + new.size(1)
        found = observe(model, partial(decoder.read, new))
        assert_rows(found, expected, first, last)
        assert decoder.length == last


def test_keys_are_written_in_place_and_those_of_the_source_once():
    model, tgt = make_model(), draw_targets(len(SRC))
    decoder, (_, layer) = start(model), model.decoder.layers
    decoder.read(tgt[:, :1])
    room = decoder.cache.buffers[layer.self_attn]
    source = decoder.cache.source[layer.cross_attn]
    projected = []
    layer.cross_attn.k_proj.register_forward_hook(
        lambda _module, _inputs, output: projected.append(output.numel())
    )
    for ids in tgt[:, 1:].split(1, dim=1):
        decoder.read(ids)
    assert decoder.cache.buffers[layer.self_attn] is room
    assert decoder.cache.source[layer.cross_attn] is source
    assert projected == [0] * 8, "of the memory nothing is projected again"
    assert decoder.new_memory.untyped_storage().nbytes() == 0, "its copies are gone"


def test_a_shared_prefix_is_read_once():
    model, tgt = make_model(), draw_targets(len(SRC))
    other = torch.cat([tgt[:, :4], tgt[:, 4:].flip(1)], dim=1)
    assert not torch.equal(other, tgt)
    decoder = start(model)
    for n_shared in (0, 4):
        decoder.read(tgt[:, decoder.length :])
        decoder.truncate(n_shared)
        assert decoder.length == n_shared
        found = model.lm_head(decoder.read(other[:, n_shared:]))
        expected = model(SRC, other)[:, n_shared:]
        torch.testing.assert_close(found, expected, **EXACT)
        decoder.truncate(n_shared)


def test_bytes_are_those_of_keys_and_values_and_beams_share_the_source():
    decoder = start(make_model(), n_beams=3)
    decoder.read(draw_targets(12, 1))
    numbers = 2 * CONFIG.d_model * (12 * 32 + SRC.numel())  # keys and values, one layer
    assert decoder.cache.n_bytes == CONFIG.n_decoder_layers * numbers * 8  # float64
    source = decoder.cache.source.kept.values()
    assert all(kept.untyped_storage().nbytes() == kept.nbytes for kept in source)
    before = decoder.cache.n_bytes
    decoder.select(torch.tensor([3, 1]))
    assert decoder.cache.n_bytes == before / 2


class Around(nn.Module):
    """Calls a module as a function says."""

    def __init__(self, inner: nn.Module, call: Callable) -> None:
        super().__init__()
        self.inner, self.call = inner, call

    def forward(self, *inputs, **options) -> Tensor:
        return self.call(self.inner, *inputs, **options)


@pytest.mark.parametrize(
    ("name", "call", "message"),
    [
        (
            "layers.1",  # one layer where two stand
            lambda layer, x, *rest, **how: layer(layer(x, *rest, **how), *rest, **how),
            "asked twice in one step",
        ),
        (
            "layers.0.self_attn",
            lambda attention, *inputs, cache: attention(*inputs),
            "1 of 2 layers used the cache",
        ),
    ],
)
def test_an_attention_that_uses_the_cache_otherwise_is_refused(name, call, message):
    decoder = start(make_model())
    stack = decoder.model.decoder
    stack.set_submodule(name, Around(stack.get_submodule(name), call))
    with pytest.raises(ValueError, match=message):
        decoder.read(draw_targets(4, 1))


def test_a_step_that_was_broken_off_can_be_repeated():
    model, tgt = make_model(), draw_targets(4)
    expected = model(SRC, tgt)[:, -1]
    decoder = start(model)
    decoder.read(tgt[:, :3])

    def fail(*_) -> None:
        raise RuntimeError("stop")

    handle = model.decoder.layers[1].feed_forward.register_forward_hook(fail)
    with pytest.raises(RuntimeError, match="stop"):
        decoder.read(tgt[:, 3:])
    handle.remove()
    assert decoder.length == 3
    torch.testing.assert_close(decoder.step(tgt[:, 3:]), expected, **EXACT)


def test_what_stands_in_the_place_of_a_part_is_called():
    model, called = make_model(), []
    for name in ("encode", "decode"):
        part = getattr(model, name)
        setattr(model, name, lambda *a, part=part: called.append(part) or part(*a))
    start(model).step(torch.full((4, 1), BOS))
    assert len(called) == 2
    model.forward = partial(model.forward)
    with pytest.raises(ValueError, match=r"use decoder=RecomputingDecoder\(model\)"):
        make_decoder(model)


def test_what_would_be_another_rows_is_refused():
    decoder, ids = start(make_model(), 2), torch.full((8, 1), BOS)
    with pytest.raises(ValueError, match="1 rows, but the cache is for 8"):
        decoder.step(ids[:1])  # it would be taken for each of them
    decoder.step(ids)
    for length in (-1, 2):
        with pytest.raises(ValueError, match=f"{length} tokens of 1 cannot be kept"):
            decoder.truncate(length)


@pytest.mark.parametrize("make", DECODERS.values(), ids=DECODERS)
@pytest.mark.parametrize("parent", [-1, 2])
def test_a_beam_of_another_sentence_is_refused(make, parent):
    decoder = make(make_model())
    decoder.prefill(SRC, 2)
    decoder.step(torch.full((8, 1), BOS))
    with pytest.raises((ValueError, IndexError), match="beams must be from 0 to 1"):
        decoder.reorder(torch.tensor([[1, 0]] * 3 + [[0, parent]]))


@pytest.mark.parametrize("attention", ["self_attn", "cross_attn"])
@pytest.mark.parametrize("projection", ["q_proj", "k_proj", "v_proj", "out_proj"])
@pytest.mark.parametrize("make", [Engine, tl.IncrementalDecoder, RecomputingDecoder])
def test_broken_weights_give_no_answer(make, attention, projection):
    model = make_model().float()
    part = getattr(model.decoder.layers[0], attention).get_submodule(projection)
    part.bias[0] = torch.nan
    if make is Engine:
        with pytest.raises(ValueError, match=f"{projection}.bias holds NaN"):
            make(model)
        return
    for src in (SRC, SRC[:1]):
        assert model(src, src).isnan().any()
        for search in (tl.greedy_decode, tl.beam_search):
            with pytest.raises(ValueError, match="logits are not finite"):
                search(model, src, make_config(), decoder=make(model))
