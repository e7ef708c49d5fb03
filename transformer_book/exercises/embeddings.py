"""Graders of the chapter on embeddings and positions."""

import math

import torch
from torch import nn

from transformer_book.exercises.grading import grader, run_module
from transformer_lib.model.embeddings import sinusoid_table


@grader(
    cases=lambda: [(0, 4), (1, 4), (3, 256), (127, 256)],
    right="The first pair needs 6.3 positions; the last of 128 pairs, about 58,000.",
)
def check_period(pair, d_model):
    """A pair (from 0), d_model -> how many positions its hand takes for a circle."""
    return 2 * math.pi * 10_000 ** (2 * pair / d_model)


check_period.mistake(
    "a full circle has 2 * pi radians.",
    lambda pair, d_model: 10_000 ** (2 * pair / d_model),
    lambda pair, d_model: math.pi * 10_000 ** (2 * pair / d_model),
    lambda pair, d_model: 360 * 10_000 ** (2 * pair / d_model),
)
check_period.mistake(
    "divide by the speed: a slow hand takes long.",
    lambda pair, d_model: check_period.solve(-pair, d_model),
)
check_period.mistake(
    "the exponent is 2 * pair / d_model, not pair / d_model.",
    lambda pair, d_model: check_period.solve(pair / 2, d_model),
)


@grader(
    cases=lambda: [(sinusoid_table(20, 8)[7:12], k) for k in (3, -4, 0)],
    right="One rotation for each pair moves every position by the same step.",
)
def check_position_shift(vectors, k):
    """Vectors (n_positions, d_model), k -> those k positions on (equation 1.4)."""
    pair, d_model = torch.arange(vectors.size(1) // 2), vectors.size(1)
    return _turn(vectors, k * 10_000.0 ** (-2 * pair / d_model))


def _turn(vectors, angle):
    """Turn each pair by its angle (n_pairs,)."""
    sin, cos = vectors[:, 0::2], vectors[:, 1::2]
    new_sin = sin * angle.cos() + cos * angle.sin()
    new_cos = cos * angle.cos() - sin * angle.sin()
    return torch.stack([new_sin, new_cos], dim=-1).flatten(1)


check_position_shift.mistake(
    "you moved in the other direction; check the signs.",
    lambda vectors, k: check_position_shift.solve(vectors, -k),
)
check_position_shift.mistake(
    "these are rows of the tensor; compute the vectors k positions further on.",
    lambda vectors, k: vectors.roll(-k, dims=0),
)
check_position_shift.mistake(
    "pair i turns at speed 10000^(-2i / d_model).",
    lambda vectors, k: _turn(vectors, k * 10_000.0 ** (-torch.arange(4) / 8)),
)


def _draw_segments():
    ids = torch.tensor([[5, 3, 7, 4], [2, 8, 8, 6], [9, 4, 1, 0]])
    segments = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 2], [0, 0, 0, 1]])
    tables = {"tokens.weight": torch.randn(11, 6), "segments.weight": torch.randn(3, 6)}
    return [((ids, segments), tables)]


@grader(
    cases=_draw_segments,
    right="Three vectors for each token, one sum.",
    run=lambda answer, inputs, tables: run_module(answer, (11, 3, 6), inputs, tables),
)
class check_segments(nn.Module):
    """The class SegmentEmbeddings(vocab_size, n_segments, d_model).

    Its forward takes ids and segments, (batch, length) -> (batch, length, d_model).
    """

    def __init__(self, vocab_size, n_segments, d_model):
        super().__init__()
        self.d_model = d_model
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.segments = nn.Embedding(n_segments, d_model)

    def forward(self, ids, segments):
        """(batch, length) twice -> (batch, length, d_model)."""
        x = self.tokens(ids) * self.d_model**0.5 + self.segments(segments)
        return x + sinusoid_table(ids.size(1), self.d_model)


class _NothingScaled(check_segments.solve):
    def forward(self, ids, segments):
        x = self.tokens(ids) + self.segments(segments)
        return x + sinusoid_table(4, 6)


