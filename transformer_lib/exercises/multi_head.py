"""Graders of the chapter on multi-head attention."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from transformer_lib.exercises.feedback import (
    Feedback,
    call,
    check_tensor,
    right,
    unanswered,
    wrong,
)
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.embeddings import sinusoid_table


def check_split_heads(answer: Callable[[Tensor, int], Tensor]) -> Feedback:
    """Grade the way from one wide tensor to heads.

    Args:
        answer: takes x (batch, length, d_model) and n_heads; returns
            (batch, n_heads, length, d_head).
    """
    batch, length, n_heads, d_head = 2, 5, 3, 4
    x = _numbered(batch, length, n_heads * d_head)
    result = call(answer, x.clone(), n_heads)
    shape = (batch, n_heads, length, d_head)
    cut = x.view(batch, length, n_heads, d_head)
    if isinstance(result, Tensor):
        if result.shape == cut.shape:
            return wrong(
                "the heads stand behind the words: shape (batch, length, n_heads, "
                "d_head). Move them before the words with transpose(1, 2)."
            )
        if result.shape == (batch, n_heads, d_head, length):
            return wrong(
                "the last two axes are swapped: a head needs one row of d_head "
                "numbers for each word."
            )
    if problem := check_tensor(result, shape):
        return problem
    strided = x.view(batch, length, d_head, n_heads).permute(0, 3, 1, 2)
    mistakes = {
        "the shape is right, but words and heads are mixed: view reads the same "
        "memory with other line breaks. Cut the last axis first, then transpose.": (
            x.reshape(shape)
        ),
        "every head got each third number of a word (with 3 heads); a head owns "
        "d_head numbers that stand side by side.": strided,
    }
    if problem := _name_mistake(result, cut.transpose(1, 2), mistakes):
        return problem
    return right("Row t of every head holds numbers of word t, and of no other.")


def check_parameters(answer: Callable[[int, int, bool], int]) -> Feedback:
    """Grade the count of parameters of one layer.

    Args:
        answer: takes d_model, n_heads and bias, whether the three input projections
            have one (the output projection always does); returns the count.
    """
    for d_model, n_heads, bias in ((12, 3, False), (12, 3, True), (20, 5, True)):
        result = call(answer, d_model, n_heads, bias)
        if problem := unanswered(result):
            return problem
        if isinstance(result, bool) or not isinstance(result, int | float | Tensor):
            return wrong(f"expected a number, but got {type(result).__name__}.")
        layer = MultiHeadAttention(d_model, n_heads, bias=bias)
        count = sum(parameter.numel() for parameter in layer.parameters())
        if result == count:
            continue
        d_head, biases = d_model // n_heads, d_model * (4 if bias else 1)
        square = d_model**2
        mistakes = {
            "the output projection is missing: there are four matrices.": (
                3 * square + biases,
                3 * square + biases - d_model,
            ),
            "the biases are missing.": (4 * square,),
            "the bias of the output projection is missing; it is always there.": (
                4 * square + biases - d_model,
            ),
            "the input projections have a bias of d_model numbers each if bias is "
            "True.": (4 * square + d_model,),
            "the input projections have no bias if bias is False.": (
                4 * square + 4 * d_model,
            ),
            "this counts n_heads matrices of full width; a head is only "
            "d_model / n_heads wide.": (
                n_heads * (4 * square + biases),
                n_heads * 4 * square + biases,
                n_heads * 3 * square + square + biases,
            ),
            "this counts one head only; there are n_heads of them.": (
                3 * d_model * d_head + square + biases,
                4 * d_model * d_head + biases,
            ),
        }
        case = f"d_model {d_model}, {n_heads} heads, bias {bias}: "
        for message, counts in mistakes.items():
            if result in counts:
                return wrong(case + message)
        return wrong(f"{case}expected {count:,}, but got {result:,}.")
    return right("Four square matrices and their biases; the heads do not matter.")


def check_multi_head(answer: Callable[..., Tensor]) -> Feedback:
    """Grade the whole layer, as a function of its inputs and matrices.

    Args:
        answer: takes query (batch, q_len, d_model), key and value
            (batch, k_len, d_model), matrices (w_q, w_k, w_v, w_o), to be multiplied
            from the right, and n_heads; returns (batch, q_len, d_model).
    """
    generator = torch.Generator().manual_seed(3)
    query = torch.randn(2, 5, 12, generator=generator)
    key, value = torch.randn(2, 2, 7, 12, generator=generator)
    matrices = torch.randn(4, 12, 12, generator=generator) / 12**0.5
    matrices[0] *= 3  # sharp weights, so that every mistake shows
    result = call(answer, query, key, value, tuple(matrices), 3)
    if isinstance(result, tuple):
        return wrong("return the output only, not a tuple.")
    if problem := check_tensor(result, (2, 5, 12)):
        return problem
    sound: dict[str, Any] = {"inputs": (query, key, value), "matrices": matrices}
    mistakes = {
        "the scores are divided by sqrt(d_model); every head's dot product adds only "
        "d_head terms.": {"divisor": 12**0.5},
        "the scores are not divided by sqrt(d_head).": {"divisor": 1.0},
        "the scores are divided by d_head; divide by its square root.": {
            "divisor": 4.0
        },
        "softmax runs over the queries; every query's weights must sum to 1.": {
            "dim": -2
        },
        "the output projection is missing: multiply the joined heads by w_o.": {
            "project": False
        },
        "the matrices are transposed: multiply by them from the right, as they are.": {
            "matrices": matrices.transpose(-2, -1)
        },
        "the heads are joined without a transpose: words and heads are mixed.": {
            "join": lambda z: z.reshape(2, 5, 12)
        },
        "the heads are split by one view: words and heads are mixed.": {
            "split": lambda x: x.reshape(2, 3, -1, 4)
        },
        "the heads are split and joined by view alone: words and heads are mixed.": {
            "split": lambda x: x.reshape(2, 3, -1, 4),
            "join": lambda z: z.reshape(2, 5, 12),
        },
        "this is one wide head; split into n_heads before the scores.": {
            "split": lambda x: x[:, None],
            "join": lambda z: z[:, 0],
            "divisor": 12**0.5,
        },
        "key and value have changed places.": {"inputs": (query, value, key)},
        "the values are not projected by w_v.": {
            "matrices": torch.stack([*matrices[:2], torch.eye(12), matrices[3]])
        },
    }
    wrongs = {message: _attend(**(sound | how)) for message, how in mistakes.items()}
    if problem := _name_mistake(result, _attend(**sound), wrongs):
        return problem
    return right("Project, split, attend, join, project: the whole layer.")


def check_next_word(answer: Callable[[int], tuple[Tensor, Tensor]]) -> Feedback:
    """Grade matrices that make every word look at the next one.

    Args:
        answer: takes d_model; returns w_q and w_k, each (d_model, d_model), to be
            multiplied from the right with sinusoids of that width.
    """
    for d_model, length in ((16, 6), (16, 11), (32, 9)):
        result = call(answer, d_model)
        if problem := unanswered(result):
            return problem
        if not isinstance(result, tuple | list) or len(result) != 2:
            return wrong("return two matrices: w_q and w_k.")
        for matrix in result:
            if problem := check_tensor(matrix, (d_model, d_model)):
                return problem
        positions = sinusoid_table(length, d_model)
        w_q, w_k = (matrix.to(positions) for matrix in result)
        scores = (positions @ w_q) @ (positions @ w_k).T / d_model**0.5
        weights, first = scores.softmax(-1), scores.argmax(-1).tolist()
        case = f"d_model {d_model}, {length} words: "
        if all(place == row + 1 for row, place in enumerate(first[:-1])):
            least = weights.diagonal(1).min().item()
            if least < 0.9:
                return wrong(
                    f"{case}every word likes the next one best, but one gives it only "
                    f"{least:.2f} of its weight; 0.9 is asked for. Make the scores "
                    "larger."
                )
            continue
        if all(place == row - 1 for row, place in enumerate(first) if row):
            return wrong(f"{case}every word looks at the previous one: turn back.")
        if all(place == row for row, place in enumerate(first)):
            return wrong(f"{case}every word looks at itself: the queries must turn.")
        row = next(t for t, place in enumerate(first[:-1]) if place != t + 1)
        return wrong(f"{case}word {row} looks most at word {first[row]}.")
    return right(
        "A turn by one step of every pair makes a query ask for the next word."
    )


def _attend(
    inputs: tuple[Tensor, Tensor, Tensor],
    matrices: Tensor,
    project: bool = True,
    **how: Any,
) -> Tensor:
    """Multi-head attention with 3 heads of width 4, right or with one mistake."""
    cut = how.get("split", lambda x: x.unflatten(-1, (3, 4)).transpose(1, 2))
    join = how.get("join", lambda z: z.transpose(1, 2).flatten(-2))
    q, k, v = (cut(x @ w) for x, w in zip(inputs, matrices[:3], strict=True))
    scores = q @ k.transpose(-2, -1) / how.get("divisor", 2.0)
    joined = join(scores.softmax(how.get("dim", -1)) @ v)
    return joined @ matrices[3] if project else joined


def _numbered(batch: int, length: int, d_model: int) -> Tensor:
    """Entries that tell where they stand: 1000 sentence + 100 word + feature."""
    axes = torch.arange(batch), torch.arange(length), torch.arange(d_model)
    sentence, word, feature = torch.meshgrid(*axes, indexing="ij")
    return (1000 * sentence + 100 * word + feature).float()


def _name_mistake(
    result: Tensor, expected: Tensor, mistakes: dict[str, Tensor]
) -> Feedback | None:
    """Name the mistake that gives this result; None if it is the expected one."""
    if torch.allclose(result.to(expected), expected, rtol=1e-4, atol=1e-5):
        return None
    for message, mistake in mistakes.items():
        if torch.allclose(result.to(mistake), mistake, rtol=1e-4, atol=1e-5):
            return wrong(message)
    gap = (result.to(expected) - expected).abs().max().item()
    return wrong(f"the shape is right, but the numbers differ, by up to {gap:.3g}.")
