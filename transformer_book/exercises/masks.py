"""Graders of the chapter on masks."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from transformer_book.exercises.grading import Seen, grader
from transformer_lib import causal_mask, padding_mask

MISTAKES = ("correct", "no mask", "inverted", "off by one", "after softmax")


def _all_pairs(length):
    return torch.ones(length, length, dtype=torch.bool)


def _mistakes_with(solve):
    """Mistakes in any causal mask."""
    return {
        "the mask is inverted; True must mean that the query may attend.":
            lambda *given: ~solve(*given),
        "the future is not hidden; join both conditions with &.":
            {"causal": _all_pairs},
        "each query sees its own position and those before; keep j <= i only.":
            [{"causal": lambda length: causal_mask(length).tril(-1)},
             {"causal": lambda length: _all_pairs(length).tril(1)},
             {"causal": lambda length: causal_mask(length).T}],
    }  # fmt: skip


# One row has its padding on the left, where the causal mask doesn't hide it.
_IDS = [[4, 9, 6, 8, 5], [9, 9, 4, 6, 7], [4, 6, 5, 9, 9]]


@grader(
    cases=lambda: [(torch.tensor(_IDS), 9)],
    right="Padding and the future are hidden as keys, and every query is left alone.",
    mistakes=lambda solve: {
        **_mistakes_with(solve),
        "padding is not hidden; join both masks with &.":
            lambda ids, pad_id: solve(ids, -1),
        "a key must be real and not in the future: join the masks with &, not with |.":
            lambda ids, pad_id: padding_mask(ids, pad_id) | causal_mask(5),
        "the padding mask hides keys (columns), not queries (rows).":
            [lambda ids, pad_id: solve(ids, pad_id) & padding_mask(ids, pad_id).mT,
             lambda ids, pad_id: padding_mask(ids, pad_id).mT & causal_mask(5)],
    },
)  # fmt: skip
def check_target_mask(ids, pad_id, causal=causal_mask):
    """The mask of the decoder's self-attention.

    ids (batch, length), pad_id -> boolean (batch, 1, length, length): may attend.
    """
    return padding_mask(ids, pad_id) & causal(ids.size(1))


@grader(
    cases=lambda: [(6, 3), (4, 1), (3, 5)],
    right="Each query sees the last `window` positions, its own included.",
    mistakes=lambda solve: {
        "the mask is inverted; True must mean that the query may attend.":
            lambda *given: ~solve(*given),
        "the window counts the query's own position; yours is one off.":
            [lambda length, window: solve(length, window + 1),
             lambda length, window: solve(length, window - 1)],
        "no query may look ahead: rows are queries, columns are keys; keep j <= i.":
            [lambda *given: solve(*given) | solve(*given).T,
             lambda *given: solve(*given).T],
    },
)  # fmt: skip
def check_window_mask(length, window):
    """Let a query attend to its own position and the window - 1 positions before it.

    length, window -> boolean (length, length).
    """
    return causal_mask(length).triu(1 - window)


@grader(
    cases=lambda: [(torch.tensor([[1, 1, 1, 2, 2, 2, 2], [1, 2, 2, 3, 3, 1, 1]]),)],
    right="Several sentences share a row, and none of them sees another.",
    mistakes=lambda solve: {
        **_mistakes_with(solve),
        "sentences still see each other; compare the segments of query and key.":
            lambda segments: solve(0 * segments),
        "the two conditions are joined with | (or); both must hold, so use &.":
            lambda segments: solve(segments, _all_pairs) | causal_mask(7),
    },
)  # fmt: skip
def check_packed_mask(segments, causal=causal_mask):
    """A causal mask for rows of several sentences.

    segments (batch, length), the number of the sentence that each token belongs to ->
    boolean (batch, 1, length, length).
    """
    together = segments[:, None, :, None] == segments[:, None, None, :]
    return together & causal(segments.size(1))


_FLAWS = {
    "A": "off by one",
    "B": "after softmax",
    "C": "correct",
    "D": "no mask",
    "E": "inverted",
}


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


def _diagnose(given):
    """All five diagnoses, "?" where there is none; None if nothing is diagnosed."""
    if not isinstance(given, dict):
        return given
    found = {name: given.get(name) for name in _FLAWS}
    found = {name: "?" if it in (None, "", ...) else it for name, it in found.items()}
    return found if {*found.values()} != {"?"} else None


def _missed(given):
    return ", ".join(name for name in _FLAWS if given[name] != _FLAWS[name])


def _unknown(given):
    return next((name for name in _FLAWS if given[name] not in MISTAKES), None)


# "A" to "E" -> one of MISTAKES, what the reader found out about each function.
check_diagnosis = grader(
    cases=lambda: [()],
    run=_diagnose,
    right="You got all five by testing what each function does with its mask.",
    mistakes=lambda solve: {
        "the diagnosis of {} must be one of: " + ", ".join(MISTAKES) + ".":
            Seen(_unknown, [_FLAWS | {"A": "?"}, _FLAWS | {"A": "broken"}]),
        "look again at {}: which keys change which outputs? A memory of ones shows "
        "whether the weights sum to 1.":
            Seen(_missed, [_FLAWS | {"E": "off by one"},
                           _FLAWS | {"B": "no mask", "D": "after softmax"}]),
    },
)(_FLAWS)  # fmt: skip
