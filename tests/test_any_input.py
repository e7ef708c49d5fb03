"""Any ids, masks and texts: right shapes and numbers, or an error that says why."""

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_models import VOCAB, make_config, make_model

import transformer_lib as tl
from transformer_lib.model.attention import eager_attention

SETTINGS = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,  # the same cases every time
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
MODEL = make_model()
DTYPES = [torch.int64, torch.int32, torch.uint8, torch.bool, torch.float32]
TEXTS = st.text(max_size=20) | st.sampled_from(["\x00", "\ufeff", "אבגד", "\ud800", ""])


chances = st.integers(0, 99).map(lambda seed: torch.Generator().manual_seed(seed))


@st.composite
def tensors(draw, low=-1, high=VOCAB, dtypes=DTYPES):
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    values = torch.randint(low, high + 1, shape, generator=draw(chances))
    return values.to(draw(st.sampled_from(dtypes)))


ids = chances.map(lambda chance: torch.randint(0, VOCAB, (2, 3), generator=chance))


def masks(n_heads):
    """Masks that fit, for as many sentences and tokens as there may be."""
    shape = 3, n_heads, 3, 3
    return chances.map(lambda chance: torch.rand(shape, generator=chance) < 0.6)


def attempt(function, *arguments):
    """The result of a call, or None if it refused with a message."""
    try:
        return function(*arguments)
    except (ValueError, TypeError, IndexError, RuntimeError) as error:
        assert str(error)
        return None


@SETTINGS
@given(tensors() | ids, tensors() | ids)
def test_a_model_reads_any_ids_or_refuses_them(src, tgt_in):
    logits = attempt(MODEL, src, tgt_in)
    if logits is not None:
        assert logits.shape == (*tgt_in.shape, VOCAB)
        assert logits.isfinite().all()
        for row in range(len(src)):  # each sentence by itself
            alone = MODEL(src[row : row + 1], tgt_in[row : row + 1])[0]
            torch.testing.assert_close(logits[row], alone, rtol=0, atol=1e-10)


@SETTINGS
@given(tensors(0, 1) | masks(1) | masks(3), st.integers(1, 3), st.integers(1, 3))
def test_attention_obeys_any_mask_or_refuses_it(mask, batch, length):
    torch.manual_seed(0)
    mask = mask[:batch, :, :length, :length] if mask.dim() == 4 else mask
    attention, x = tl.MultiHeadAttention(6, 3).double(), torch.randn(batch, length, 6)
    x = x.double()
    found = attempt(attention, x, x, x, mask)
    if found is not None:
        assert found.shape == x.shape
        whole = mask.expand(batch, 3, length, length)
        q, k, v = (attention.split_heads(part(x)) for part in
                   (attention.q_proj, attention.k_proj, attention.v_proj))  # fmt: skip
        heads = torch.zeros_like(q)
        for b, h, i in whole.any(-1).nonzero().tolist():
            seen = whole[b, h, i].nonzero().flatten().tolist()
            powers = [math.exp(q[b, h, i] @ k[b, h, j] / 2**0.5) for j in seen]
            for power, j in zip(powers, seen, strict=True):
                heads[b, h, i] += power / sum(powers) * v[b, h, j]
        expected = attention.out_proj(attention.join_heads(heads))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
        attention.kernel = eager_attention
        torch.testing.assert_close(attention(x, x, x, mask), found)


@SETTINGS
@given(tensors() | ids, st.integers(1, 4))
def test_searches_answer_any_source_or_refuse_it(src, n_beams):
    config = make_config(max_len=4)
    for found in (attempt(tl.greedy_decode, MODEL, src, config),
                  attempt(tl.beam_search, MODEL, src, config, n_beams)):  # fmt: skip
        if found is not None:
            assert len(found) == len(src)
            best = [each[0] if isinstance(each, list) else each for each in found]
            assert all(math.isfinite(each.score) for each in best)
            assert all(0 <= i < VOCAB for each in best for i in each.ids)


@pytest.fixture(scope="module")
def translator():
    return tl.load("grammar")


@SETTINGS
@given(TEXTS | st.lists(TEXTS, max_size=2))
def test_any_texts_are_translated_or_refused(translator, texts):
    found = attempt(translator.translate, texts)
    assert found is None or (isinstance(texts, list) and len(found) == len(texts))
