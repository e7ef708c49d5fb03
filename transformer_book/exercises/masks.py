"""Graders of the chapter on masks."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from transformer_book.exercises.grading import Seen, grader, is_missing
from transformer_lib import causal_mask, padding_mask

MISTAKES = ("correct", "no mask", "inverted", "off by one", "after softmax")


_CAUSAL_MISTAKES = (
    ("the future is not hidden; join both conditions with &.",
     {"causal": lambda length: torch.tensor(True)}),
    ("each query sees its own position and those before; keep j <= i only.",
     {"causal": lambda length: causal_mask(length).tril(-1)},
     {"causal": lambda length: causal_mask(length).T}),
)  # fmt: skip

# One row has its padding on the left, where the causal mask doesn't hide it.
_IDS = [[4, 9, 6, 8, 5], [9, 9, 4, 6, 7], [4, 6, 5, 9, 9]]


@grader(
    lambda: [(torch.tensor(_IDS), 9)],
    "Padding and the future are hidden as keys, and every query is left alone.",
    ("the mask is inverted; True must mean that the query may attend.",
     lambda *given: ~check_target_mask.solve(*given)),
    *_CAUSAL_MISTAKES,
    ("padding is not hidden; join both masks with &.",
     lambda ids, pad_id: check_target_mask.solve(ids, -1)),
    ("the padding mask hides keys (columns), not queries (rows).",
     lambda ids, pad_id: padding_mask(ids, pad_id).mT & causal_mask(5)),
)  # fmt: skip
def check_target_mask(ids, pad_id, causal=causal_mask):
    """The mask of the decoder's self-attention.

    ids (batch, length), pad_id -> boolean (batch, 1, length, length): may attend.
    """
    return padding_mask(ids, pad_id) & causal(ids.size(1))


@grader(
    lambda: [(6, 3), (4, 1), (3, 5)],
    "Each query sees the last `window` positions, its own included.",
    ("the window counts the query's own position; yours is one off.",
     lambda length, window: check_window_mask.solve(length, window + 1),
     lambda length, window: check_window_mask.solve(length, window - 1)),
    ("no query may look ahead: rows are queries, columns are keys; keep j <= i.",
     lambda *given: (mask := check_window_mask.solve(*given)) | mask.T),
)  # fmt: skip
def check_window_mask(length, window):
    """Let a query attend to its own position and the window - 1 positions before it.

    length, window -> boolean (length, length).
    """
    return causal_mask(length).triu(1 - window)


@grader(
    lambda: [(torch.tensor([[1, 1, 1, 2, 2, 2, 2], [1, 2, 2, 3, 3, 1, 1]]),)],
    "Several sentences share a row, and none of them sees another.",
    *_CAUSAL_MISTAKES,
    ("sentences still see each other; compare the segments of query and key.",
     lambda segments: check_packed_mask.solve(0 * segments)),
)  # fmt: skip
def check_packed_mask(segments, causal=causal_mask):
    """A causal mask for rows of several sentences.

    segments (batch, length), the number of the sentence that each token belongs to ->
    boolean (batch, 1, length, length).
    """
    together = segments[:, None, :, None] == segments[:, None, None, :]
    return together & causal(segments.size(1))


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


def _diagnose(given):
    """All five diagnoses; None if nothing is diagnosed."""
    found = {name: given.get(name) for name in _FLAWS}
    return None if all(map(is_missing, found.values())) else found


def _missed(given):
    return ", ".join(name for name in _FLAWS if given[name] != _FLAWS[name])


# "A" to "E" -> one of MISTAKES, what the reader found out about each function.
check_diagnosis = grader(
    lambda: [()],
    "You got all five by testing what each function does with its mask.",
    ("a diagnosis must be one of: " + ", ".join(MISTAKES) + ".",
     Seen(lambda given: not {*given.values()} <= {*MISTAKES}),
     _FLAWS | {"A": "?"}, _FLAWS | {"A": "broken"}),
    ("look again at {}: which keys change which outputs? A memory of ones shows "
     "whether the weights sum to 1.",
     Seen(_missed), _FLAWS | {"B": "no mask", "D": "after softmax"}),
    run=_diagnose,
)(_FLAWS)  # fmt: skip
