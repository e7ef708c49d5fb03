"""Values of every kind, and a call that may refuse them only as documented."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from torch import Tensor

REFUSED = (ValueError, TypeError)
HIDDEN = (object, random.Random, torch.Generator)  # a draw changes the last two
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
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    values = torch.randint(-2, 14, shape, generator=generator).to(dtype)
    if values.dim() >= 2 and draw(st.booleans()):
        values = values.transpose(0, 1)  # other strides
    return values


def attempt(function: Any, *arguments: Any, **more: Any) -> Any:
    """Call a function; its result, or None if it refused in a documented way."""
    before = kept((arguments, more))
    try:
        result = function(*arguments, **more)
    except REFUSED as error:
        assert str(error), "an error says what is wrong"
        result = None
    assert same(before, (arguments, more)), "an argument has changed"
    return result


def kept(value: Any) -> Any:
    """A copy to compare with; what can't be copied, a generator, is left alone."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(kept, value))
    if type(value) is dict:
        return {name: kept(each) for name, each in value.items()}
    try:
        return copy.deepcopy(value)
    except TypeError:
        return value


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.device.type == "meta" or one.is_sparse:
            return True
        return bool(((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, np.ndarray):
        return repr(one) == repr(other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, torch.nn.Module) or type(one) in HIDDEN:
        return True
    return one == other or repr(one) == repr(other)


def a_generator() -> Any:
    yield "one"


def things() -> list[Any]:
    """One of each kind of thing that may end up where it does not belong."""
    two = torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    ids = torch.tensor([[5, 6, 2]])
    return [
        None, True, 0, -1, 1, 3, 10**6, 10**30, 2.5, math.nan, math.inf, -math.inf,
        "", "abc", "$x^2$", "\x00", "\ufeff", "\u202eabc", "\ud800", "a" * 10_000,
        b"abc", [], [[]], [1], [1, 2, 3], ["a"], ["a", 3], ["$x^2$", "\\frac{"],
        [math.nan], [None], [[1, 2], [3]], [("a", "b")], [10**30], (), {1, 2}, range(3),
        {}, {"a": 1}, {"a": [1, 2]}, {"a": {"b": math.nan}}, object(), a_generator, int,
        *(ids.to(dtype) for dtype in (torch.int8, torch.uint8, torch.int16,
                                      torch.int32, torch.int64, torch.bool)),
        -ids, 100 * ids, ids[:, :0], ids[:0], ids[0], torch.tensor(3.0),
        two, two.T, two[:1].expand(2, 2), two.half(), two.bfloat16(), two.double(),
        two.to(torch.complex64), two * math.nan, two * math.inf, two[None],
        two.clone().requires_grad_(), two.to_sparse(), two.to("meta"), ids.to("meta"),
        two.numpy(), two.numpy() * math.nan, np.array([None, "a"]), np.int64(3),
        np.array(["a", "b"]),
    ]  # fmt: skip


N_THINGS = len(things())
# Made anew each time: a function that changes one must not spoil the next case.
anything = st.integers(0, N_THINGS - 1).map(lambda number: things()[number])


def with_one_replaced(data: Any, good: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Good arguments but for one that is replaced by anything; and what replaces it."""
    changed = data.draw(st.sampled_from(sorted(good)))
    value = data.draw(anything)
    value = value() if value is a_generator else value
    return {**good, changed: value}, value


def holds_nan(value: Any) -> bool:
    """Whether a NaN has passed into a result."""
    if isinstance(value, Tensor):
        plain = value.is_floating_point() and value.device.type != "meta"
        return plain and bool(value.isnan().any())
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if isinstance(value, dict):
        return any(map(holds_nan, value.values()))
    if isinstance(value, (list, tuple, set)):
        return any(map(holds_nan, value))
    return isinstance(value, float) and math.isnan(value)
