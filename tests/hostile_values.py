"""Values of every kind, and a call that may refuse them only as documented."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from torch import Tensor

REFUSED = (ValueError, TypeError)
fast = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,  # the same cases every time
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

numbers = st.one_of(
    st.integers(-3, 12),
    st.sampled_from([0.0, 0.5, 1.0, 1.5, -1.0, math.nan, math.inf, -math.inf]),
    st.sampled_from([True, False, None, "", "x", "2", 10**6]),
)
sizes = st.one_of(st.integers(1, 8), numbers.filter(lambda x: x != 10**6))
texts = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["\x00", "\ufeff", "אבגד", "\u202eabc", "a" * 10_000, "$x^2$", "👩‍👧", "\ud800"]
    ),
)
dtypes = st.sampled_from(
    [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
     torch.float32, torch.float16, torch.bfloat16, torch.complex64]
)  # fmt: skip


@st.composite
def tensors(draw: Any, most: int = 4) -> Tensor:
    shape = [draw(st.integers(0, 5)) for _ in range(draw(st.integers(0, most)))]
    dtype = draw(dtypes)
    values = torch.randint(-2, 14, shape).to(dtype)
    if values.dim() >= 2 and draw(st.booleans()):
        values = values.transpose(0, 1)  # other strides
    return values


def attempt(function: Any, *arguments: Any, **more: Any) -> Any:
    """Call a function; its result, or None if it refused in a documented way."""
    before = copy.deepcopy((arguments, more))
    try:
        result = function(*arguments, **more)
    except REFUSED as error:
        assert str(error), "an error says what is wrong"
        result = None
    assert same(before, (arguments, more)), "an argument has changed"
    return result


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return isinstance(one, torch.nn.Module) or one == other or repr(one) == repr(other)
