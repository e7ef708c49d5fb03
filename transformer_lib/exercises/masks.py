"""Graders of the chapter on masks."""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from transformer_lib.exercises.feedback import (
    NOT_ATTEMPTED,
    Feedback,
    call,
    check_tensor,
    right,
    wrong,
)

MISTAKES = ("correct", "no mask", "inverted", "off by one", "after softmax")


def check_target_mask(answer: Callable[[Tensor, int], Tensor]) -> Feedback:
    """Grade the mask of the decoder's self-attention.

    Args:
        answer: takes ids (batch, length) and pad_id; returns a boolean mask
            (batch, 1, length, length), True = may attend.
    """
    # Padding stands on the left once, so that the causal mask can't stand in for it.
    ids = torch.tensor([[4, 9, 6, 8, 5], [9, 9, 4, 6, 7], [4, 6, 5, 9, 9]])
    result = call(answer, ids.clone(), 9)
    if isinstance(result, Tensor) and result.shape == (3, 5, 5):
        return wrong(
            "expected shape (3, 1, 5, 5), but got (3, 5, 5): without an axis for the "
            "heads, the batch axis would be taken for it."
        )
    keys = (ids != 9)[:, None, None, :]
    queries = keys.transpose(-2, -1)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    expected = keys & causal
    mistakes = {
        "the mask is inverted; True must mean that the query may attend.": ~expected,
        "padding is not hidden; join both masks with &.": causal.expand(3, 1, 5, 5),
        "the future is not hidden; join both masks with &.": keys.expand(3, 1, 5, 5),
        "the two masks are joined with | (or); a key must be real and not in the "
        "future, so join them with &.": keys | causal,
        "the diagonal is hidden; a query may attend to its own position.": (
            keys & causal.tril(-1)
        ),
        "each query also sees the next position; keep j <= i only.": (
            keys & torch.ones(5, 5, dtype=torch.bool).tril(1)
        ),
        "queries see the future and not the past; row = query, column = key.": (
            keys & causal.T
        ),
        "the rows of padding queries are hidden too; mask keys only, or rows with no "
        "key arise.": keys & queries & causal,
        "the padding mask covers rows (queries); it belongs to columns (keys).": (
            queries & causal
        ),
    }
    if problem := _judge(result, expected, mistakes):
        return problem
    return right("Columns of padding and the future are hidden, and no query is.")


def check_translation(answer: Callable[[Tensor, Tensor], Tensor]) -> Feedback:
    """Grade the translation of two foreign masks into one of this library.

    Args:
        answer: takes key_padding_mask (batch, k_len), boolean, True = ignore, and
            attn_mask (q_len, k_len), 0 or -infinity; returns a boolean mask
            (batch, 1, q_len, k_len), True = may attend.
    """
    ignore = torch.tensor([[False] * 3 + [True] * 2, [True] + [False] * 4])
    additive = torch.full((4, 5), -torch.inf).triu(2)  # q_len 4, k_len 5
    result = call(answer, ignore.clone(), additive.clone())
    if isinstance(result, Tensor) and result.shape == (2, 4, 5):
        return wrong(
            "expected shape (2, 1, 4, 5), but got (2, 4, 5): add an axis for the heads."
        )
    keys, seen = ~ignore[:, None, None, :], additive == 0
    expected = keys & seen
    mistakes = {
        "everything is inverted: this is True = ignore.": ~expected,
        "key_padding_mask is taken as it is; there True means ignore.": ~keys & seen,
        "attn_mask is inverted; 0 means that the query may attend.": keys & ~seen,
        "both masks are inverted one by one; 0 and False mean: may attend.": (
            ~keys & ~seen
        ),
        "the two are joined with | (or); a pair must be allowed by both.": keys | seen,
        "key_padding_mask is missing.": seen.expand(2, 1, 4, 5),
        "attn_mask is missing.": keys.expand(2, 1, 4, 5),
    }
    if problem := _judge(result, expected, mistakes):
        return problem
    return right("Two dialects in, one mask out: True = may attend.")


