"""Graders of the chapter on generating a translation."""

import torch

from transformer_lib.exercises.grading import Grader

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


def _keep(probabilities, n, scaled=True):
    """Keep the n likeliest tokens."""
    kept = torch.zeros_like(probabilities)
    tokens = probabilities.topk(n).indices
    kept[tokens] = probabilities[tokens]
    return kept / kept.sum() if scaled else kept


def _nucleus(probabilities, p, more=0, scaled=True):
    sums = probabilities.sort(descending=True).values.cumsum(0)
    n_kept = int((sums < p - 1e-6).sum()) + 1 + more
    return _keep(probabilities, min(n_kept, len(sums)), scaled)


def _in_order(probabilities, p):
    before = probabilities.cumsum(0) - probabilities
    kept = probabilities.masked_fill(before >= p, 0)
    return kept / kept.sum()


_PROBABILITIES = [0.05, 0.4, 0.02, 0.25, 0.15, 0.1, 0.03]

check_nucleus = Grader(
    "probabilities (vocabulary,), p -> the fewest likeliest tokens with a sum of at "
    "least p, scaled to a sum of 1, (vocabulary,)",
    cases=lambda: [(torch.tensor(_PROBABILITIES), p) for p in (0.7, 1.0)],
    solution=_nucleus,
    right="The tail is gone, and the rest adds up to 1.",
    mistakes={
        "the token that crosses p is missing: the sum must be at least p.":
            {"more": -1},
        "what is kept must be scaled to a sum of 1.": {"scaled": False},
        "one token too many: the sum was at least p without it.": {"more": 1},
        "this keeps tokens in the order of their numbers; begin with the likeliest.":
            _in_order,
        "the numbers are sorted; each token keeps its own index.":
            lambda *given: _nucleus(*given).sort(descending=True).values,
        "nothing is left out.": lambda probabilities, p: probabilities.clone(),
        "only the likeliest token is left: this is greedy search.":
            lambda probabilities, p: _keep(probabilities, 1),
        "p = 1 should keep every token.":
            lambda probabilities, p: _keep(probabilities, 3),
    },
)  # fmt: skip
