"""Graders of the chapter on generating a translation."""

import torch

from transformer_book.exercises.grading import Grader

_IDS = [[5, 2, 6, 2, 7], [4, 5, 6, 7, 8], [2, 9, 9, 9, 9], [3, 4, 5, 6, 2]]


def _n_ends(ids, eos_id):
    """How many ends each row has had up to each position, this one included."""
    return (ids == eos_id).long().cumsum(dim=1)


def _cut(ids, eos_id, pad_id):
    return ids.masked_fill(_n_ends(ids, eos_id) - (ids == eos_id).long() > 0, pad_id)


def _cut_at_last(ids, eos_id, pad_id, spare=True):
    behind = _n_ends(ids.flip(1), eos_id).flip(1) == 0
    ended = (ids == eos_id).any(dim=1, keepdim=True)
    return ids.masked_fill(behind & (ended if spare else True), pad_id)


check_cut = Grader(
    "ids (batch, length), eos_id, pad_id -> the same ids with padding after the first "
    "end of each row",
    cases=lambda: [(torch.tensor(_IDS), 2, 0)],
    solution=_cut,
    right="Each row ends where its model has ended it.",
    mistakes={
        "the end token is gone too: it belongs to the target.":
            lambda ids, eos, pad: ids.masked_fill(_n_ends(ids, eos) > 0, pad),
        "truncate at the first end of each row, not at its last.": _cut_at_last,
        "a row without an end is padding now; it should stay as it is.":
            lambda *given: _cut_at_last(*given, spare=False),
        "all rows are truncated where one has ended: each has an end of its own.":
            lambda ids, eos, pad: (
                ids.where((ids == eos) | ~(_n_ends(ids, eos) > 0).any(dim=0), pad)),
        "only the end tokens are replaced; replace what follows them.":
            lambda ids, eos, pad: ids.masked_fill(ids == eos, pad),
    },
)  # fmt: skip


def _draw_step():
    table = [[0.06, 0.05, 0.50, 0.20, 0.15, 0.04],
             [0.02, 0.02, 0.30, 0.05, 0.21, 0.40],
             [0.01, 0.01, 0.01, 0.01, 0.95, 0.01]]  # fmt: skip
    return [(torch.tensor([-0.1, -0.7, -5.0]), torch.tensor(table).log(), 2)]


def _grow(totals, log_probs, eos_id):
    return (totals[:, None] + log_probs).index_fill(1, torch.tensor(eos_id), -torch.inf)


def _best(scores):
    n_tokens, places = scores.size(1), scores.flatten().topk(3).indices
    return torch.stack([places // n_tokens, places % n_tokens], dim=1)


def _step(totals, log_probs, eos_id):
    return _best(_grow(totals, log_probs, eos_id))


def _own_children(*given):
    return torch.stack([torch.arange(3), _grow(*given).argmax(dim=1)], dim=1)


check_beam_step = Grader(
    "totals (n_beams,), log_probs (n_beams, vocabulary), eos_id -> parent and token of "
    "the beams that go on, integers (n_beams, 2)",
    cases=_draw_step,
    solution=_step,
    right="All children compete, and those that have ended step aside.",
    mistakes={
        "a beam goes on that has ended: leave eos_id out.":
            lambda totals, log_probs, eos: _best(totals[:, None] + log_probs),
        "the beams' own log-probabilities are missing: add totals.":
            lambda totals, *given: _step(0 * totals, *given),
        "every beam keeps one child; all children compete for all beams.":
            lambda *given: (
                _own_children(*given)[_grow(*given).amax(dim=1).argsort().flip(0)]),
        "every beam keeps one child, and in the order of the parents; all children "
        "compete for all beams.": lambda *given: _own_children(*given),
        "parent and token are swapped: the parent comes first.":
            lambda *given: _step(*given).flip(1),
        "the order is reversed: the best comes first.":
            lambda *given: _step(*given).flip(0),
        "only the first beam has children: look at all rows.":
            lambda *given: _best(_grow(*given)[:1]),
    },
)  # fmt: skip


def _min_p(probabilities, share, scaled=True):
    bar = share * probabilities.max(dim=1, keepdim=True).values
    kept = probabilities.masked_fill(probabilities < bar, 0.0)
    return kept / kept.sum(dim=1, keepdim=True) if scaled else kept


def _fixed_bar(probabilities, share):
    kept = probabilities.masked_fill(probabilities < share, 0.0)
    return kept / kept.sum(dim=1, keepdim=True)


def _one_bar(probabilities, share):
    kept = probabilities.masked_fill(probabilities < share * probabilities.max(), 0.0)
    return kept / kept.sum(dim=1, keepdim=True)


_PROBABILITIES = [[0.05, 0.4, 0.02, 0.25, 0.15, 0.1, 0.03],
                  [0.2, 0.16, 0.14, 0.15, 0.12, 0.13, 0.1]]  # fmt: skip

check_min_p = Grader(
    "probabilities (n_rows, vocabulary), share -> tokens with at least that share of "
    "their row's highest probability, scaled to rows with a sum of 1",
    cases=lambda: [(torch.tensor(_PROBABILITIES), share) for share in (0.3, 0.9)],
    solution=_min_p,
    right="Few tokens where the model is sure, many where it is not.",
    mistakes={
        "what is kept must be scaled: each row sums to 1.": {"scaled": False},
        "the bar is a share of the row's highest probability, not a probability.":
            _fixed_bar,
        "each row has a highest probability of its own: take the maximum along dim 1.":
            _one_bar,
        "nothing is left out.": lambda probabilities, share: probabilities.clone(),
        "only the likeliest token of each row is left: this is greedy search.":
            lambda probabilities, share: _min_p(probabilities, 1.0),
        "this keeps the unlikely tokens; keep the likely ones.":
            lambda probabilities, share: _flip(probabilities, share),
    },
)  # fmt: skip


def _flip(probabilities, share):
    bar = share * probabilities.max(dim=1, keepdim=True).values
    kept = probabilities.masked_fill(probabilities >= bar, 0.0)
    return kept / kept.sum(dim=1, keepdim=True)