def check_packed_mask(answer: Callable[[Tensor], Tensor]) -> Feedback:
    """Grade the causal mask of rows that hold several sentences each.

    Args:
        answer: takes segments (batch, length), the number of the sentence each token
            belongs to; returns a boolean mask (batch, 1, length, length).
    """
    segments = torch.tensor([[1, 1, 1, 2, 2, 2, 2], [1, 2, 2, 3, 3, 1, 1]])
    result = call(answer, segments.clone())
    if isinstance(result, Tensor) and result.shape == (2, 7, 7):
        return wrong(
            "expected shape (2, 1, 7, 7), but got (2, 7, 7): add an axis for the heads."
        )
    same = (segments[:, :, None] == segments[:, None, :])[:, None]
    causal = torch.ones(7, 7, dtype=torch.bool).tril()
    expected = same & causal
    ordered = (segments[:, :, None] >= segments[:, None, :])[:, None]
    mistakes = {
        "the mask is inverted; True must mean that the query may attend.": ~expected,
        "the future is not hidden inside a sentence; add the causal mask.": same,
        "sentences still see each other; compare the segments of query and key.": (
            causal.expand(2, 1, 7, 7)
        ),
        "the two conditions are joined with | (or); both must hold, so use &.": (
            same | causal
        ),
        "a sentence sees those with smaller numbers too; compare with ==.": (
            ordered & causal
        ),
        "the diagonal is hidden; a query may attend to its own position.": (
            same & causal.tril(-1)
        ),
        "queries see the future and not the past; row = query, column = key.": (
            same & causal.T
        ),
    }
    if problem := _judge(result, expected, mistakes):
        return problem
    return right("One row, several sentences, and none of them sees another.")


def mystery_attention(name: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return an attention function with a hidden flaw, or without one.

    Args:
        name: "A", "B", "C", "D" or "E".

    Returns:
        A function of query (q_len, d), memory (k_len, d), whose rows are keys and
        values, and mask (q_len, k_len), True = may attend. It returns (q_len, d).

    Raises:
        ValueError: there is no attention of that name.
    """
    if name not in _FLAWS:
        raise ValueError(f"name must be one of {', '.join(_FLAWS)}, not {name!r}")
    flaw = _FLAWS[name]

    def attention(query: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        scores = query @ memory.T / math.sqrt(query.size(-1))
        if flaw == "after softmax":
            return (scores.softmax(dim=-1) * mask) @ memory
        hidden = {
            "correct": ~mask,
            "no mask": torch.zeros_like(mask),
            "inverted": mask,
            "off by one": ~(mask | mask.roll(1, dims=-1)),
        }[flaw]
        return scores.masked_fill(hidden, -1e9).softmax(dim=-1) @ memory

    return attention


def check_diagnosis(answer: Mapping[str, str]) -> Feedback:
    """Grade what the reader found out about the five mystery attentions.

    Args:
        answer: "A" to "E" -> one of MISTAKES.
    """
    if not isinstance(answer, Mapping):
        return wrong(f"expected a dictionary, but got {type(answer).__name__}.")
    given = {name: answer.get(name) for name in _FLAWS}
    if all(found in (None, "", "?", Ellipsis) for found in given.values()):
        return NOT_ATTEMPTED
    for name, found in given.items():
        if found in (None, "", "?", Ellipsis):
            return wrong(f"{name} has no diagnosis yet.")
        if found not in MISTAKES:
            return wrong(f"{name}: {found!r} is none of {', '.join(MISTAKES)}.")
    missed = [name for name, found in given.items() if found != _FLAWS[name]]
    if not missed:
        return right("All five: a mask is what the function does, not what it is told.")
    swapped = {given[name] for name in missed}
    if swapped == {"no mask", "after softmax"}:
        return wrong(
            f"{' and '.join(missed)}: in both, every key moves every output. Give a "
            "memory of ones: where weights sum to 1, the output is 1."
        )
    if "correct" in swapped:
        name = next(name for name in missed if given[name] == "correct")
        return wrong(f"{name} is not correct: compare its influence with the mask.")
    return wrong(f"{', '.join(missed)}: look again at which keys move which outputs.")


_FLAWS = {
    "A": "off by one",
    "B": "after softmax",
    "C": "correct",
    "D": "no mask",
    "E": "inverted",
}


def _judge(
    result: object, expected: Tensor, mistakes: Mapping[str, Tensor]
) -> Feedback | None:
    """Compare with the right mask and with known wrong ones; None if it is right."""
    if problem := check_tensor(result, tuple(expected.shape)):
        if isinstance(result, Tensor) and result.is_floating_point():
            return wrong(f"expected a boolean mask, but got {result.dtype}.")
        return problem
    if result.dtype != torch.bool:
        return wrong(
            f"expected a boolean mask, but got {result.dtype}; masks joined with & "
            "stay boolean, multiplied ones do not."
        )
    if torch.equal(result, expected):
        return None
    for message, mask in mistakes.items():
        if torch.equal(result, mask):
            return wrong(message)
    place = (result != expected).nonzero()[0].tolist()
    attend = "may" if result[tuple(place)] else "may not"
    return wrong(
        f"in sentence {place[0]}, query {place[2]} {attend} attend to key {place[3]} "
        "here; it should be the other way round."
    )
