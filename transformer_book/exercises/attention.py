"""Graders of the chapter on scaled dot-product attention."""

import torch

from transformer_book.exercises.grading import grader

# d_head is 9 everywhere: not divided, divided by d_head, and by d_head ** 1 / 2.
_WRONG_DIVISORS = [{"divisor": divisor} for divisor in (1, 9, 4.5)]
_ROOT = "divide the scores by the square root of d_head: d_head ** 0.5."


@grader(
    cases=lambda: [(2 * torch.randn(9), torch.randn(5, 9))],
    right="One weight for each key, and together they add up to 1.",
    mistakes=lambda solve: {
        _ROOT: _WRONG_DIVISORS,
        "these are scores; softmax turns them into weights.":
            [lambda query, keys: keys @ query, lambda query, keys: keys @ query / 3],
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
    right="Every row sums to 1, however large its scores are.",
    mistakes=lambda solve: {
        "normalize over the last dimension, so that every row sums to 1.":
            [{"dim": -2, "largest": torch.max}, {"dim": 0, "largest": torch.max},
             lambda scores: solve(scores.flatten()).view_as(scores)],
        "exp(1000) is infinite; subtract each row's maximum first.":
            {"largest": lambda scores: 0.0},
        "subtract each row's own maximum; another row's leaves only zeros.":
            {"largest": torch.max},
    },
)  # fmt: skip
def check_softmax(scores, dim=-1, largest=lambda s: s.amax(-1, keepdim=True)):
    """Scores (..., k_len) of any size -> weights of the same shape."""
    exponentials = (scores - largest(scores)).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def _draw_attention():
    flat = torch.randn(5, 9), torch.randn(7, 9), torch.randn(7, 4)
    batch = *torch.randn(2, 2, 3, 7, 9), torch.randn(2, 3, 7, 4)
    return [(*flat, 1.0), (*flat, 0.25), (*flat, 3.0), (*batch, 0.5)]


@grader(
    cases=_draw_attention,
    right="From a dictionary to a plain average, with one knob.",
    mistakes=lambda solve: {
        "return two things: first the output, then the weights.":
            [lambda *given: solve(*given)[0], lambda *given: solve(*given)[::-1]],
        _ROOT: _WRONG_DIVISORS,
        "softmax must run over the keys, dim=-1, so that every row sums to 1.":
            [{"dim": -2}, {"dim": 0}],
        "divide the scores by the temperature, before the softmax.":
            [lambda q, k, v, t: solve(q, k, v, 1.0),
             lambda q, k, v, t: solve(q, k, v, 1 / t),
             lambda q, k, v, t: tuple(part / t for part in solve(q, k, v, 1.0))],
    },
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
    values = torch.randn(23, 4)
    ramp = torch.linspace(-900, 900, 23)[:, None].expand(23, 9)
    pairs = (2 * torch.randn(9), torch.randn(23, 9)), (torch.ones(9), ramp)
    pairs = *pairs, (torch.ones(9), ramp.flip(0))
    return [(query, _pass_once(keys, values)) for query, keys in pairs]


def _per_block(combine):
    """Attend within each block, then combine the (n_blocks, d_value) outputs."""
    return lambda query, blocks: combine(
        torch.stack([(keys @ query / 3).softmax(0) @ values for keys, values in blocks])
    )


def _joined(query, blocks):
    keys, values = map(torch.cat, zip(*blocks, strict=True))
    return (keys @ query / 3).softmax(0) @ values


@grader(
    cases=_draw_blocks,
    right="The same output, and no weight was kept for longer than its block.",
    atol=1e-4,
    mistakes=lambda solve: {
        "each block has its own softmax; weights must sum to 1 over all blocks.":
            [_per_block(lambda z: z.mean(0)), _per_block(lambda z: z.sum(0))],
        _ROOT: _WRONG_DIVISORS,
        "when a later block holds a larger score, the sums so far must be multiplied "
        "by exp(old maximum - new maximum).": {"rescale": lambda old, new: 1.0},
        "large scores give NaN; keep the largest score seen so far.":
            {"largest": lambda old, new: torch.tensor(0.0)},
        "a block is gone when the next one comes; keep only running sums.": _joined,
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
