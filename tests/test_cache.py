"""The decoder with a cache against the one without: every step, every layer."""

import pytest
import torch
from reference import EXACT
from small_models import BOS, CONFIG, SRC, VOCAB, make_model
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_lib.generation.incremental import DecoderCache
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


def read_next(
    model: Transformer, tgt: Tensor, cache: DecoderCache
) -> dict[str, Tensor]:
    with (
        record_hidden_states(model.decoder) as states,
        record_attention(model.decoder) as maps,
    ):
        features = model.decode_next(tgt, cache)
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


@MODELS
def test_every_step_equals_reading_at_once(choices) -> None:
    model, tgt = make_model(**choices), draw_targets(len(SRC))
    expected = read_at_once(model, SRC, tgt)
    assert len(expected) == 1 + 2 + 4  # logits, layers, attentions
    cache = model.start_cache(SRC)
    for i in range(tgt.size(1)):
        assert_rows(read_next(model, tgt[:, i : i + 1], cache), expected, i, i + 1)
        assert cache.length == i + 1


@MODELS
def test_several_new_tokens_at_once_see_no_future(choices) -> None:
    model, tgt = make_model(**choices), draw_targets(len(SRC))
    expected = read_at_once(model, SRC, tgt)
    cache = model.start_cache(SRC)
    for first, last in ((0, 3), (3, 4), (4, 9)):
        assert_rows(read_next(model, tgt[:, first:last], cache), expected, first, last)


def test_recording_is_not_needed_for_the_same_logits() -> None:
    model, tgt = make_model(), draw_targets(len(SRC))
    expected = read_at_once(model, SRC, tgt)["logits"]
    cache = model.start_cache(SRC)
    steps = [model.lm_head(model.decode_next(ids, cache)) for ids in tgt.split(1, 1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), expected, **EXACT)


@pytest.mark.parametrize("capacity", [1, 2, 5, 9, 32])
def test_room_is_doubled_and_nothing_is_lost(capacity) -> None:
    model, tgt = make_model(), draw_targets(len(SRC))
    expected = read_at_once(model, SRC, tgt)["logits"]
    mask = padding_mask(SRC, 0)
    cache = DecoderCache(
        model.decoder.layers, model.encode(SRC, mask), mask, capacity=capacity
    )
    rooms = []
    for i in range(9):
        logits = model.lm_head(model.decode_next(tgt[:, i : i + 1], cache))
        torch.testing.assert_close(logits, expected[:, i : i + 1], **EXACT)
        rooms.append(cache.layers[0].self_attn.keys_values.size(3))
    doublings = {1: {1, 2, 4, 8, 16}, 2: {2, 4, 8, 16}, 5: {5, 10}, 9: {9}, 32: {32}}
    assert set(rooms) == doublings[capacity]


def test_keys_are_written_in_place() -> None:
    model, tgt = make_model(), draw_targets(len(SRC))
    cache = model.start_cache(SRC)
    room = cache.layers[1].self_attn.keys_values
    source = cache.layers[1].cross_attn.keys_values
    for ids in tgt.split(1, dim=1):
        model.decode_next(ids, cache)
    assert cache.layers[1].self_attn.keys_values is room
    assert cache.layers[1].cross_attn.keys_values is source


def test_reordered_beams_equal_their_targets_read_at_once() -> None:
    n_beams, model = 3, make_model()
    tgt = draw_targets(len(SRC) * n_beams).view(len(SRC), n_beams, -1)
    parents = torch.tensor([[0, 0, 1], [2, 1, 0], [1, 2, 2], [0, 1, 2]])
    cache = model.start_cache(SRC, n_beams)
    model.decode_next(tgt[..., :4].flatten(0, 1), cache)
    cache.reorder(parents)
    found = model.lm_head(model.decode_next(tgt[..., 4:].flatten(0, 1), cache))
    for i, source in enumerate(SRC):
        for j in range(n_beams):
            whole = torch.cat([tgt[i, parents[i, j], :4], tgt[i, j, 4:]])[None]
            expected = read_at_once(model, source[source != 0][None], whole)["logits"]
            torch.testing.assert_close(found[i * n_beams + j], expected[0, 4:], **EXACT)


def test_beams_that_stay_are_not_copied() -> None:
    model = make_model()
    cache = model.start_cache(SRC, n_beams=3)
    model.decode_next(draw_targets(12), cache)
    before = cache.keys_values.clone()
    with _Copies() as copies:
        cache.reorder(torch.tensor([[0, 1, 2]] * 4))
    assert copies.n == 0
    with _Copies() as copies:
        cache.reorder(torch.tensor([[0, 1, 2], [0, 0, 2], [0, 1, 2], [2, 1, 0]]))
    assert copies.n == 3  # rows 4, 9 and 11
    sources = [0, 1, 2, 3, 3, 5, 6, 7, 8, 11, 10, 9]
    used = (Ellipsis, slice(9), slice(None))
    assert torch.equal(cache.keys_values[used], before[:, :, sources][used])


class _Copies(TorchDispatchMode):
    """Count what is copied over something that was there before."""

    n = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.n += func is torch.ops.aten.copy_.default
        return func(*args, **(kwargs or {}))


def test_a_layer_without_room_says_so() -> None:
    model = make_model()
    cache = model.start_cache(SRC)
    model.decode_next(draw_targets(4, 9), cache)
    x = torch.zeros(4, 24, CONFIG.d_model).double()
    with pytest.raises(ValueError, match="room for 32 tokens, not 33"):
        model.decoder.layers[0](x, cache=cache.layers[0])
    assert cache.length == 9


