"""Graders of the chapter on embeddings and positions."""

import math

import torch
from torch import nn

from transformer_book.exercises.grading import Seen, grader, run_module
from transformer_lib import sinusoid_table


@grader(
    lambda: [(0, 4), (1, 4), (3, 256), (127, 256)],
    "The first pair needs 6.3 positions; the last of 128 pairs, about 58,000.",
    ("a full circle has 2 * pi radians.",
     *[{"circle": circle} for circle in (1, math.pi, 360)]),
    ("divide by the speed: a slow hand takes long.", {"exponent": -2}),
    ("the exponent is 2 * pair / d_model, not pair / d_model.", {"exponent": 1}),
)  # fmt: skip
def check_period(pair, d_model, circle=2 * math.pi, exponent=2):
    """A pair (from 0), d_model -> how many positions its hand takes for a circle."""
    return circle * 10_000 ** (exponent * pair / d_model)


@grader(
    lambda: [(sinusoid_table(20, 8)[7:12], k) for k in (3, -4, 0)],
    "One rotation for each pair moves every position by the same step.",
    ("you moved in the other direction; check the signs.",
     lambda vectors, k: check_position_shift.solve(vectors, -k)),
    ("these are rows of the tensor; compute the vectors k positions further on.",
     lambda vectors, k: vectors.roll(-k, dims=0)),
    ("pair i turns at speed 10000^(-2i / d_model).", {"exponent": -1}),
)  # fmt: skip
def check_position_shift(vectors, k, exponent=-2):
    """Vectors (n_positions, d_model), k -> those k positions on (equation 1.4)."""
    pair, d_model = torch.arange(vectors.size(1) // 2), vectors.size(1)
    angle = k * 10_000.0 ** (exponent * pair / d_model)
    sin, cos = vectors[:, 0::2], vectors[:, 1::2]
    new_sin = sin * angle.cos() + cos * angle.sin()
    new_cos = cos * angle.cos() - sin * angle.sin()
    return torch.stack([new_sin, new_cos], dim=-1).flatten(1)


def _draw_segments():
    ids = torch.tensor([[5, 3, 7, 4], [2, 8, 8, 6], [9, 4, 1, 0]])
    segments = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 2], [0, 0, 0, 1]])
    tables = {"tokens.weight": torch.randn(11, 6), "segments.weight": torch.randn(3, 6)}
    return [((ids, segments), tables)]


@grader(
    _draw_segments,
    "Three vectors for each token, one sum.",
    ("multiply the token vectors, and only those, by sqrt(d_model).",
     {"factors": (1, 1, 1)}, {"factors": (6**0.5,) * 3}),
    ("the positions are missing.", {"factors": (6**0.5, 1, 0)}),
    ("positions start at 0, but yours start at 1.", {"first": 1}),
    run=lambda answer, given, tables: run_module(answer, (11, 3, 6), given, tables),
)  # fmt: skip
class check_segments(nn.Module):
    """The class SegmentEmbeddings(vocab_size, n_segments, d_model).

    Its forward takes ids and segments, (batch, length) -> (batch, length, d_model).
    """

    factors, first = (6**0.5, 1, 1), 0

    def __init__(self, vocab_size, n_segments, d_model):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.segments = nn.Embedding(n_segments, d_model)

    def forward(self, ids, segments):
        """(batch, length) twice -> (batch, length, d_model)."""
        waves = sinusoid_table(9, 6)[self.first :][: ids.size(1)]
        vectors = self.tokens(ids), self.segments(segments), waves
        return sum(f * x for f, x in zip(self.factors, vectors, strict=True))


def _distance(tables):
    return torch.pdist(tables[0].double()).min().item()


def _shift_error(tables, *sizes):
    """By how much the best matrix misses some next position, if that is too much."""
    here, following = tables[0][:-1].double(), tables[0][1:].double()
    matrix = torch.linalg.lstsq(here, following, driver="gelsd").solution
    error = (here @ matrix - following).abs().max().item()
    return error > 1e-3 and error


@grader(
    lambda: [(64, 16)],
    lambda results: (
        f"All five properties. The smallest distance is {_distance(results[0]):.2f}, "
        "and one matrix carries every position to the next."
    ),
    ("position 1 has another vector in another table; it must not depend on the "
     "length or on chance.",
     Seen(lambda t, n, width: (t[0][: n // 2] - t[1]).abs().max() > 1e-4),
     lambda n, width: check_positions.solve(n, width) / n, torch.rand),
    ("all numbers must lie between -1 and 1.",
     Seen(lambda tables, *sizes: tables[0].abs().max() > 1 + 1e-6),
     lambda n, width: torch.arange(1.0 * n * width).view(n, width)),
    ("two positions are only {:.3f} apart; they must be more than 0.1 apart.",
     Seen(lambda tables, *sizes: (d := _distance(tables)) <= 0.1 and [d]), torch.ones),
    ("no single matrix carries every position to the next; the best one misses by "
     "{:.3f}.",
     Seen(_shift_error), lambda *sizes: check_positions.solve(*sizes) ** 3),
    ("these are the paper's sinusoids; find a different encoding.",
     Seen(lambda t, *sizes: (t[0] - sinusoid_table(*sizes)).abs().max() < 1e-4),
     sinusoid_table),
    run=lambda answer, n, width: tuple(answer(size, width) for size in (n, n // 2)),
    any_answer=True,
)  # fmt: skip
def check_positions(n_positions, d_model, squares=(2, 3, 5, 7, 11, 13, 17, 19)):
    """Encode positions in a way of your own: (n_positions, d_model).

    It is graded by its properties. Hands whose speeds are square roots of primes never
    all come back together.
    """
    speeds = torch.tensor(squares[: d_model // 2]).sqrt()
    angle = torch.arange(n_positions)[:, None] * speeds
    return torch.cat([angle.sin(), angle.cos()], dim=1)
