"""Graders of the chapter on scaled dot-product attention."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_book.exercises.grading import Seen, grader


class _Spy(TorchDispatchMode):
    """Note the name and the result of every operation."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        self.seen.append((operation.name().removeprefix("aten::").lstrip("_"), result))
        return result


def _watch(answer, *case):
    with _Spy() as spy:
        return answer(*case), spy


def _softmax_called(result, *case):
    names = (name for name, _ in result[1].seen)
    return next((n for n in names if "softmax" in n or "logsumexp" in n), None)


def _blocks_joined(result, *case):
    joined = (x for n, x in result[1].seen if n.startswith(("cat", "stack")))
    return any(len(x) >= 23 for x in joined)


def _wrong_divisors(d_head, k_len):
    return {
        "the scores are not divided by sqrt(d_head).": {"divisor": 1},
        "the scores are divided by d_head; divide by its square root.":
            {"divisor": d_head},
        "the scores are divided by d_head / 2: ** binds tighter than /, so write "
        "d_head ** 0.5 or math.sqrt(d_head).": {"divisor": d_head / 2},
        "the scores are divided by the square root of the number of keys; d_head is "
        "the width of a key.": {"divisor": k_len**0.5},
    }  # fmt: skip


@grader(
    # d_head is 9, and there are 5 keys: all divisors differ.
    cases=lambda: [(2 * torch.randn(9), torch.randn(5, 9))],
    right="One weight for each key, and together they add up to 1.",
    mistakes=lambda solve: {
        "these are the raw scores; divide by sqrt(d_head), then apply softmax.":
            lambda query, keys: keys @ query,
        "these are scaled scores; apply softmax to turn them into weights.":
            lambda query, keys: keys @ query / 3,
        **_wrong_divisors(9, 5),
        "the scores are multiplied by sqrt(d_head), not divided.": {"divisor": 1 / 3},
        "these are exponentials; divide them by their sum.":
            lambda query, keys: (keys @ query / 3).exp(),
    },
)  # fmt: skip
def check_weights(query, keys, divisor=3):
    """The query (d_head,) and keys (k_len, d_head) -> weights (k_len,)."""
    return (keys @ query / divisor).softmax(0)


@grader(
    cases=lambda: [
        (torch.randn(2, 3, 5),),
        (torch.tensor([[1000.0, 999.0], [998.0, 1000.0]]),),
        (torch.tensor([[0.0, 1.0], [1000.0, 1001.0]]),),
    ],
    run=_watch,
    view=lambda result, scores: result[0],
    right="Every row sums to 1, however large its scores are.",
    mistakes=lambda solve: {
        "this calls {}; build it from exp and sum.":
            Seen(_softmax_called, [lambda scores: scores.log_softmax(-1).exp()]),
        "this normalizes over the queries (dim=-2); every row must sum to 1.":
            {"dim": -2, "largest": torch.max},
        "this normalizes over the first dimension; use the last one.":
            {"dim": 0, "largest": torch.max},
        "all entries together sum to 1; every row must do so by itself.":
            lambda scores: solve(scores.flatten()).view_as(scores),
        "exp(1000) is infinite; subtract each row's maximum first.":
            {"largest": lambda scores: 0.0},
        "one row's maximum is subtracted from another row, whose exponentials all "
        "become 0; subtract each row's own maximum.": {"largest": torch.max},
        "large scores get different weights than small ones that differ by as much.":
            lambda scores: solve(scores.clamp(max=50)),
    },
)  # fmt: skip
def check_softmax(scores, dim=-1, largest=lambda s: s.amax(-1, keepdim=True)):
    """Scores (..., k_len) of any size -> weights of the same shape."""
    exponentials = (scores - largest(scores)).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


