"""Graders of the chapter on the encoder that classifies."""

import math

import torch
import torch.nn.functional as F

from transformer_book.exercises.grading import grader
from transformer_lib.evaluation.accuracy import wilson_interval


def _real():
    """True where one of three texts has a word."""
    return torch.arange(5) < torch.tensor([[5], [2], [3]])


@grader(
    cases=lambda: [(torch.randn(3, 5, 7) - 2.0, _real())],
    right="The largest value of every feature, and no padding in it.",
)
def check_masked_max(hidden, real):
    """The largest value of every feature.

    hidden (batch, length, d_model) and real (batch, length), True where a position is
    no padding -> (batch, d_model).
    """
    return hidden.masked_fill(~real.unsqueeze(-1), -math.inf).amax(dim=1)


check_masked_max.mistake(
    "padding takes part in the maximum.", lambda hidden, real: hidden.amax(dim=1)
)
check_masked_max.mistake(
    "padding counts as 0, which beats every negative feature; fill it with minus "
    "infinity.",
    lambda hidden, real: (hidden * real.unsqueeze(-1)).amax(dim=1),
)


@grader(
    cases=lambda: [(1186, 1500), (3, 10), (10, 10)],
    right="All shares that this result is compatible with.",
    atol=2e-4,
)
def check_interval(n_right, n):
    """n_right, n -> Wilson's 95 % interval of the share, (low, high)."""
    return wilson_interval(n_right, n)


def _plain_interval(n_right, n):
    half = 1.96 * math.sqrt(n_right / n * (1 - n_right / n) / n)
    return n_right / n - half, n_right / n + half


check_interval.mistake(
    "this is the plain interval, share plus and minus 1.96 deviations. At 10 of "
    "10 it claims to be certain.",
    _plain_interval,
)
check_interval.mistake(
    "the bounds are shares, from 0 to 1, not percent.",
    lambda n_right, n: tuple(100 * bound for bound in check_interval.solve(n_right, n)),
)


@grader(
    cases=lambda: [(2 * torch.randn(5, 3), torch.tensor([0, 2, 1, 1, 0]))],
    right="Down with the right energy, up with all the others.",
)
def check_energy_loss(energies, labels):
    """Energies (batch, n_classes), labels (batch,) -> mean cross-entropy in nats."""
    return F.cross_entropy(-energies, labels)


def _of_the_label(energies, labels):
    return energies.gather(1, labels.unsqueeze(1)).squeeze(1)


check_energy_loss.mistake(
    "energies aren't logits: a low energy is a good answer.", F.cross_entropy
)
check_energy_loss.mistake(
    "this only pulls the right energy down; nothing keeps the others up.",
    lambda energies, labels: _of_the_label(energies, labels).mean(),
)
check_energy_loss.mistake(
    "the other energies enter by + ln of the sum of exp(-E).",
    lambda energies, labels: (
        _of_the_label(energies, labels) + energies.logsumexp(dim=1)
    ).mean(),
)


@grader(
    cases=lambda: [(torch.randn(3, 5, 7).double(), _real(), torch.randn(7).double())],
    right="One query, asked of every word; its answer is the text.",
)
def check_attention_pool(hidden, real, query):
    """A text's vector, by attention.

    hidden (batch, length, d_model), real (batch, length) and one learned query
    (d_model,) -> (batch, d_model).
    """
    scores = hidden @ query / len(query) ** 0.5
    weights = scores.masked_fill(~real, -math.inf).softmax(1)
    return (weights.unsqueeze(-1) * hidden).sum(dim=1)


check_attention_pool.mistake(
    "padding gets weight: set its scores to minus infinity first.",
    lambda hidden, real, query: check_attention_pool.solve(hidden, real | True, query),
)
check_attention_pool.mistake(
    "divide the scores by the square root of d_model.",
    lambda hidden, real, query: check_attention_pool.solve(
        hidden, real, query * 7**0.5
    ),
    lambda hidden, real, query: check_attention_pool.solve(
        hidden, real, query / 7**0.5
    ),
)
