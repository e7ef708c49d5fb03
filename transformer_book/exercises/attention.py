"""Graders of the chapter on scaled dot-product attention."""

import torch
from torch.overrides import TorchFunctionMode

from transformer_book.exercises.grading import Mistake, grader

_ROOT = "divide the scores by the square root of d_head: d_head ** 0.5."
_WRONG_ROOTS = [{"divisor": 1}, {"divisor": 9}]  # d_head is 9 everywhere


@grader(
    lambda: [(2 * torch.randn(9), torch.randn(5, 9))],
    "One weight for each key, and together they add up to 1.",
    (_ROOT, _WRONG_ROOTS),
    ("these are scores; softmax turns them into weights.",
     lambda query, keys: keys @ query / 3),
)  # fmt: skip
def check_weights(query, keys, divisor=3):
    """The query (d_head,) and keys (k_len, d_head) -> weights (k_len,)."""
    return (keys @ query / divisor).softmax(0)


_READY = "this softmax was ready-made; write it with exp, sum, and max."


class _NoSoftmax(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        if "softmax" in function.__name__:
            raise Mistake(_READY)
        return function(*args, **(kwargs or {}))


def _run_by_hand(answer, scores):
    with _NoSoftmax():
        return answer(scores)


@grader(
    lambda: [
        (torch.randn(2, 3, 5),), (torch.tensor([[0.0, 1.0], [1000.0, 1001.0]]),)],
    "Every row sums to 1, however large its scores are.",
    (_READY, lambda scores: scores.softmax(-1)),
    ("normalize over the last dimension, so that every row sums to 1.",
     lambda scores: check_softmax.solve(scores.mT).mT),
    ("exp(1000) is infinite; subtract each row's maximum first.",
     {"largest": lambda scores: 0.0}),
    ("subtract each row's own maximum; another row's leaves only zeros.",
     {"largest": torch.max}),
    run=_run_by_hand,
)  # fmt: skip
def check_softmax(scores, largest=lambda scores: scores.amax(-1, keepdim=True)):
    """Scores (..., k_len) of any size -> weights of the same shape."""
    exponentials = (scores - largest(scores)).exp()
    return exponentials / exponentials.sum(-1, keepdim=True)


@grader(
    lambda: [
        (torch.randn(*batch, 5, 9), *torch.randn(2, *batch, 7, 9), temperature)
        for batch, temperature in [((), 0.25), ((), 3.0), ((2, 3), 0.5)]
    ],
    "From a dictionary to a plain average, with one knob.",
    (_ROOT, _WRONG_ROOTS),
    ("softmax must run over the keys, dim=-1, so that every row sums to 1.",
     {"dim": -2}),
    ("divide the scores by the temperature, before the softmax.",
     lambda q, k, v, t: check_temperature.solve(q, k, v, 1.0),
     lambda q, k, v, t: check_temperature.solve(q, k, v, 1 / t)),
)  # fmt: skip
def check_temperature(query, key, value, temperature, divisor=3, dim=-1):
    """Attention with a temperature.

    query (..., q_len, d_head), key (..., k_len, d_head), value (..., k_len, d_value)
    and a temperature -> output (..., q_len, d_value), weights (..., q_len, k_len).
    """
    weights = (query @ key.mT / divisor / temperature).softmax(dim)
    return weights @ value, weights


def _pass_once(keys, values):
    """Yield blocks that hold nothing any more when the next one comes."""
    for block in zip(keys.split([3, 8, 5, 7]), values.split([3, 8, 5, 7]), strict=True):
        own = tuple(map(torch.clone, block))
        yield own
        for part in own:
            part.zero_()


def _draw_blocks():
    """Random scores; then scores that grow from block to block, and that fall."""
    ramp = torch.linspace(-900, 900, 23)[:, None].expand(23, 9)
    keys, values = (torch.randn(23, 9), ramp, ramp.flip(0)), torch.randn(23, 4)
    return [(torch.ones(9), _pass_once(each, values)) for each in keys]


def _attend(query, keys, values):
    return (keys @ query / 3).softmax(0) @ values


@grader(
    _draw_blocks,
    "The same output, and no weight was kept for longer than its block.",
    ("each block has its own softmax; weights must sum to 1 over all blocks.",
     lambda query, blocks: sum(_attend(query, *block) for block in blocks) / 4),
    (_ROOT, _WRONG_ROOTS),
    ("when a later block holds a larger score, the sums so far must be multiplied "
     "by exp(old maximum - new maximum).",
     {"rescale": lambda change: 1.0}),
    ("large scores give NaN; keep the largest score seen so far.",
     {"largest": lambda old, new: torch.tensor(0.0)}),
    ("a block is gone when the next one comes; keep only running sums.",
     lambda query, blocks: (
         _attend(query, *map(torch.cat, zip(*blocks, strict=True))))),
    atol=1e-4,
)  # fmt: skip
def check_streaming(query, blocks, divisor=3, largest=torch.maximum, rescale=torch.exp):
    """Attention in one pass over the blocks, with none of them kept.

    query (d_head,) and an iterable of (keys, values) with shapes (block_len, d_head)
    and (block_len, d_value) -> output (d_value,).
    """
    maximum, total, output = torch.tensor(-torch.inf), 0.0, 0.0
    for keys, values in blocks:
        scores = keys @ query / divisor
        old, maximum = maximum, largest(maximum, scores.max())
        exponentials, factor = (scores - maximum).exp(), rescale(old - maximum)
        total = total * factor + exponentials.sum()
        output = output * factor + exponentials @ values
    return output / total
