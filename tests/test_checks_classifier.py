"""The graders of the classifier chapter: right answers pass, wrong ones are named."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transformer_lib.evaluation.accuracy import wilson_interval
from transformer_lib.exercises.classifier import (
    check_attention_pool,
    check_energy_loss,
    check_interval,
    check_masked_max,
)


def masked_max(hidden, real, fill=-math.inf):
    return hidden.masked_fill(~real.unsqueeze(-1), fill).max(dim=1).values


def attention_pool(hidden, real, query, scale=7**0.5):
    scores = (hidden @ query / scale).masked_fill(~real, -math.inf)
    return torch.einsum("bl,bld->bd", scores.softmax(-1), hidden)


def energy_loss(energies, labels):
    return F.cross_entropy(-energies, labels)


def flipped(hidden, real):
    return masked_max(hidden, ~real)


def uniform(hidden, real, query):
    return attention_pool(hidden, real, 0 * query)


def over_the_batch(hidden, real, query):
    scores = (hidden @ query / 7**0.5).masked_fill(~real, -math.inf)
    return torch.einsum("bl,bld->bd", scores.softmax(0), hidden)


def plain(n_right, n):
    share = n_right / n
    half = 1.96 * math.sqrt(share * (1 - share) / n)
    return share - half, share + half


RIGHT = [
    (check_masked_max, masked_max),
    (check_interval, wilson_interval),
    (check_energy_loss, energy_loss),
    (check_attention_pool, attention_pool),
]


@pytest.mark.parametrize(("grader", "answer"), RIGHT)
def test_the_right_answer_passes(grader, answer) -> None:
    assert grader(answer).passed


WRONG = {
    (check_masked_max, "the pair"): lambda h, r: h.max(dim=1),
    (check_masked_max, "padding takes part"): lambda h, r: h.max(dim=1).values,
    (check_masked_max, "counts as 0"): lambda h, r: masked_max(h, r, 0.0),
    (check_masked_max, "infinity"): flipped,
    (check_masked_max, "minimum"): lambda h, r: -masked_max(-h, r),
    (check_masked_max, "mean"): lambda h, r: torch.stack(
        [row[keep].mean(dim=0) for row, keep in zip(h, r, strict=True)]
    ),
    (check_masked_max, "shape"): lambda h, r: h,
    (check_interval, "At 10 of 10 it claims"): plain,
    (check_interval, "one deviation"): lambda k, n: wilson_interval(k, n, 1.0),
    (check_interval, "wrong order"): lambda k, n: wilson_interval(k, n)[::-1],
    (check_interval, "per cent"): lambda k, n: tuple(
        100 * bound for bound in wilson_interval(k, n)
    ),
    (check_interval, "two bounds"): lambda k, n: k / n,
    (check_interval, "some numbers are off"): lambda k, n: (0.1, 0.2),
    (check_energy_loss, "for logits"): F.cross_entropy,
    (check_energy_loss, "keeps the others up"): lambda e, y: (
        (e * F.one_hot(y, 3)).sum(1).mean()
    ),
    (check_energy_loss, "missing its sign"): lambda e, y: (
        2 * (e * F.one_hot(y, 3)).sum(1).mean() - energy_loss(e, y)
    ),
    (check_energy_loss, "it is exp(-E)"): lambda e, y: (
        (e * F.one_hot(y, 3)).sum(1) + e.logsumexp(1)
    ).mean(),
    (check_energy_loss, "take the mean"): lambda e, y: 5 * energy_loss(e, y),
    (check_attention_pool, "padding gets weight"): lambda h, r, q: attention_pool(
        h, r | True, q
    ),
    (check_attention_pool, "not divided"): lambda h, r, q: attention_pool(h, r, q, 1),
    (check_attention_pool, "not by its root"): lambda h, r, q: attention_pool(
        h, r, q, 7
    ),
    (check_attention_pool, "over the batch"): over_the_batch,
    (check_attention_pool, "is not used"): uniform,
    (check_attention_pool, "some numbers"): lambda h, r, q: nn.functional.normalize(
        attention_pool(h, r, q)
    ),
}


@pytest.mark.parametrize(("grader", "message"), WRONG)
def test_a_wrong_answer_is_named(grader, message) -> None:
    feedback = grader(WRONG[grader, message])
    assert feedback.status == "wrong"
    assert message in feedback.message