def test_sentences_that_are_left_go_on_as_before() -> None:
    model, tgt = make_model(), draw_targets(len(SRC) * 2)
    expected = read_at_once(model, SRC.repeat_interleave(2, 0), tgt)["logits"]
    cache = model.start_cache(SRC, n_beams=2)
    model.decode_next(tgt[:, :5], cache)
    before = cache.n_bytes
    cache.select(torch.tensor([3, 1]))
    assert (cache.n_rows, cache.n_sentences) == (4, 2)
    assert cache.n_bytes == before / 2
    rows = [6, 7, 2, 3]
    found = model.lm_head(model.decode_next(tgt[rows, 5:], cache))
    torch.testing.assert_close(found, expected[rows, 5:], **EXACT)


def test_a_shared_prefix_is_read_once() -> None:
    model, tgt = make_model(), draw_targets(len(SRC))
    other = torch.cat([tgt[:, :4], draw_targets(len(SRC), 3).flip(1)], dim=1)
    assert not torch.equal(other[:, 4:], tgt[:, 4:7])
    cache = model.start_cache(SRC)
    model.decode_next(tgt, cache)
    cache.truncate(4)
    found = model.lm_head(model.decode_next(other[:, 4:], cache))
    expected = read_at_once(model, SRC, other)["logits"][:, 4:]
    torch.testing.assert_close(found, expected, **EXACT)


def test_bytes_are_those_of_keys_and_values() -> None:
    cache = make_model().start_cache(SRC, n_beams=3)
    numbers = 2 * CONFIG.d_model * (12 * 32 + SRC.numel())  # keys and values, one layer
    assert cache.n_bytes == CONFIG.n_decoder_layers * numbers * 8  # float64


def test_beams_share_one_cross_attention() -> None:
    model = make_model()
    cache = model.start_cache(SRC, n_beams=3)
    with record_attention(model) as maps:
        model.decode_next(draw_targets(12, 1), cache)
    assert maps["decoder.layers.0.cross_attn"].shape == (4, 3, 3, 5)
    assert maps["decoder.layers.0.self_attn"].shape == (12, 3, 1, 1)
    assert cache.layers[0].cross_attn.keys_values.size(1) == len(SRC)


def test_a_cache_of_another_model_batch_or_place_is_refused() -> None:
    model, tgt = make_model(), draw_targets(4, 1)
    cache = model.start_cache(SRC)
    with pytest.raises(ValueError, match="3 rows are to be decoded, .* made for 4"):
        model.decode_next(tgt[:3], cache)
    with pytest.raises(ValueError, match="made for another layer"):
        make_model().decode_next(tgt, cache)
    with pytest.raises(ValueError, match="decoder of 2 layers, but this one has 1"):
        make_model(n_decoder_layers=1).decode_next(tgt, cache)
    with pytest.raises(ValueError, match="stands for memory and masks"):
        model.decoder(torch.zeros(4, 1, 6).double(), model.encode(SRC), cache=cache)
    with pytest.raises(ValueError, match="needs the memory, or a cache"):
        model.decoder(torch.zeros(4, 1, 6).double())
    assert cache.length == 0


def test_a_cache_that_cannot_be_made_or_cut_is_refused() -> None:
    model = make_model()
    for n_beams, capacity in ((0, 1), (1, 0)):
        with pytest.raises(
            ValueError, match=f"at least 1, not {n_beams} and {capacity}"
        ):
            DecoderCache(
                model.decoder.layers, model.encode(SRC), None, n_beams, capacity
            )
    with pytest.raises(ValueError, match="0 layers has nothing to remember"):
        DecoderCache([], model.encode(SRC))
    layers = [*model.decoder.layers, *make_model(n_heads=2).decoder.layers]
    with pytest.raises(ValueError, match=r"as many heads, not \[2, 3\]"):
        DecoderCache(layers, model.encode(SRC))
    cache = model.start_cache(SRC)
    for length in (-1, 1):
        with pytest.raises(ValueError, match=f"holds 0 tokens .* cut to {length}"):
            cache.truncate(length)


def test_learned_positions_fill_the_cache() -> None:
    model = make_model(learned_positions=True, max_len=5)
    cache = model.start_cache(SRC)
    model.decode_next(draw_targets(4, 5), cache)
    with pytest.raises(ValueError, match="6 positions are asked for, but only 5"):
        model.decode_next(draw_targets(4, 1), cache)
    assert cache.length == 5  # and nothing was half read


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_numbers_agree_as_far_as_they_reach(dtype) -> None:
    model, tgt = make_model().to(dtype), draw_targets(len(SRC))
    expected = read_at_once(model, SRC, tgt)["logits"]
    cache = model.start_cache(SRC)
    steps = [model.lm_head(model.decode_next(ids, cache)) for ids in tgt.split(1, 1)]
    found = torch.cat(steps, dim=1)
    assert found.dtype == dtype
    bound = 1e-4 if dtype == torch.float32 else 0.3
    torch.testing.assert_close(found, expected, rtol=0, atol=bound)


def test_one_start_token_reads_as_the_first() -> None:
    model, start = make_model(), torch.full((4, 1), BOS)
    found = model.lm_head(model.decode_next(start, model.start_cache(SRC)))
    torch.testing.assert_close(found, model(SRC, start), **EXACT)
