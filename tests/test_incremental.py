"""Decoding step by step against the full pass: every step, every layer."""

from functools import partial

import pytest
import torch
from reference import EXACT
from small_models import BOS, CONFIG, SRC, VOCAB, make_config, make_model
from torch import Tensor, nn

from transformer_lib.acceleration import make_engine
from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.generation.incremental import (
    IncrementalDecoder,
    RecomputingDecoder,
    make_decoder,
)
from transformer_lib.interpret.recording import record_attention, record_hidden_states
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.transformer import Transformer

VARIANTS = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "no bias": {"attention_bias": False},
    "learned": {"learned_positions": True, "max_len": 12, "embedding_norm_eps": 1e-5},
}
MODELS = pytest.mark.parametrize("choices", VARIANTS.values(), ids=VARIANTS)


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


def draw_targets(n_rows: int, length: int = 9) -> Tensor:
    torch.manual_seed(1)
    return torch.randint(3, VOCAB, (n_rows, length))


def start(
    model: Transformer, n_beams: int = 1, capacity: int = 32
) -> IncrementalDecoder:
    decoder = IncrementalDecoder(model, capacity)
    decoder.prefill(SRC, n_beams)
    return decoder


def read_at_once(model: Transformer, src: Tensor, tgt: Tensor) -> dict[str, Tensor]:
    """Read whole targets without a cache; keep everything that can be looked at."""
    mask = padding_mask(src, 0)
    memory = model.encode(src, mask)
    with (
        record_hidden_states(model.decoder) as states,
        record_attention(model.decoder) as maps,
    ):
        features = model.decode(tgt, memory, mask, causal_mask(tgt.size(1)))
    return {"logits": model.lm_head(features), **states, **maps}


def read_next(decoder: IncrementalDecoder, tgt: Tensor) -> dict[str, Tensor]:
    model = decoder.model
    with (
        record_hidden_states(model.decoder) as states,
        record_attention(model.decoder) as maps,
    ):
        features = decoder.read(tgt)
    return {"logits": model.lm_head(features), **states, **maps}


def logits_of(decoder: IncrementalDecoder, tgt: Tensor) -> Tensor:
    """Logits of all new tokens: (n_rows, n_new, vocab_size)."""
    return decoder.model.lm_head(decoder.read(tgt))


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


@MODELS
@pytest.mark.parametrize("steps", [[1] * 9, [3, 1, 5]], ids=["one by one", "several"])
def test_every_step_equals_reading_at_once(choices, steps) -> None:
    model, tgt = make_model(**choices), draw_targets(len(SRC))
    expected = read_at_once(model, SRC, tgt)
    assert len(expected) == 1 + 2 + 4  # logits, layers, attentions
    decoder = start(model)
    for new in tgt.split(steps, dim=1):
        first, last = decoder.length, decoder.length + new.size(1)
        assert_rows(read_next(decoder, new), expected, first, last)
        assert decoder.length == last


def test_recomputing_is_the_model_itself() -> None:
    model, tgt = make_model(), draw_targets(len(SRC) * 2)
    found, expected = RecomputingDecoder(model), start(model, 2)
    found.prefill(SRC, 2)
    for new in tgt[:, :4].split(2, 1):
        torch.testing.assert_close(found.step(new), expected.step(new), **EXACT)
    parents = torch.tensor([[0, 0], [1, 0], [1, 1], [0, 1]])
    for decoder in (found, expected):
        decoder.reorder(parents)
        decoder.select(torch.tensor([3, 1]))
    new = tgt[[6, 7, 2, 3], 4:5]
    torch.testing.assert_close(found.step(new), expected.step(new), **EXACT)
    assert found.length == expected.length == 5


