"""Graders of the chapter on masks."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from transformer_lib.convert.masks import convert_mask
from transformer_lib.exercises.grading import Grader, Seen
from transformer_lib.model.masks import causal_mask, padding_mask

MISTAKES = ("correct", "no mask", "inverted", "off by one", "after softmax")


def _all_pairs(length):
    return torch.ones(length, length, dtype=torch.bool)


def _mistakes_with(solution):
    """Mistakes in any causal mask."""
    return {
        "an axis for the heads is missing; the batch axis would be taken for it.": (
            lambda *given: solution(*given)[:, 0]
        ),
        "the mask is inverted; True must mean that the query may attend.": (
            lambda *given: ~solution(*given)
        ),
        "the future is not hidden; join both conditions with &.": (
            partial(solution, causal=_all_pairs)
        ),
        "the diagonal is hidden; a query may attend to its own position.": (
            partial(solution, causal=lambda length: causal_mask(length).tril(-1))
        ),
        "each query also sees the next position; keep j <= i only.": (
            partial(solution, causal=lambda length: _all_pairs(length).tril(1))
        ),
        "queries see the future and not the past; row = query, column = key.": (
            partial(solution, causal=lambda length: causal_mask(length).T)
        ),
    }


def _target_mask(ids, pad_id, causal=causal_mask):
    return padding_mask(ids, pad_id) & causal(ids.size(1))


# Padding stands on the left once, so that the causal mask can't stand in for it.
_IDS = [[4, 9, 6, 8, 5], [9, 9, 4, 6, 7], [4, 6, 5, 9, 9]]

check_target_mask = Grader(
    "ids (batch, length), pad_id -> boolean mask of the decoder's self-attention "
    "(batch, 1, length, length), True = may attend",
    cases=lambda: [(torch.tensor(_IDS), 9)],
    solution=_target_mask,
    right="Columns of padding and the future are hidden, and no query is.",
    mistakes={
        **_mistakes_with(_target_mask),
        "padding is not hidden; join both masks with &.":
            lambda ids, pad_id: causal_mask(5).expand(3, 1, 5, 5),
        "the two masks are joined with | (or); a key must be real and not in the "
        "future, so join them with &.":
            lambda ids, pad_id: padding_mask(ids, pad_id) | causal_mask(5),
        "the rows of padding queries are hidden too; mask keys only, or rows with no "
        "key arise.":
            lambda ids, pad: _target_mask(ids, pad) & padding_mask(ids, pad).mT,
        "the padding mask covers rows (queries); it belongs to columns (keys).":
            lambda ids, pad: padding_mask(ids, pad).mT & causal_mask(5),
    },
)  # fmt: skip


def _translate(key_padding_mask, attn_mask):
    real = convert_mask(key_padding_mask, "ignore", "attend")[:, None, None]
    return real & convert_mask(attn_mask, "additive", "attend")


check_translation = Grader(
    "key_padding_mask (batch, k_len), boolean, True = ignore, and attn_mask "
    "(q_len, k_len), 0 or -infinity -> boolean (batch, 1, q_len, k_len), "
    "True = may attend",
    cases=lambda: [
        (
            torch.tensor([[False] * 3 + [True] * 2, [True] + [False] * 4]),
            torch.full((4, 5), -torch.inf).triu(2),
        )
    ],
    solution=_translate,
    right="Two dialects in, one mask out: True = may attend.",
    mistakes={
        "expected shape (2, 1, 4, 5), but got (2, 4, 5): add an axis for the heads.":
            lambda pad, attn: _translate(pad, attn)[:, 0],
        "everything is inverted: this is True = ignore.":
            lambda pad, attn: ~_translate(pad, attn),
        "key_padding_mask is taken as it is; there True means ignore.":
            lambda pad, attn: pad[:, None, None] & (attn == 0),
        "attn_mask is inverted; 0 means that the query may attend.":
            lambda pad, attn: ~pad[:, None, None] & (attn != 0),
        "both masks are inverted one by one; 0 and False mean: may attend.":
            lambda pad, attn: pad[:, None, None] & (attn != 0),
        "the two are joined with | (or); a pair must be allowed by both.":
            lambda pad, attn: ~pad[:, None, None] | (attn == 0),
        "key_padding_mask is missing.":
            lambda pad, attn: (attn == 0).expand(2, 1, 4, 5),
        "attn_mask is missing.":
            lambda pad, attn: (~pad[:, None, None].expand(2, 1, 4, 5)),
    },
)  # fmt: skip


def _same_sentence(segments):
    return segments[:, None, :, None] == segments[:, None, None, :]


def _packed_mask(segments, causal=causal_mask):
    return _same_sentence(segments) & causal(segments.size(1))


check_packed_mask = Grader(
    "segments (batch, length), the number of the sentence that each token belongs to "
    "-> boolean causal mask (batch, 1, length, length)",
    cases=lambda: [
        (torch.tensor([[1, 1, 1, 2, 2, 2, 2], [1, 2, 2, 3, 3, 1, 1]]),),
    ],
    solution=_packed_mask,
    right="One row, several sentences, and none of them sees another.",
    mistakes={
        **_mistakes_with(_packed_mask),
        "sentences still see each other; compare the segments of query and key.":
            lambda segments: causal_mask(7).expand(2, 1, 7, 7),
        "the two conditions are joined with | (or); both must hold, so use &.":
            lambda segments: _same_sentence(segments) | causal_mask(7),
        "a sentence sees those with smaller numbers too; compare with ==.":
            lambda s: (s[:, None, :, None] >= s[:, None, None]) & causal_mask(7),
    },
)  # fmt: skip

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


def _diagnose(given):
    """All five diagnoses, "?" where there is none; None if nothing is diagnosed."""
    if not isinstance(given, dict):
        return given
    found = {name: given.get(name) for name in _FLAWS}
    found = {name: "?" if it in (None, "", ...) else it for name, it in found.items()}
    return found if {*found.values()} != {"?"} else None


def _first(condition):
    """Name the first attention of whose diagnosis this is true."""
    return lambda given: next((name for name in _FLAWS if condition(name, given)), None)


def _missed(given):
    return [name for name in _FLAWS if given[name] != _FLAWS[name]]


def _find_confused(given):
    """Two that are taken for each other: no mask, and a mask after softmax."""
    found = {given[name] for name in _missed(given)}
    return (
        " and ".join(_missed(given)) if found == {"no mask", "after softmax"} else None
    )


check_diagnosis = Grader(
    '"A" to "E" -> one of MISTAKES, what the reader found out about each attention',
    cases=lambda: [()],
    run=_diagnose,
    solution=_FLAWS,
    right="All five: a mask is what the function does, not what it is told.",
    mistakes={
        "{} has no diagnosis yet.":
            Seen(_first(lambda name, given: given[name] == "?"), _FLAWS | {"A": "?"}),
        "the diagnosis of {} is none of " + ", ".join(MISTAKES) + ".":
            Seen(_first(lambda name, given: given[name] not in MISTAKES),
                 _FLAWS | {"A": "broken"}),
        "{}: in both, every key moves every output. Give a memory of ones: where "
        "weights sum to 1, the output is 1.":
            Seen(_find_confused, _FLAWS | {"B": "no mask", "D": "after softmax"}),
        "{} is not correct: compare its influence with the mask.":
            Seen(_first(lambda name, given: given[name] == "correct" != _FLAWS[name]),
                 _FLAWS | {"B": "no mask", "D": "after softmax", "A": "correct"}),
        "{}: look again at which keys move which outputs.":
            Seen(lambda given: ", ".join(_missed(given)) or None,
                 _FLAWS | {"E": "off by one"}),
    },
)  # fmt: skip