class _AllScaled(_NothingScaled):
    def forward(self, ids, segments):
        return super().forward(ids, segments) * 6**0.5


class _WithoutPositions(check_segments.solve):
    def forward(self, ids, segments):
        return super().forward(ids, segments) - sinusoid_table(4, 6)


class _FromPositionOne(_WithoutPositions):
    def forward(self, ids, segments):
        return super().forward(ids, segments) + sinusoid_table(5, 6)[1:]


check_segments.mistake(
    "multiply the token vectors, and only those, by sqrt(d_model).",
    _NothingScaled,
    _AllScaled,
)
check_segments.mistake("the positions are missing.", _WithoutPositions)
check_segments.mistake("positions start at 0, but yours start at 1.", _FromPositionOne)


def _run_positions(answer, n_positions, d_model):
    """Two tables, the second one half as long."""
    return tuple(answer(n, d_model) for n in (n_positions, n_positions // 2))


def _smallest_distance(tables):
    return torch.pdist(tables[0].double()).min().item()


@grader(
    cases=lambda: [(64, 16)],
    right=lambda results: (
        "All five properties. The smallest distance is "
        f"{_smallest_distance(results[0]):.2f}, and one matrix carries every position "
        "to the next."
    ),
    run=_run_positions,
    any_answer=True,
)
def check_positions(n_positions, d_model):
    """Encode positions in a way of your own: (n_positions, d_model).

    It is graded by its properties. Hands whose speeds are square roots of primes never
    all come back together.
    """
    primes = torch.tensor([2, 3, 5, 7, 11, 13, 17, 19])
    speeds = primes[: d_model // 2].sqrt()
    angle = torch.arange(n_positions)[:, None] * speeds
    return torch.cat([angle.sin(), angle.cos()], dim=1)


def _another_table(tables, n_positions, d_model):
    return (tables[0][: n_positions // 2] - tables[1]).abs().max() > 1e-4


def _too_near(tables, n_positions, d_model):
    distance = _smallest_distance(tables)
    return [distance] if distance <= 0.1 else None


def _shift_error(tables, n_positions, d_model):
    """By how much the best matrix misses some next position, if that is too much.

    Column after column of the table is taken out of all: what is left of the next
    positions, no matrix makes of these.
    """
    columns = torch.cat([tables[0][:-1], tables[0][1:]], dim=1).double()
    for number in range(d_model):
        length = columns[:, number].norm()
        if length > 1e-9:
            direction = columns[:, number] / length
            columns = columns - direction[:, None] * (direction @ columns)
    error = columns[:, d_model:].abs().max().item()
    return error > 1e-3 and error


check_positions.mistake(
    "position 1 has another vector in another table; it must not depend on the "
    "length or on chance.",
    lambda n_positions, d_model: (
        check_positions.solve(n_positions, d_model) / n_positions
    ),
    torch.rand,
    sign=_another_table,
)
check_positions.mistake(
    "all numbers must lie between -1 and 1.",
    lambda n_positions, d_model: torch.arange(1.0 * n_positions * d_model).view(
        n_positions, d_model
    ),
    lambda *sizes: torch.full(sizes, torch.nan),
    sign=lambda tables, *sizes: not (tables[0].abs() <= 1 + 1e-6).all(),
)
check_positions.mistake(
    "two positions are only {:.3f} apart; they must be more than 0.1 apart.",
    torch.ones,
    sign=_too_near,
)
check_positions.mistake(
    "no single matrix carries every position to the next; the best one misses by "
    "{:.3f}.",
    lambda *sizes: check_positions.solve(*sizes) ** 3,
    sign=_shift_error,
)
check_positions.mistake(
    "these are the paper's sinusoids; find a different encoding.",
    sinusoid_table,
    sign=lambda tables, *sizes: (tables[0] - sinusoid_table(*sizes)).abs().max() < 1e-4,
)
