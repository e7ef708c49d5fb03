"""The graders of the chapter on attention: right answers pass, mistakes are named."""

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_lib.exercises import Feedback
from transformer_lib.exercises.attention import (
    check_repair,
    check_softmax,
    check_streaming,
    check_weights,
)

Blocks = Iterable[tuple[Tensor, Tensor]]


def stub(*arguments: Any) -> None:
    """Stand for an exercise as the reader finds it."""


def weights(
    divide: Callable[[int, int], float],
) -> Callable[[Tensor, Tensor], Tensor]:
    """Softmax of scores over divide(d_head, k_len)."""

    def answer(query: Tensor, keys: Tensor) -> Tensor:
        return (keys @ query / divide(query.numel(), len(keys))).softmax(0)

    return answer


def stable(scores: Tensor) -> Tensor:
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    return shifted.exp() / shifted.exp().sum(-1, keepdim=True)


def repaired(
    divisor: Callable[[int, int], float], dim: int = -1
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Attention with a divisor made of hid_dim and d_head."""

    def answer(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        d_head = query.size(3)
        scores = query @ key.transpose(2, 3) / divisor(query.size(1) * d_head, d_head)
        return scores.softmax(dim) @ value

    return answer


def streaming(
    scale: Callable[[Tensor, Tensor], Tensor] = lambda old, new: (old - new).exp(),
) -> Callable[[Tensor, Blocks], Tensor]:
    """One pass over the blocks; scale(old, new) is what the sums are multiplied by."""

    def answer(query: Tensor, blocks: Blocks) -> Tensor:
        maximum, total, output = torch.tensor(-torch.inf), 0.0, 0.0
        for keys, values in blocks:
            scores = keys @ query / math.sqrt(query.numel())
            old, maximum = maximum, torch.maximum(maximum, scores.max())
            exponentials, factor = (scores - maximum).exp(), scale(old, maximum)
            total = total * factor + exponentials.sum()
            output = output * factor + exponentials @ values
        return output / total

    return answer


def no_running_maximum(query: Tensor, blocks: Blocks) -> Tensor:
    total, output = 0.0, 0.0
    for keys, values in blocks:
        exponentials = (keys @ query / math.sqrt(query.numel())).exp()
        total, output = total + exponentials.sum(), output + exponentials @ values
    return output / total


def per_block(
    combine: Callable[[Tensor], Tensor],
) -> Callable[[Tensor, Blocks], Tensor]:
    """Attend within each block, then combine the (n_blocks, d_value) outputs."""

    def answer(query: Tensor, blocks: Blocks) -> Tensor:
        scale = math.sqrt(query.numel())
        outputs = [(k @ query / scale).softmax(0) @ v for k, v in blocks]
        return combine(torch.stack(outputs))

    return answer


def joined(query: Tensor, blocks: Blocks) -> Tensor:
    keys, values = map(torch.cat, zip(*blocks, strict=True))
    return weights(lambda d_head, k_len: d_head**0.5)(query, keys) @ values


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (check_weights, weights(lambda d_head, k_len: d_head**0.5)),
        (check_softmax, stable),
        (check_repair, repaired(lambda hid_dim, d_head: d_head**0.5)),
        (check_streaming, streaming()),
    ],
)
def test_the_right_answer_passes_and_a_stub_is_open(
    check: Callable[[Any], Feedback], answer: Any
) -> None:
    assert check(answer).passed, check(answer)
    assert check(stub).status == "open"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda q, k: k @ q, "raw scores"),
        (lambda q, k: k @ q / 3, "apply softmax"),
        (lambda q, k: (k @ q / 3).exp(), "divide them by their sum"),
        (lambda q, k: k @ q / k.new_zeros(()), "NaN or infinity"),
        (lambda q, k: (k @ q)[None], r"expected shape \(5,\)"),
        (lambda q, k: q @ k, "RuntimeError"),
        (weights(lambda d_head, k_len: 1), "not divided"),
        (weights(lambda d_head, k_len: d_head), "square root"),
        (weights(lambda d_head, k_len: d_head**1 / 2), "binds tighter"),
        (weights(lambda d_head, k_len: k_len**0.5), "number of keys"),
        (weights(lambda d_head, k_len: d_head**-0.5), "multiplied"),
        (weights(lambda d_head, k_len: 7), "neither right nor"),
    ],
)
def test_mistakes_in_the_weights_are_named(answer: Any, words: str) -> None:
    expect(check_weights(answer), words)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda s: s.softmax(-1), "softmax"),
        (lambda s: s.log_softmax(-1).exp(), "log_softmax"),
        (lambda s: s.exp() / s.exp().sum(-2, keepdim=True), "over the queries"),
        (lambda s: s.exp() / s.exp().sum(0, keepdim=True), "first dimension"),
        (lambda s: s.exp() / s.exp().sum(), "all entries together"),
        (lambda s: s.exp() / s.exp().sum(-1, keepdim=True), "infinite"),
        (
            lambda s: (s - s.max()).exp() / (s - s.max()).exp().sum(-1, keepdim=True),
            "own maximum",
        ),
        (
            lambda s: (
                s.sub_(s.max(-1, keepdim=True).values).exp_() / s.sum(-1, keepdim=True)
            ),
            "have changed",
        ),
        (lambda s: stable(s.clamp(max=50)), "differ alike"),
        (lambda s: s.exp(), "neither right nor"),
    ],
)
def test_mistakes_in_the_softmax_are_named(answer: Any, words: str) -> None:
    expect(check_softmax(answer), words)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (repaired(lambda hid_dim, d_head: hid_dim**1 / 2), "still hid_dim / 2"),
        (repaired(lambda hid_dim, d_head: d_head**1 / 2), "now d_head / 2"),
        (repaired(lambda hid_dim, d_head: hid_dim**0.5), r"sqrt\(hid_dim\)"),
        (repaired(lambda hid_dim, d_head: hid_dim), "is hid_dim, not"),
        (repaired(lambda hid_dim, d_head: d_head), "not its square root"),
        (repaired(lambda hid_dim, d_head: 1), "not scaled"),
        (repaired(lambda hid_dim, d_head: d_head**0.5, dim=2), "over the queries"),
        (repaired(lambda hid_dim, d_head: d_head**0.5, dim=1), "over the heads"),
        (repaired(lambda hid_dim, d_head: hid_dim / 2, dim=2), "still .* over the qu"),
        (repaired(lambda hid_dim, d_head: 7), "neither right nor"),
        (lambda q, k, v: (q @ k.transpose(2, 3)).softmax(-1), "these are weights"),
        (lambda q, k, v: (q, k), "output only"),
        (lambda q, k, v: q @ k.transpose(1, 2), "RuntimeError"),
    ],
)
def test_mistakes_left_in_the_repair_are_named(answer: Any, words: str) -> None:
    expect(check_repair(answer), words)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (joined, "joined again"),
        (no_running_maximum, "large scores give NaN"),
        (streaming(lambda old, new: torch.tensor(1.0)), "old maximum - new maximum"),
        (streaming(lambda old, new: torch.tensor(0.5)), "neither right nor"),
        (per_block(lambda outputs: outputs.mean(0)), "are averaged"),
        (per_block(lambda outputs: outputs.sum(0)), "are added"),
        (per_block(lambda outputs: outputs[0]), "only the first block"),
        (per_block(lambda outputs: outputs[-1]), "only the last block"),
        (lambda query, blocks: query, r"expected shape \(4,\)"),
    ],
)
def test_mistakes_in_one_pass_attention_are_named(answer: Any, words: str) -> None:
    expect(check_streaming(answer), words)


def test_one_pass_attention_without_the_scale_is_named() -> None:
    answer = streaming()
    expect(check_streaming(lambda q, blocks: answer(q * 3, blocks)), "not divided")


def expect(feedback: Feedback, words: str) -> None:
    assert feedback.status == "wrong", feedback
    assert re.search(words, feedback.message), feedback
