"""Graders of the chapter on masks."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from transformer_book.exercises.grading import grader, is_missing
from transformer_lib.model.masks import causal_mask, padding_mask

MISTAKES = ("correct", "no mask", "inverted", "off by one", "after softmax")


_FUTURE = "the future is not hidden; join both conditions with &."
_PAST = "each query sees its own position and those before; keep j <= i only."

# One row has its padding on the left, where the causal mask doesn't hide it.
_IDS = [[4, 9, 6, 8, 5], [9, 9, 4, 6, 7], [4, 6, 5, 9, 9]]


@grader(
    cases=lambda: [(torch.tensor(_IDS), 9)],
    right="Padding and the future are hidden as keys, and every query is left alone.",
)
def check_target_mask(ids, pad_id):
    """The mask of the decoder's self-attention.

    ids (batch, length), pad_id -> boolean (batch, 1, length, length): may attend.
    """
    return padding_mask(ids, pad_id) & causal_mask(ids.size(1))


check_target_mask.mistake(
    "the mask is inverted; True must mean that the query may attend.",
    lambda ids, pad_id: ~check_target_mask.solve(ids, pad_id),
)
check_target_mask.mistake(_FUTURE, padding_mask)
check_target_mask.mistake(
    _PAST,
    lambda ids, pad_id: padding_mask(ids, pad_id) & causal_mask(5).tril(-1),
    lambda ids, pad_id: padding_mask(ids, pad_id) & causal_mask(5).T,
)
check_target_mask.mistake(
    "padding is not hidden; join both masks with &.",
    lambda ids, pad_id: check_target_mask.solve(ids, -1),
)
check_target_mask.mistake(
    "the padding mask hides keys (columns), not queries (rows).",
    lambda ids, pad_id: padding_mask(ids, pad_id).mT & causal_mask(5),
)


@grader(
    cases=lambda: [(6, 3), (4, 1), (3, 5)],
    right="Each query sees the last `window` positions, its own included.",
)
def check_window_mask(length, window):
    """Let a query attend to its own position and the window - 1 positions before it.

    length, window -> boolean (length, length).
    """
    return causal_mask(length).triu(1 - window)


check_window_mask.mistake(
    "the window counts the query's own position; yours is one off.",
    lambda length, window: check_window_mask.solve(length, window + 1),
    lambda length, window: check_window_mask.solve(length, window - 1),
)
check_window_mask.mistake(
    "no query may look ahead: rows are queries, columns are keys; keep j <= i.",
    lambda length, window: (
        torch.ones(length, length, dtype=torch.bool).tril(window - 1).triu(1 - window)
    ),
)


@grader(
    cases=lambda: [(torch.tensor([[1, 1, 1, 2, 2, 2, 2], [1, 2, 2, 3, 3, 1, 1]]),)],
    right="Several sentences share a row, and none of them sees another.",
)
def check_packed_mask(segments):
    """A causal mask for rows of several sentences.

    segments (batch, length), the number of the sentence that each token belongs to ->
    boolean (batch, 1, length, length).
    """
    return _together(segments) & causal_mask(segments.size(1))


def _together(segments):
    """Whether query and key are of the same sentence: (batch, 1, length, length)."""
    return segments[:, None, :, None] == segments[:, None, None, :]


check_packed_mask.mistake(_FUTURE, _together)
check_packed_mask.mistake(
    _PAST,
    lambda segments: _together(segments) & causal_mask(7).tril(-1),
    lambda segments: _together(segments) & causal_mask(7).T,
)
check_packed_mask.mistake(
    "sentences still see each other; compare the segments of query and key.",
    lambda segments: check_packed_mask.solve(0 * segments),
)


_ANSWERS = ("off by one", "after softmax", "correct", "no mask", "inverted")
_FLAWS = dict(zip("ABCDE", _ANSWERS, strict=True))


def mystery_attention(name: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return an attention function with a hidden flaw, or without one.

    Args:
        name: "A", "B", "C", "D" or "E".

    Returns:
        A function of query (q_len, d), memory (k_len, d), whose rows are keys and
        values, and mask (q_len, k_len), True = may attend. It returns (q_len, d).

    Raises:
        ValueError: there is no function with that name.
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


def _run_diagnosis(answer):
    """All five diagnoses; None if nothing is diagnosed."""
    diagnoses = {name: answer.get(name) for name in _FLAWS}
    return None if all(map(is_missing, diagnoses.values())) else diagnoses


def _missed(diagnoses):
    return ", ".join(name for name in _FLAWS if diagnoses[name] != _FLAWS[name])


# "A" to "E" -> one of MISTAKES, what the reader found out about each function.
check_diagnosis = grader(
    cases=lambda: [()],
    right="You got all five by testing what each function does with its mask.",
    run=_run_diagnosis,
)(_FLAWS)

check_diagnosis.mistake(
    "a diagnosis must be one of: " + ", ".join(MISTAKES) + ".",
    _FLAWS | {"A": "?"},
    _FLAWS | {"A": "broken"},
    sign=lambda diagnoses: not {*diagnoses.values()} <= {*MISTAKES},
)
check_diagnosis.mistake(
    "look again at {}: which keys change which outputs? A memory of ones shows "
    "whether the weights sum to 1.",
    _FLAWS | {"B": "no mask", "D": "after softmax"},
    sign=_missed,
)