@pytest.mark.parametrize("capacity", [1, 2, 5, 9, 32])
def test_room_is_doubled_and_nothing_is_lost(capacity) -> None:
    model, tgt = make_model(), draw_targets(len(SRC))
    expected = read_at_once(model, SRC, tgt)["logits"]
    decoder = start(model, capacity=capacity)
    rooms = []
    for i in range(9):
        logits = logits_of(decoder, tgt[:, i : i + 1])
        torch.testing.assert_close(logits, expected[:, i : i + 1], **EXACT)
        rooms += [room.size(3) for room in decoder.cache.rooms.values()]
    doublings = {1: {1, 2, 4, 8, 16}, 2: {2, 4, 8, 16}, 5: {5, 10}, 9: {9}, 32: {32}}
    assert set(rooms) == doublings[capacity]


def test_keys_are_written_in_place_and_those_of_the_source_once() -> None:
    model, tgt = make_model(), draw_targets(len(SRC))
    decoder, (_, layer) = start(model), model.decoder.layers
    decoder.read(tgt[:, :1])
    room = decoder.cache.rooms[layer.self_attn]
    source = decoder.cache.source[layer.cross_attn]
    projected = []
    layer.cross_attn.k_proj.register_forward_hook(
        lambda _module, _inputs, output: projected.append(output.numel())
    )
    for ids in tgt[:, 1:].split(1, dim=1):
        decoder.read(ids)
    assert decoder.cache.rooms[layer.self_attn] is room
    assert decoder.cache.source[layer.cross_attn] is source
    assert projected == [0] * 8, "of the memory nothing is projected again"
    assert decoder.new_memory.untyped_storage().nbytes() == 0, "its copies are gone"


def test_reordered_beams_equal_their_targets_read_at_once() -> None:
    n_beams, model = 3, make_model()
    tgt = draw_targets(len(SRC) * n_beams).view(len(SRC), n_beams, -1)
    parents = torch.tensor([[0, 0, 1], [2, 1, 0], [1, 2, 2], [0, 1, 2]])
    decoder = start(model, n_beams)
    decoder.read(tgt[..., :4].flatten(0, 1))
    decoder.reorder(parents)
    found = logits_of(decoder, tgt[..., 4:].flatten(0, 1))
    for i, source in enumerate(SRC):
        for j in range(n_beams):
            whole = torch.cat([tgt[i, parents[i, j], :4], tgt[i, j, 4:]])[None]
            expected = read_at_once(model, source[source != 0][None], whole)["logits"]
            torch.testing.assert_close(found[i * n_beams + j], expected[0, 4:], **EXACT)


def test_sentences_that_are_left_go_on_as_before() -> None:
    model, tgt = make_model(), draw_targets(len(SRC) * 2)
    expected = read_at_once(model, SRC.repeat_interleave(2, 0), tgt)["logits"]
    decoder = start(model, n_beams=2)
    decoder.read(tgt[:, :5])
    before = decoder.cache.n_bytes
    decoder.select(torch.tensor([3, 1]))
    assert decoder.cache.n_bytes == before / 2
    rows = [6, 7, 2, 3]
    found = logits_of(decoder, tgt[rows, 5:])
    torch.testing.assert_close(found, expected[rows, 5:], **EXACT)


def test_a_shared_prefix_is_read_once() -> None:
    model, tgt = make_model(), draw_targets(len(SRC))
    fresh = start(model)
    fresh.read(tgt)
    fresh.truncate(0)  # nothing is shared
    assert fresh.length == 0
    other = torch.cat([tgt[:, :4], draw_targets(len(SRC), 3).flip(1)], dim=1)
    assert not torch.equal(other[:, 4:], tgt[:, 4:7])
    decoder = start(model)
    decoder.read(tgt)
    decoder.truncate(4)
    found = logits_of(decoder, other[:, 4:])
    expected = read_at_once(model, SRC, other)["logits"][:, 4:]
    torch.testing.assert_close(found, expected, **EXACT)


def test_bytes_are_those_of_keys_and_values_and_beams_share_the_source() -> None:
    decoder = start(make_model(), n_beams=3)
    decoder.read(draw_targets(12, 1))
    numbers = 2 * CONFIG.d_model * (12 * 32 + SRC.numel())  # keys and values, one layer
    assert decoder.cache.n_bytes == CONFIG.n_decoder_layers * numbers * 8  # float64
    source = decoder.cache.source.kept.values()
    assert all(kept.untyped_storage().nbytes() == kept.nbytes for kept in source)


