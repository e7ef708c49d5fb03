"""Graders of the chapter on scaled dot-product attention."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_book.exercises.grading import Grader, Seen


class _Spy(TorchDispatchMode):
    """Note which softmax runs, and the most entries of a joined tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.softmax: str | None = None
        self.largest_joined = 0

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = operation.name().removeprefix("aten::")
        if "softmax" in name or "logsumexp" in name:
            self.softmax = self.softmax or name.lstrip("_")
        result = operation(*args, **(kwargs or {}))
        if name.startswith(("cat", "stack")):
            self.largest_joined = max(self.largest_joined, result.numel())
        return result


def _watch(answer, *case):
    with _Spy() as spy:
        return answer(*case), spy


def _weights(query, keys, divisor=None):
    return (keys @ query / (divisor or query.numel() ** 0.5)).softmax(0)


check_weights = Grader(
    "query (d_head,) and keys (k_len, d_head) -> weights (k_len,)",
    # d_head is 9, and there are 5 keys: all the divisors below differ.
    cases=lambda: [(2 * torch.randn(9), torch.randn(5, 9))],
    solution=_weights,
    right="One weight for each key, and together they add up to 1.",
    mistakes={
        "these are the raw scores; divide by sqrt(d_head), then apply softmax.":
            lambda query, keys: keys @ query,
        "these are scaled scores; apply softmax to turn them into weights.":
            lambda query, keys: keys @ query / 3,
        "the scores are not divided by sqrt(d_head).": {"divisor": 1},
        "the scores are divided by d_head; divide by its square root.": {"divisor": 9},
        "the scores are divided by d_head / 2: ** binds tighter than /, so write "
        "d_head ** 0.5 or math.sqrt(d_head).": {"divisor": 9**1 / 2},
        "the scores are divided by the square root of the number of keys; d_head is "
        "the width of a key.": {"divisor": 5**0.5},
        "the scores are multiplied by sqrt(d_head), not divided.": {"divisor": 9**-0.5},
        "these are exponentials; divide them by their sum.":
            lambda query, keys: (keys @ query / 3).exp(),
    },
)  # fmt: skip


def _softmax(scores, dim=-1, largest=lambda s: s.max(-1, keepdim=True).values):
    exponentials = (scores - largest(scores)).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


check_softmax = Grader(
    "scores (..., k_len) -> weights of the same shape, for scores of any size",
    cases=lambda: [
        (torch.randn(2, 3, 5),),
        (torch.tensor([[1000.0, 999.0], [998.0, 1000.0]]),),
        (torch.tensor([[0.0, 1.0], [1000.0, 1001.0]]),),
    ],
    run=_watch,
    view=lambda result, scores: result[0],
    solution=_softmax,
    right="Every row sums to 1, however large its scores are.",
    mistakes={
        "this calls {}; build it from exp and sum.":
            Seen(lambda result, scores: result[1].softmax,
                 lambda scores: scores.log_softmax(-1).exp()),
        "this normalizes over the queries (dim=-2); every row must sum to 1.":
            {"dim": -2, "largest": torch.max},
        "this normalizes over the first dimension; use the last one.":
            {"dim": 0, "largest": torch.max},
        "all entries together sum to 1; every row must do so by itself.":
            lambda scores: _softmax(scores.flatten()).view_as(scores),
        "exp(1000) is infinite; subtract each row's maximum first.":
            {"largest": lambda scores: 0.0},
        "one row's maximum is subtracted from another row, whose exponentials all "
        "become 0; subtract each row's own maximum.": {"largest": torch.max},
        "large scores get different weights than small ones that differ by as much.":
            lambda scores: _softmax(scores.clamp(max=50)),
    },
)  # fmt: skip


def _attend(query, key, value, temperature, divisor=None, dim=-1, heat=lambda t: t):
    scores = query @ key.mT / (divisor or query.size(-1) ** 0.5)
    weights = (scores / heat(temperature)).softmax(dim)
    return weights @ value, weights


def _late(query, key, value, temperature):
    """Divide the weights instead of the scores."""
    _, weights = _attend(query, key, value, 1.0)
    return weights / temperature @ value, weights / temperature