@grader(
    # d_head is 9, and there are 7 keys: all divisors differ.
    cases=lambda: [
        *((2 * torch.randn(5, 9), torch.randn(7, 9), torch.randn(7, 4), temperature)
          for temperature in (1.0, 0.25, 3.0)),
        (*torch.randn(2, 2, 3, 7, 9), torch.randn(2, 3, 7, 4), 0.5),
    ],
    right="From a dictionary to a plain average, with one knob.",
    mistakes=lambda solve: {
        "return two things, the output and the weights.":
            lambda *given: solve(*given)[0],
        "the order is wrong: return the output first, then the weights.":
            lambda *given: solve(*given)[::-1],
        "these are the raw scores; they need a softmax.":
            lambda q, k, v, t: (q @ k.mT / 3 / t @ v, q @ k.mT / 3 / t),
        **_wrong_divisors(9, 7),
        "softmax runs down the columns, over the queries; use dim=-1, so that every "
        "row sums to 1.": {"dim": -2},
        "the temperature is not used.": lambda q, k, v, t: solve(q, k, v, 1.0),
        "the scores are multiplied by the temperature; divide by it.":
            lambda q, k, v, t: solve(q, k, v, 1 / t),
        "the temperature divides the weights; divide the scores, before the softmax.":
            lambda q, k, v, t: tuple(part / t for part in solve(q, k, v, 1.0)),
        "with a batch in front, the wrong dimensions are transposed; use "
        "transpose(-2, -1).":
            lambda q, k, v, t: solve(q, k if k.dim() == 2 else k.flip(-3), v, t),
        "softmax runs over the first dimension; use dim=-1, which is the last one of "
        "any tensor.":
            lambda q, k, v, t: solve(q, k, v, t, dim=-1 if q.dim() == 2 else 0),
    },
)  # fmt: skip
def check_temperature(query, key, value, temperature, divisor=3, dim=-1):
    """Attention with a temperature.

    query (..., q_len, d_head), key (..., k_len, d_head), value (..., k_len, d_value)
    and a temperature -> output (..., q_len, d_value), weights (..., q_len, k_len).
    """
    weights = (query @ key.mT / divisor / temperature).softmax(dim)
    return weights @ value, weights


def _blocks():
    """Random scores; then scores that grow from block to block, and that fall."""
    sizes, values = [3, 8, 5, 7], torch.randn(23, 4)
    ramp = torch.linspace(-900, 900, 23)[:, None].expand(23, 9)
    return [
        (query, zip(keys.split(sizes), values.split(sizes), strict=True))
        for query, keys in (
            (2 * torch.randn(9), torch.randn(23, 9)),
            (torch.ones(9), ramp),
            (torch.ones(9), ramp.flip(0)),
        )
    ]


def _per_block(combine):
    """Attend within each block, then combine the (n_blocks, d_value) outputs."""
    return lambda query, blocks: combine(
        torch.stack([(keys @ query / 3).softmax(0) @ values for keys, values in blocks])
    )


def _joined(query, blocks):
    keys, values = map(torch.cat, zip(*blocks, strict=True))
    return (keys @ query / 3).softmax(0) @ values


@grader(
    cases=_blocks,
    run=_watch,
    view=lambda result, query, blocks: result[0],
    right="The same output, and no weight was kept for longer than its block.",
    atol=1e-4,
    mistakes=lambda solve: {
        "each block has its own softmax here, and the results are averaged; weights "
        "must sum to 1 over all blocks together.": _per_block(lambda z: z.mean(0)),
        "each block has its own softmax here, and the results are added; weights must "
        "sum to 1 over all blocks together.": _per_block(lambda z: z.sum(0)),
        "only the last block counts; add up all of them.": _per_block(lambda z: z[-1]),
        "only the first block counts; go on to the others.": _per_block(lambda z: z[0]),
        "the scores are not divided by sqrt(d_head).": {"divisor": 1},
        "when a later block holds a larger score, the sums so far must be multiplied "
        "by exp(old maximum - new maximum).": {"rescale": lambda old, new: 1.0},
        "large scores give NaN; keep the largest score seen so far.":
            {"largest": lambda old, new: torch.tensor(0.0)},
        "the blocks are joined again; keep only running sums.":
            Seen(_blocks_joined, [_joined]),
    },
)  # fmt: skip
def check_streaming(
    query,
    blocks,
    divisor=3,
    largest=torch.maximum,
    rescale=lambda old, new: (old - new).exp(),
):
    """Attention in one pass over the blocks, with none of them kept.

    query (d_head,) and an iterable of (keys, values) with shapes (block_len, d_head)
    and (block_len, d_value) -> output (d_value,).
    """
    maximum, total, output = torch.tensor(-torch.inf), 0.0, 0.0
    for keys, values in blocks:
        scores = keys @ query / divisor
        old, maximum = maximum, largest(maximum, scores.max())
        exponentials, factor = (scores - maximum).exp(), rescale(old, maximum)
        total = total * factor + exponentials.sum()
        output = output * factor + exponentials @ values
    return output / total