class Looped(nn.Module):
    """One layer where two stand."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *inputs, **options) -> Tensor:
        return self.layer(self.layer(*inputs, **options), *inputs[1:], **options)


def test_an_attention_that_is_asked_twice_in_a_step_is_refused() -> None:
    model = make_model()
    model.decoder.layers[1] = Looped(model.decoder.layers[1])
    with pytest.raises(ValueError, match="asked twice in one step"):
        start(model).read(draw_targets(4, 1))


class Forgetful(nn.Module):
    """An attention that leaves the cache out."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, *inputs, cache=None) -> Tensor:
        return self.attention(*inputs)


def test_an_attention_that_leaves_the_cache_out_is_refused() -> None:
    model = make_model()
    layer = model.decoder.layers[0]
    layer.self_attn = Forgetful(layer.self_attn)
    with pytest.raises(ValueError, match="1 of 2 layers used the cache"):
        start(model).read(draw_targets(4, 1))


def test_a_step_that_was_broken_off_can_be_repeated() -> None:
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_numbers_agree_as_far_as_they_reach(dtype) -> None:
    model, tgt = make_model().to(dtype), draw_targets(len(SRC))
    expected = read_at_once(model, SRC, tgt)["logits"]
    decoder = start(model)
    found = torch.cat([logits_of(decoder, ids) for ids in tgt.split(1, 1)], dim=1)
    assert found.dtype == dtype
    assert decoder.step(tgt[:, :1]).dtype == torch.float32
    bound = 1e-4 if dtype == torch.float32 else 0.3
    torch.testing.assert_close(found, expected, rtol=0, atol=bound)


def test_a_model_is_seen_through_unless_something_hangs_on_it_as_a_whole() -> None:
    model = make_model()
    model.decoder.layers[0].feed_forward.register_forward_hook(lambda *_: None)
    assert type(make_decoder(model)) is IncrementalDecoder
    for name in ("forward", "encode", "decode"):
        model = make_model()
        setattr(model, name, partial(getattr(model, name)))
        assert type(make_decoder(model)) is RecomputingDecoder


def test_what_would_be_another_rows_is_refused() -> None:
    decoder, ids = start(make_model(), 2), torch.full((8, 1), BOS)
    with pytest.raises(ValueError, match="1 rows, but the cache is for 8"):
        decoder.step(ids[:1])  # it would be taken for each of them
    decoder.step(ids)
    for length in (-1, 2):
        with pytest.raises(ValueError, match=f"{length} tokens of 1 cannot be kept"):
            decoder.truncate(length)


@pytest.mark.parametrize("make", [IncrementalDecoder, RecomputingDecoder, make_engine])
@pytest.mark.parametrize("parent", [-1, 2])
def test_a_beam_of_another_sentence_is_refused(make, parent) -> None:
    decoder = make(make_model())
    decoder.prefill(SRC, 2)
    decoder.step(torch.full((8, 1), BOS))
    with pytest.raises((ValueError, IndexError), match="beams must be from 0 to 1"):
        decoder.reorder(torch.tensor([[1, 0]] * 3 + [[0, parent]]))


BROKEN = [
    (attention, projection)
    for attention in ("self_attn", "cross_attn")
    for projection in ("q_proj", "k_proj", "v_proj", "out_proj")
]


@pytest.mark.parametrize(("attention", "projection"), BROKEN)
@pytest.mark.parametrize("make", [make_decoder, IncrementalDecoder, RecomputingDecoder])
def test_a_model_with_broken_weights_does_not_answer(
    make, attention, projection
) -> None:
    model = make_model().float()
    part = getattr(model.decoder.layers[0], attention).get_submodule(projection)
    part.bias[0] = torch.nan
    for src in (SRC, SRC[:1]):
        assert model(src, src).isnan().any()
        for search in (greedy_decode, beam_search):
            with pytest.raises(ValueError, match="logits are not finite"):
                search(model, src, make_config(), decoder=make(model))