check_temperature = Grader(
    "query (..., q_len, d_head), key (..., k_len, d_head), value (..., k_len, d_value) "
    "and a temperature -> output (..., q_len, d_value), weights (..., q_len, k_len)",
    # d_head is 9, and there are 7 keys: all the divisors below differ.
    cases=lambda: [
        (2 * torch.randn(5, 9), torch.randn(7, 9), torch.randn(7, 4), temperature)
        for temperature in (1.0, 0.25, 3.0)
    ]
    + [(*torch.randn(2, 2, 3, 7, 9), torch.randn(2, 3, 7, 4), 0.5)],
    solution=_attend,
    right="From a dictionary to a plain average, with one knob.",
    mistakes={
        "return two things, the output and the weights.":
            lambda q, k, v, t: _attend(q, k, v, t)[0],
        "the order is wrong: return the output first, then the weights.":
            lambda q, k, v, t: _attend(q, k, v, t)[::-1],
        "these are the raw scores; they need a softmax.":
            lambda q, k, v, t: (q @ k.mT / 3 / t @ v, q @ k.mT / 3 / t),
        "the scores are not divided by sqrt(d_head).": {"divisor": 1},
        "the scores are divided by d_head; divide by its square root.": {"divisor": 9},
        "the scores are divided by d_head / 2: ** binds tighter than /, so write "
        "d_head ** 0.5 or math.sqrt(d_head).": {"divisor": 9 / 2},
        "the scores are divided by the square root of the number of keys; d_head is "
        "the width of a key.": {"divisor": 7**0.5},
        "softmax runs down the columns, over the queries; use dim=-1, so that every "
        "row sums to 1.": {"dim": -2},
        "the temperature is not used.": {"heat": lambda t: 1.0},
        "the scores are multiplied by the temperature; divide by it.":
            {"heat": lambda t: 1 / t},
        "the temperature divides the weights; divide the scores, before the softmax.":
            _late,
        "with a batch in front, the wrong dimensions are transposed; use "
        "transpose(-2, -1).":
            lambda q, k, v, t: _attend(q, k if k.dim() == 2 else k.flip(-3), v, t),
        "softmax runs over the first dimension; use dim=-1, which is the last one of "
        "any tensor.":
            lambda q, k, v, t: _attend(q, k, v, t, dim=-1 if q.dim() == 2 else 0),
    },
)  # fmt: skip


def _stream(query, blocks, divisor=None, rescale=lambda old, new: (old - new).exp()):
    """One pass over the blocks; the sums so far are rescaled in each."""
    maximum, total, output = torch.tensor(-torch.inf), 0.0, 0.0
    for keys, values in blocks:
        scores = keys @ query / (divisor or query.numel() ** 0.5)
        old, maximum = maximum, torch.maximum(maximum, scores.max())
        exponentials, factor = (scores - maximum).exp(), rescale(old, maximum)
        total = total * factor + exponentials.sum()
        output = output * factor + exponentials @ values
    return output / total


def _without_maximum(query, blocks):
    total, output = 0.0, 0.0
    for keys, values in blocks:
        exponentials = (keys @ query / query.numel() ** 0.5).exp()
        total, output = total + exponentials.sum(), output + exponentials @ values
    return output / total


def _per_block(combine):
    """Attend within each block, then combine the (n_blocks, d_value) outputs."""

    def answer(query, blocks):
        outputs = [_weights(query, keys) @ values for keys, values in blocks]
        return combine(torch.stack(outputs))

    return answer


def _joined(query, blocks):
    keys, values = map(torch.cat, zip(*blocks, strict=True))
    return _weights(query, keys) @ values


def _blocks():
    """Random scores; then scores that grow from block to block, and that fall."""
    sizes, values = [3, 8, 5, 7], torch.randn(23, 4)
    ramp = torch.linspace(-900, 900, 23)[:, None].expand(23, 9)
    cases = (2 * torch.randn(9), torch.randn(23, 9)), (torch.ones(9), ramp)
    return [
        (query, zip(keys.split(sizes), values.split(sizes), strict=True))
        for query, keys in (*cases, (torch.ones(9), ramp.flip(0)))
    ]


check_streaming = Grader(
    "query (d_head,) and an iterable of (keys, values) with shapes (block_len, d_head) "
    "and (block_len, d_value) -> output (d_value,), with no block kept",
    cases=_blocks,
    run=_watch,
    view=lambda result, query, blocks: result[0],
    solution=_stream,
    right="The same output, and no weight was kept for longer than its block.",
    atol=1e-4,
    mistakes={
        "each block has its own softmax here, and the results are averaged; weights "
        "must sum to 1 over all blocks together.": _per_block(lambda z: z.mean(0)),
        "each block has its own softmax here, and the results are added; weights must "
        "sum to 1 over all blocks together.": _per_block(lambda z: z.sum(0)),
        "only the last block counts; add up all of them.":
            _per_block(lambda z: z[-1]),
        "only the first block counts; go on to the others.": _per_block(lambda z: z[0]),
        "the scores are not divided by sqrt(d_head).": {"divisor": 1},
        "when a later block holds a larger score, the sums so far must be multiplied "
        "by exp(old maximum - new maximum).":
            {"rescale": lambda old, new: torch.tensor(1.0)},
        "large scores give NaN; keep the largest score seen so far.": _without_maximum,
        "the blocks are joined again; keep only running sums.":
            Seen(lambda result, query, blocks: result[1].largest_joined >= 23, _joined),
    },
)  # fmt: skip
