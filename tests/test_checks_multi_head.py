"""The graders of the chapter on multi-head attention name the mistakes."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from transformer_lib.exercises.multi_head import (
    check_multi_head,
    check_next_word,
    check_parameters,
    check_split_heads,
)


def split(x: Tensor, n_heads: int) -> Tensor:
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def parameters(d_model: int, n_heads: int, bias: bool) -> int:
    return 4 * d_model**2 + (4 if bias else 1) * d_model


def multi_head(
    cut: Callable[[Tensor, int], Tensor] = split,
    join: Callable[[Tensor], Tensor] = lambda z: z.transpose(1, 2).flatten(-2),
    divisor: Callable[[int, int], float] = lambda d_model, d_head: math.sqrt(d_head),
    dim: int = -1,
) -> Callable[..., Tensor]:
    """The layer, with one of its steps replaced."""

    def answer(query, key, value, matrices, n_heads):
        w_q, w_k, w_v, w_o = matrices
        q, k, v = (
            cut(x @ w, n_heads) for x, w in ((query, w_q), (key, w_k), (value, w_v))
        )
        d_model = query.size(-1)
        scores = q @ k.transpose(-2, -1) / divisor(d_model, d_model // n_heads)
        return join(scores.softmax(dim) @ v) @ w_o

    return answer


def changed(how: Callable[..., tuple]) -> Callable[..., Tensor]:
    """The right layer on other arguments."""

    def answer(query, key, value, matrices, n_heads):
        return multi_head()(*how(query, key, value, matrices), n_heads)

    return answer


def mixed(x: Tensor, n_heads: int) -> Tensor:
    return x.reshape(x.size(0), n_heads, x.size(1), -1)


def mixed_back(z: Tensor) -> Tensor:
    return z.reshape(z.size(0), z.size(2), -1)


def turning(
    step: float, sharpness: float = 60.0
) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Turn every pair of sinusoids by so many words."""

    def answer(d_model: int) -> tuple[Tensor, Tensor]:
        w_q = torch.zeros(d_model, d_model)
        for i in range(0, d_model, 2):
            angle = step / 10_000 ** (i / d_model)
            cos, sin = math.cos(angle), math.sin(angle)
            # (sin a, cos a) times this is (sin(a + angle), cos(a + angle)).
            w_q[i : i + 2, i : i + 2] = torch.tensor([[cos, -sin], [sin, cos]])
        return sharpness * w_q, torch.eye(d_model)

    return answer


GRADERS = (check_split_heads, check_parameters, check_multi_head, check_next_word)


@pytest.mark.parametrize(
    ("grader", "answer"),
    [
        (check_split_heads, split),
        (check_parameters, parameters),
        (check_parameters, lambda *a: torch.tensor(parameters(*a))),
        (check_multi_head, multi_head()),
        (check_next_word, turning(1)),
    ],
)
def test_the_right_answer_passes(grader, answer):
    assert grader(answer).passed, grader(answer)


def expect(feedback, message):
    assert feedback.status == "wrong", feedback
    assert message in feedback.message, feedback


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (mixed, "words and heads are mixed"),
        (lambda x, h: x.unflatten(-1, (h, -1)), "stand behind the words"),
        (
            lambda x, h: x.unflatten(-1, (h, -1)).permute(0, 2, 3, 1),
            "last two axes are swapped",
        ),
        (
            lambda x, h: x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2),
            "stand side by side",
        ),
        (lambda x, h: split(x, h) + 1, "numbers differ"),
        (lambda x, h: x, "expected shape"),
        (lambda x, h: [x], "expected a tensor"),
    ],
)
def test_wrong_splits_are_named(answer, message):
    expect(check_split_heads(answer), message)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda d, h, b: 3 * d * d + (4 if b else 1) * d, "four matrices"),
        (lambda d, h, b: 3 * d * d + (3 * d if b else 0), "four matrices"),
        (lambda d, h, b: 4 * d * d, "biases are missing"),
        (lambda d, h, b: 4 * d * d + 4 * d, "no bias if bias is False"),
        (lambda d, h, b: 4 * d * d + d, "a bias of d_model numbers each"),
        (lambda d, h, b: 4 * d * d + (3 * d if b else 1 * d), "output projection"),
        (lambda d, h, b: h * parameters(d, h, b), "full width"),
        (lambda d, h, b: h * 3 * d * d + d * d + (4 if b else 1) * d, "full width"),
        (lambda d, h, b: 3 * d * d // h + d * d + (4 if b else 1) * d, "one head"),
        (lambda d, h, b: 7, "expected 588, but got 7"),
        (lambda d, h, b: "many", "expected a number"),
        (lambda d, h, b: True, "expected a number"),
    ],
)
def test_wrong_counts_are_named(answer, message):
    expect(check_parameters(answer), message)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (multi_head(divisor=lambda d_model, d_head: d_model**0.5), "sqrt(d_model)"),
        (multi_head(divisor=lambda d_model, d_head: 1.0), "not divided"),
        (multi_head(divisor=lambda d_model, d_head: d_head), "square root"),
        (multi_head(dim=-2), "over the queries"),
        (multi_head(cut=mixed), "split by one view"),
        (multi_head(join=mixed_back), "joined without a transpose"),
        (multi_head(cut=mixed, join=mixed_back), "by view alone"),
        (
            lambda q, k, v, w, h: multi_head()(q, k, v, w, 1),
            "one wide head",
        ),
        (changed(lambda q, k, v, w: (q, v, k, w)), "changed places"),
        (
            changed(lambda q, k, v, w: (q, k, v, (*w[:3], torch.eye(12)))),
            "output projection is missing",
        ),
        (
            changed(lambda q, k, v, w: (q, k, v, [each.T for each in w])),
            "matrices are transposed",
        ),
        (
            changed(lambda q, k, v, w: (q, k, v, (*w[:2], torch.eye(12), w[3]))),
            "not projected by w_v",
        ),
        (lambda q, k, v, w, h: (multi_head()(q, k, v, w, h), None), "output only"),
        (lambda q, k, v, w, h: q, "numbers differ"),
        (lambda q, k, v, w, h: v, "expected shape"),
    ],
)
def test_wrong_layers_are_named(answer, message):
    expect(check_multi_head(answer), message)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (turning(-1), "previous one"),
        (turning(0), "looks at itself"),
        (turning(2), "word 0 looks most at word 2"),
        (turning(1, sharpness=2.0), "scores larger"),
        (lambda d_model: torch.eye(d_model), "two matrices"),
        (lambda d_model: turning(1)(16), "expected shape (32, 32)"),
        (lambda d_model: (torch.eye(d_model) * torch.nan, None), "NaN"),
    ],
)
def test_wrong_heads_are_named(answer, message):
    expect(check_next_word(answer), message)
