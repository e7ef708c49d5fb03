"""Graders of the chapter on generating a translation."""

import torch

from transformer_book.exercises.grading import grader


@grader(
    cases=lambda: [(torch.tensor([[5, 2, 6, 2], [4, 5, 6, 7], [2, 9, 9, 9]]), 2, 0)],
    right="Each row ends where its model has ended it.",
)
def check_cut(ids, eos_id, pad_id):
    """Ids (batch, length), eos_id, pad_id -> padding after each first end."""
    ends = (ids == eos_id).long()
    return ids.masked_fill(ends.cumsum(dim=1) > ends, pad_id)


check_cut.mistake(
    "the end token is gone too: it belongs to the target.",
    lambda ids, eos_id, pad_id: ids.masked_fill((ids == eos_id).cumsum(1) > 0, pad_id),
)
check_cut.mistake(
    "only the end tokens are replaced; replace what follows them.",
    lambda ids, eos_id, pad_id: ids.masked_fill(ids == eos_id, pad_id),
)


def _draw_step():
    table = [[0.06, 0.05, 0.50, 0.20, 0.15, 0.04],
             [0.02, 0.02, 0.30, 0.05, 0.21, 0.40],
             [0.01, 0.01, 0.01, 0.01, 0.95, 0.01]]  # fmt: skip
    return [(torch.tensor([-0.1, -0.7, -5.0]), torch.tensor(table).log(), 2)]


@grader(
    cases=_draw_step,
    right="All children compete, and those that have ended step aside.",
)
def check_beam_step(totals, log_probs, eos_id):
    """Which beams go on, and how.

    totals (n_beams,), log_probs (n_beams, vocabulary), eos_id -> parent and token of
    the beams that go on, integers (n_beams, 2).
    """
    children = totals[:, None] + log_probs
    children[:, eos_id] = -torch.inf
    best = children.flatten().topk(len(totals)).indices
    return torch.stack([best // children.size(1), best % children.size(1)], dim=1)


def _with_ended_beams(totals, log_probs, eos_id):
    children = totals[:, None] + log_probs
    best = children.flatten().topk(len(totals)).indices
    return torch.stack([best // children.size(1), best % children.size(1)], dim=1)


def _one_child_each(totals, log_probs, eos_id):
    children = totals[:, None] + log_probs
    children[:, eos_id] = -torch.inf
    return torch.stack([torch.arange(len(totals)), children.argmax(dim=1)], dim=1)


check_beam_step.mistake(
    "a beam goes on that has ended: leave eos_id out.", _with_ended_beams
)
check_beam_step.mistake(
    "the beams' own log-probabilities are missing: add totals.",
    lambda totals, *others: check_beam_step.solve(0 * totals, *others),
)
check_beam_step.mistake(
    "every beam keeps one child; all children compete for all beams.", _one_child_each
)


_PROBABILITIES = [[0.05, 0.4, 0.02, 0.25, 0.15, 0.1, 0.03],
                  [0.2, 0.16, 0.14, 0.15, 0.12, 0.13, 0.1]]  # fmt: skip


def _keep_above(probabilities, bar):
    kept = probabilities * (probabilities >= bar)
    return kept / kept.sum(dim=1, keepdim=True)


@grader(
    cases=lambda: [(torch.tensor(_PROBABILITIES), share) for share in (0.3, 0.9)],
    right="Few tokens where the model is sure, many where it is not.",
)
def check_min_p(probabilities, share):
    """Keep tokens with at least that share of their row's highest probability.

    probabilities (n_rows, vocabulary), share -> the same, scaled to rows with a sum of
    1.
    """
    return _keep_above(probabilities, share * probabilities.amax(dim=1, keepdim=True))


check_min_p.mistake(
    "what is kept must be scaled: each row sums to 1.",
    lambda probabilities, share: (
        probabilities
        * (probabilities >= share * probabilities.amax(dim=1, keepdim=True))
    ),
)
check_min_p.mistake(
    "the bar is a share of the row's highest probability, not a probability.",
    _keep_above,
)
check_min_p.mistake(
    "each row has a highest probability of its own: take the maximum along dim 1.",
    lambda probabilities, share: _keep_above(
        probabilities, share * probabilities.max()
    ),
)
