"""Graders of the chapter on generating a translation."""

from collections.abc import Callable

import torch
from torch import Tensor

from transformer_lib.exercises.feedback import (
    Feedback,
    call,
    check_tensor,
    compare,
    right,
    wrong,
)

EOS, PAD = 2, 0


def check_cut(answer: Callable[[Tensor, int, int], Tensor]) -> Feedback:
    """Grade the cutting of targets after their first end token.

    Args:
        answer: takes ids (batch, length), eos_id and pad_id; returns ids of the same
            shape, padding after the first end of each row.
    """
    ids = torch.tensor(
        [[5, 2, 6, 2, 7], [4, 5, 6, 7, 8], [2, 9, 9, 9, 9], [3, 4, 5, 6, 2]]
    )
    given = ids.clone()
    result = call(answer, given, EOS, PAD)
    if problem := check_tensor(result, tuple(ids.shape)):
        return problem
    ends = ids == EOS
    seen = ends.long().cumsum(dim=1)
    expected = ids.masked_fill(seen - ends.long() > 0, PAD)
    after_any = (seen > 0).any(dim=0).expand_as(ids)
    from_last = ends.flip(1).long().cumsum(dim=1).flip(1) == 0
    mistakes = {
        "the end token is gone too: it belongs to the target.": (
            ids.masked_fill(seen > 0, PAD)
        ),
        "cut at the first end of each row, not at its last.": (
            ids.masked_fill(from_last & ends.any(dim=1, keepdim=True), PAD)
        ),
        "a row without an end is padding now; it should stay as it is.": (
            ids.masked_fill(from_last, PAD)
        ),
        "all rows are cut where one has ended: each has an end of its own.": (
            ids.masked_fill(after_any & ~ends, PAD)
        ),
        "only the end tokens are replaced; replace what follows them.": (
            ids.masked_fill(ends, PAD)
        ),
    }
    if problem := _compare_ids(result, expected, mistakes):
        return problem
    if not torch.equal(given, ids):
        return wrong("the caller's ids have changed: return a copy.")
    return right("Each row ends where its model has ended it.")


def check_beam_step(answer: Callable[[Tensor, Tensor, int], Tensor]) -> Feedback:
    """Grade one step of beam search.

    Args:
        answer: takes totals (n_beams,), log_probs (n_beams, vocabulary) and eos_id;
            returns integers (n_beams, 2): parent and token of the beams that go on.
    """
    totals = torch.tensor([-0.1, -0.7, -5.0], dtype=torch.float64)
    table = [[0.06, 0.05, 0.50, 0.20, 0.15, 0.04],
             [0.02, 0.02, 0.30, 0.05, 0.21, 0.40],
             [0.01, 0.01, 0.01, 0.01, 0.95, 0.01]]  # fmt: skip
    log_probs = torch.tensor(table, dtype=torch.float64).log()
    result = call(answer, totals.clone(), log_probs.clone(), EOS)
    if problem := check_tensor(result, (3, 2)):
        return problem
    grown = totals[:, None] + log_probs
    open_ = grown.clone()
    open_[:, EOS] = -torch.inf
    alone = log_probs.clone()
    alone[:, EOS] = -torch.inf
    expected = _best(open_)
    own = torch.stack([torch.arange(3), open_.argmax(dim=1)], dim=1)
    mistakes = {
        "a beam goes on that has ended: leave eos_id out.": _best(grown),
        "the beams' own log-probabilities are missing: add totals.": _best(alone),
        "every beam keeps one child; all children compete for all places.": (
            own[open_.max(dim=1).values.argsort(descending=True)]
        ),
        "every beam keeps one child, and in the order of the parents; all children "
        "compete for all places.": own,
        "parent and token are exchanged: the parent comes first.": expected.flip(1),
        "the order is turned: the best comes first.": expected.flip(0),
        "only the first beam has children: look at all rows.": _best(open_[:1]),
    }
    if problem := _compare_ids(result, expected, mistakes):
        return problem
    return right("All children compete, and those that have ended step aside.")


def check_nucleus(answer: Callable[[Tensor, float], Tensor]) -> Feedback:
    """Grade top-p.

    Args:
        answer: takes probabilities (vocabulary,) and p; returns (vocabulary,), the
            fewest likeliest tokens with a sum of at least p, scaled to a sum of 1.
    """
    table = [0.05, 0.4, 0.02, 0.25, 0.15, 0.1, 0.03]
    probabilities = torch.tensor(table, dtype=torch.float64)
    p = 0.7
    result = call(answer, probabilities.clone(), p)

    def kept(*tokens: int, scaled: bool = True) -> Tensor:
        out = torch.zeros_like(probabilities)
        out[list(tokens)] = probabilities[list(tokens)]
        return out / out.sum() if scaled else out

    values = kept(1, 3, 4).sort(descending=True).values
    mistakes = {
        "the token that crosses p is missing: the sum must be at least p.": kept(1, 3),
        "what is kept must be scaled to a sum of 1.": kept(1, 3, 4, scaled=False),
        "one token too many: the sum was at least p without it.": kept(1, 3, 4, 5),
        "this keeps tokens in the order of their numbers; begin with the likeliest.": (
            kept(0, 1, 2, 3)
        ),
        "the numbers are sorted; each token keeps its own place.": values,
        "nothing is cut off.": probabilities,
        "only the likeliest token is left: this is greedy search.": kept(1),
    }
    if problem := compare(result, kept(1, 3, 4), mistakes):
        return problem
    everything = call(answer, probabilities.clone(), 1.0)
    if problem := compare(everything, probabilities, {}):
        return wrong(f"p = 1 should keep every token, but {problem.message}")
    return right("The tail is gone, and the rest adds up to 1.")


def _best(scores: Tensor) -> Tensor:
    """Parents and tokens of the three best: (3, 2)."""
    places = scores.flatten().topk(3).indices
    n_tokens = scores.size(1)
    return torch.stack([places // n_tokens, places % n_tokens], dim=1)


def _compare_ids(
    result: Tensor, expected: Tensor, mistakes: dict[str, Tensor]
) -> Feedback | None:
    """Compare whole numbers with the right ones and with known wrong ones."""
    if torch.equal(result, expected):
        return None
    for message, other in mistakes.items():
        if torch.equal(result, other):
            return wrong(message)
    row = int((result != expected).any(dim=1).nonzero()[0])
    return wrong(
        f"row {row} should be {expected[row].tolist()}, not {result[row].tolist()}."
    )
