"""Graders of the chapter on generating a translation."""

import torch

from transformer_book.exercises.grading import grader


@grader(
    lambda: [(torch.tensor([[5, 2, 6, 2], [4, 5, 6, 7], [2, 9, 9, 9]]), 2, 0)],
    "Each row ends where its model has ended it.",
    ("the end token is gone too: it belongs to the target.",
     lambda ids, eos, pad: ids.masked_fill((ids == eos).cumsum(1) > 0, pad)),
    ("only the end tokens are replaced; replace what follows them.",
     lambda ids, eos, pad: ids.masked_fill(ids == eos, pad)),
)  # fmt: skip
def check_cut(ids, eos_id, pad_id):
    """Ids (batch, length), eos_id, pad_id -> padding after each first end."""
    ends = (ids == eos_id).long()
    return ids.masked_fill(ends.cumsum(dim=1) > ends, pad_id)


def _draw_step():
    table = [[0.06, 0.05, 0.50, 0.20, 0.15, 0.04],
             [0.02, 0.02, 0.30, 0.05, 0.21, 0.40],
             [0.01, 0.01, 0.01, 0.01, 0.95, 0.01]]  # fmt: skip
    return [(torch.tensor([-0.1, -0.7, -5.0]), torch.tensor(table).log(), 2)]


@grader(
    _draw_step,
    "All children compete, and those that have ended step aside.",
    ("a beam goes on that has ended: leave eos_id out.",
     lambda totals, log_probs, eos: check_beam_step.solve(totals, log_probs, [])),
    ("the beams' own log-probabilities are missing: add totals.",
     lambda totals, *given: check_beam_step.solve(0 * totals, *given)),
    ("every beam keeps one child; all children compete for all beams.",
     lambda totals, log_probs, eos: torch.cat(
         [check_beam_step.solve(totals[[i]], log_probs[[i]], eos) + torch.tensor([i, 0])
          for i in range(3)])),
)  # fmt: skip
def check_beam_step(totals, log_probs, eos_id):
    """Which beams go on, and how.

    totals (n_beams,), log_probs (n_beams, vocabulary), eos_id -> parent and token of
    the beams that go on, integers (n_beams, 2).
    """
    ended = torch.tensor(eos_id, dtype=torch.long)
    grown = (totals[:, None] + log_probs).index_fill(1, ended, -torch.inf)
    best = grown.flatten().topk(len(totals)).indices
    return torch.stack([best // grown.size(1), best % grown.size(1)], dim=1)


_PROBABILITIES = [[0.05, 0.4, 0.02, 0.25, 0.15, 0.1, 0.03],
                  [0.2, 0.16, 0.14, 0.15, 0.12, 0.13, 0.1]]  # fmt: skip


def _keep_above(probabilities, bar):
    kept = probabilities * (probabilities >= bar)
    return kept / kept.sum(dim=1, keepdim=True)


@grader(
    lambda: [(torch.tensor(_PROBABILITIES), share) for share in (0.3, 0.9)],
    "Few tokens where the model is sure, many where it is not.",
    ("what is kept must be scaled: each row sums to 1.",
     lambda p, share: p * (p >= share * p.amax(dim=1, keepdim=True))),
    ("the bar is a share of the row's highest probability, not a probability.",
     _keep_above),
    ("each row has a highest probability of its own: take the maximum along dim 1.",
     lambda p, share: _keep_above(p, share * p.max())),
)  # fmt: skip
def check_min_p(probabilities, share):
    """Keep tokens with at least that share of their row's highest probability.

    probabilities (n_rows, vocabulary), share -> the same, scaled to rows with a sum of
    1.
    """
    return _keep_above(probabilities, share * probabilities.amax(dim=1, keepdim=True))
