"""Graders of the chapter on the encoder that judges."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from transformer_lib.evaluation.accuracy import Z_95, wilson_interval
from transformer_lib.exercises.feedback import (
    Feedback,
    call,
    compare,
    right,
    unanswered,
    wrong,
)

REAL = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]).bool()


def check_masked_max(answer: Callable[[Tensor, Tensor], Tensor]) -> Feedback:
    """Grade the maximum of every feature over the real positions.

    Args:
        answer: takes hidden (batch, length, d_model) and real (batch, length), True
            where a position is no padding; returns (batch, d_model).
    """
    hidden = _draw(3, 5, 7) - 2.0  # most features are below 0 at every position
    result = call(answer, hidden.clone(), REAL.clone())
    inside = REAL.unsqueeze(-1)
    expected = hidden.masked_fill(~inside, -math.inf).amax(dim=1)
    if isinstance(result, tuple):
        return wrong("this is the pair that torch.max returns; take its values.")
    mistakes = {
        "padding takes part in the maximum.": hidden.amax(dim=1),
        "padding counts as 0, which beats every negative feature; fill it with minus "
        "infinity.": (hidden * inside).amax(dim=1),
        "the mask is turned round: this is the maximum over padding.": (
            hidden.masked_fill(inside, -math.inf).amax(dim=1)
        ),
        "this is the minimum.": hidden.masked_fill(~inside, math.inf).amin(dim=1),
        "this is the mean.": (hidden * inside).sum(1) / inside.sum(1),
    }
    if problem := compare(result, expected, mistakes):
        return problem
    return right("The largest value of every feature, and no padding in it.")


def check_interval(answer: Callable[[int, int], tuple[float, float]]) -> Feedback:
    """Grade the 95 % interval of a share of right answers, after Wilson.

    Args:
        answer: takes n_right and n; returns the lower and the upper bound.
    """
    for n_right, n in ((1186, 1500), (3, 10), (10, 10)):
        result = call(answer, n_right, n)
        if problem := unanswered(result):
            return problem
        if not isinstance(result, tuple) or len(result) != 2:
            return wrong(f"expected two bounds, (low, high), but got {result!r}.")
        share = n_right / n
        plain = Z_95 * math.sqrt(share * (1 - share) / n)
        mistakes = {
            "this is the plain interval, share plus and minus 1.96 deviations. At "
            "10 of 10 it claims to be certain.": (share - plain, share + plain),
            "one deviation holds 68 %; 95 % need 1.96.": wilson_interval(n_right, n, 1),
            "the bounds are in the wrong order.": wilson_interval(n_right, n)[::-1],
            "the bounds are shares, from 0 to 1, not per cent.": tuple(
                100 * bound for bound in wilson_interval(n_right, n)
            ),
        }
        expected = _pair(wilson_interval(n_right, n))
        named = {message: _pair(bounds) for message, bounds in mistakes.items()}
        if problem := compare(_pair(result), expected, named, atol=2e-4):
            return wrong(f"{n_right} of {n}: {problem.message}")
    return right("All shares that this result is compatible with.")


def check_energy_loss(answer: Callable[[Tensor, Tensor], Tensor]) -> Feedback:
    """Grade the mean cross-entropy, written with energies.

    Args:
        answer: takes energies (batch, n_classes) and labels (batch,); returns a
            scalar, in nats.
    """
    energies, labels = 2 * _draw(5, 3), torch.tensor([0, 2, 1, 1, 0])
    result = call(answer, energies.clone(), labels.clone())
    own = energies.gather(1, labels.unsqueeze(1)).squeeze(1)
    expected = (own + (-energies).logsumexp(dim=1)).mean()
    mistakes = {
        "energies are taken for logits: a low energy is a good answer.": (
            (-own + energies.logsumexp(dim=1)).mean()
        ),
        "this only pulls the right energy down; nothing keeps the others up.": (
            own.mean()
        ),
        "the logarithm of the sum is missing its sign or the sum its own: it is "
        "+ ln of the sum of exp(-E).": (own - (-energies).logsumexp(dim=1)).mean(),
        "the sum runs over exp(E); it is exp(-E).": (
            (own + energies.logsumexp(dim=1)).mean()
        ),
        "this is the sum over the batch; take the mean.": 5 * expected,
    }
    if problem := compare(result, expected, mistakes):
        return problem
    return right("Down with the right energy, up with all the others.")


def check_attention_pool(
    answer: Callable[[Tensor, Tensor, Tensor], Tensor],
) -> Feedback:
    """Grade the pooling by attention with one learned query.

    Args:
        answer: takes hidden (batch, length, d_model), real (batch, length) and query
            (d_model,); returns (batch, d_model).
    """
    hidden, query = _draw(3, 5, 7), _draw(7, seed=1)
    result = call(answer, hidden.clone(), REAL.clone(), query.clone())
    scores = hidden @ query

    def pooled(scores: Tensor, real: Tensor = REAL, dim: int = 1) -> Tensor:
        weights = scores.masked_fill(~real, -1e300).softmax(dim=dim)
        return (weights.unsqueeze(-1) * hidden).sum(dim=1)

    mistakes = {
        "padding gets weight: set its scores to minus infinity first.": (
            pooled(scores / 7**0.5, torch.ones_like(REAL))
        ),
        "the scores are not divided by the root of d_model.": pooled(scores),
        "the scores are divided by d_model, not by its root.": pooled(scores / 7),
        "the softmax runs over the batch; it belongs to the positions.": (
            pooled(scores / 7**0.5, dim=0)
        ),
        "all positions have the same weight here: the query is not used.": (
            pooled(0 * scores)
        ),
    }
    if problem := compare(result, pooled(scores / 7**0.5), mistakes):
        return problem
    return right("One query, asked of every word; its answer is the text.")


def _pair(bounds: tuple[float, float]) -> Tensor:
    return torch.tensor([float(bound) for bound in bounds], dtype=torch.float64)


def _draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)
