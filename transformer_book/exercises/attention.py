"""Graders of the chapter on scaled dot-product attention."""

import torch

from transformer_book.exercises.grading import Mistake, grader, replacing

# d_head is 9 in all cases: without the root, scores are 3 times as large.
_ROOT = "divide the scores by the square root of d_head: d_head ** 0.5."


@grader(
    cases=lambda: [(2 * torch.randn(9), torch.randn(5, 9))],
    right="One weight for each key, and together they add up to 1.",
)
def check_weights(query, keys):
    """The query (d_head,) and keys (k_len, d_head) -> weights (k_len,)."""
    return (keys @ query / len(query) ** 0.5).softmax(0)


check_weights.mistake(
    _ROOT,
    lambda query, keys: check_weights.solve(query * 3, keys),
    lambda query, keys: check_weights.solve(query / 3, keys),
)
check_weights.mistake(
    "these are scores; softmax turns them into weights.",
    lambda query, keys: keys @ query / 3,
)


_READY = "this softmax was ready-made; write it with exp, sum, and max."


def _refuse(*_, **__):
    raise Mistake(_READY)


def _run_by_hand(answer, scores):
    with replacing(["softmax", "log_softmax"], lambda _: _refuse):
        return answer(scores)


@grader(
    cases=lambda: [
        (torch.randn(2, 3, 5),),
        (torch.tensor([[0.0, 1.0], [1000.0, 1001.0]]),),
    ],
    right="Every row sums to 1, however large its scores are.",
    run=_run_by_hand,
)
def check_softmax(scores):
    """Scores (..., k_len) of any size -> weights of the same shape."""
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(-1, keepdim=True)


def _without_maximum(scores):
    return scores.exp() / scores.exp().sum(-1, keepdim=True)


check_softmax.mistake(
    _READY,
    lambda scores: scores.softmax(-1),
    lambda scores: torch.softmax(scores, -1),
)
check_softmax.mistake(
    "normalize over the last dimension, so that every row sums to 1.",
    lambda scores: check_softmax.solve(scores.mT).mT,
)
check_softmax.mistake(
    "exp(1000) is infinite; subtract each row's maximum first.", _without_maximum
)
check_softmax.mistake(
    "subtract each row's own maximum; another row's leaves only zeros.",
    lambda scores: _without_maximum(scores - scores.max()),
)


@grader(
    cases=lambda: [
        (torch.randn(*batch, 5, 9), *torch.randn(2, *batch, 7, 9), temperature)
        for batch, temperature in [((), 0.25), ((), 3.0), ((2, 3), 0.5)]
    ],
    right="From a dictionary to a plain average, with one knob.",
)
def check_temperature(query, key, value, temperature):
    """Attention with a temperature.

    query (..., q_len, d_head), key (..., k_len, d_head), value (..., k_len, d_value)
    and a temperature -> output (..., q_len, d_value), weights (..., q_len, k_len).
    """
    scores = query @ key.mT / query.size(-1) ** 0.5
    weights = (scores / temperature).softmax(-1)
    return weights @ value, weights


def _softmax_over_queries(query, key, value, temperature):
    weights = (query @ key.mT / 3 / temperature).softmax(-2)
    return weights @ value, weights


check_temperature.mistake(
    _ROOT,
    lambda query, *others: check_temperature.solve(query * 3, *others),
    lambda query, *others: check_temperature.solve(query / 3, *others),
)
check_temperature.mistake(
    "softmax must run over the keys, dim=-1, so that every row sums to 1.",
    _softmax_over_queries,
)
check_temperature.mistake(
    "divide the scores by the temperature, before the softmax.",
    lambda q, k, v, temperature: check_temperature.solve(q, k, v, 1.0),
    lambda q, k, v, temperature: check_temperature.solve(q, k, v, 1 / temperature),
)


def _pass_once(keys, values):
    """Yield blocks that hold nothing any more when the next one comes."""
    for block in zip(keys.split([3, 8, 5, 7]), values.split([3, 8, 5, 7]), strict=True):
        own = tuple(map(torch.clone, block))
        yield own
        for tensor in own:
            tensor.zero_()


def _draw_blocks():
    """Random scores; then scores that grow from block to block, and that fall."""
    random, values = torch.randn(23, 9), torch.randn(23, 4)
    growing = torch.linspace(-900, 900, 23)[:, None].expand(23, 9)
    return [
        (torch.ones(9), _pass_once(keys, values))
        for keys in (random, growing, growing.flip(0))
    ]


@grader(
    cases=_draw_blocks,
    right="The same output, and no weight was kept for longer than its block.",
    atol=1e-4,
)
def check_streaming(query, blocks):
    """Attention in one pass over the blocks, with none of them kept.

    query (d_head,) and an iterable of (keys, values) with shapes (block_len, d_head)
    and (block_len, d_value) -> output (d_value,).
    """
    maximum, total, output = torch.tensor(-torch.inf), 0.0, 0.0
    for keys, values in blocks:
        scores = keys @ query / len(query) ** 0.5
        old, maximum = maximum, torch.maximum(maximum, scores.max())
        exponentials, factor = (scores - maximum).exp(), (old - maximum).exp()
        total = total * factor + exponentials.sum()
        output = output * factor + exponentials @ values
    return output / total


def _attend(query, keys, values):
    return (keys @ query / 3).softmax(0) @ values


def _never_rescaled(query, blocks):
    maximum, total, output = torch.tensor(-torch.inf), 0.0, 0.0
    for keys, values in blocks:
        scores = keys @ query / 3
        maximum = torch.maximum(maximum, scores.max())
        exponentials = (scores - maximum).exp()
        total = total + exponentials.sum()
        output = output + exponentials @ values
    return output / total


def _streamed_without_maximum(query, blocks):
    total, output = 0.0, 0.0
    for keys, values in blocks:
        exponentials = (keys @ query / 3).exp()
        total = total + exponentials.sum()
        output = output + exponentials @ values
    return output / total


check_streaming.mistake(
    "each block has its own softmax; weights must sum to 1 over all blocks.",
    lambda query, blocks: sum(_attend(query, *block) for block in blocks) / 4,
)
check_streaming.mistake(
    _ROOT,
    lambda query, blocks: check_streaming.solve(query * 3, blocks),
    lambda query, blocks: check_streaming.solve(query / 3, blocks),
)
check_streaming.mistake(
    "when a later block holds a larger score, the sums so far must be multiplied "
    "by exp(old maximum - new maximum).",
    _never_rescaled,
)
check_streaming.mistake(
    "large scores give NaN; keep the largest score seen so far.",
    _streamed_without_maximum,
)
check_streaming.mistake(
    "a block is gone when the next one comes; keep only running sums.",
    lambda query, blocks: _attend(query, *map(torch.cat, zip(*blocks, strict=True))),
)
