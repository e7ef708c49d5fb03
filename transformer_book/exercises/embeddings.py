"""Graders of the chapter on embeddings and positions."""

import math

import torch
from torch import nn

from transformer_book.exercises.grading import Grader, Mistake, Seen
from transformer_lib.model.embeddings import sinusoid_table


def _period(pair, d_model, circle=2 * math.pi, base=10_000, exponent=None):
    exponent = exponent or (lambda pair, d_model: 2 * pair / d_model)
    return circle * base ** exponent(pair, d_model)


check_period = Grader(
    "pair (0, 1, 2, ...), d_model -> how many positions its hand takes for a full "
    "circle",
    cases=lambda: [(0, 4), (1, 4), (3, 256), (127, 256)],
    solution=_period,
    right="The first pair needs 6.3 positions; the last of 128 pairs, about 58,000.",
    mistakes={
        "that's the time for one radian; a full circle has 2 * pi of them.":
            {"circle": 1},
        "a full circle has 2 * pi radians, not pi.": {"circle": math.pi},
        "a full circle has 2 * pi radians, not 360; the angles here aren't degrees.":
            {"circle": 360},
        "that's the speed, in radians per position; the slower the hand, the longer "
        "the circle takes.":
            lambda pair, d_model: 10_000 ** (-2 * pair / d_model),
        "you multiply by the speed; divide by it: a slow hand takes long.":
            {"exponent": lambda pair, d_model: -2 * pair / d_model},
        "the exponent is 2 * pair / d_model, but yours is pair / d_model.":
            {"exponent": lambda pair, d_model: pair / d_model},
        "the base is 10,000, but yours is 1,000.": {"base": 1000},
    },
)  # fmt: skip


def _shift(vectors, k, frequency=lambda i, d_model: 10_000.0 ** (-2 * i / d_model)):
    d_model = vectors.size(1)
    angle = k * frequency(torch.arange(d_model // 2), d_model)
    sin, cos = vectors[:, 0::2], vectors[:, 1::2]
    new_sin = sin * angle.cos() + cos * angle.sin()
    new_cos = cos * angle.cos() - sin * angle.sin()
    return torch.stack([new_sin, new_cos], dim=-1).flatten(1)


check_position_shift = Grader(
    "vectors (n_positions, d_model), k -> the vectors k positions further on, of the "
    "same shape (equation 1.3)",
    cases=lambda: [(sinusoid_table(20, 8)[7:12], k) for k in (3, -4, 0)],
    solution=_shift,
    right="One rotation for each pair moves every position by the same step.",
    mistakes={
        "you moved in the other direction; check the signs.":
            lambda vectors, k: _shift(vectors, -k),
        "you moved the rows of the tensor. The vectors k positions further on need not "
        "be among its rows; compute them.":
            lambda vectors, k: vectors.roll(-k, dims=0),
        "sine and cosine are swapped.":
            lambda vectors, k: _shift(vectors, k).view(-1, 4, 2).flip(-1).flatten(1),
        "all your sines come first; sines and cosines should alternate.":
            lambda vectors, k: _shift(vectors, k).view(-1, 4, 2).mT.flatten(1),
        "the vectors come back unchanged.": lambda vectors, k: vectors.clone(),
        "you count the rows from position 0, but you don't know their positions.":
            lambda vectors, k: sinusoid_table(20, 8)[max(k, 0) :][: len(vectors)],
        "all your pairs turn at the same speed; pair i turns at speed "
        "10000^(-2i / d_model).": {"frequency": lambda i, d_model: torch.ones(len(i))},
        "the exponent is 2i / d_model, but yours is i / d_model.":
            {"frequency": lambda i, d_model: 10_000.0 ** (-i / d_model)},
    },
)  # fmt: skip


class _SegmentEmbeddings(nn.Module):
    """The sum of three vectors; the keywords make its known mistakes."""

    def __init__(self, vocab_size, n_segments, d_model, factor=None, join=None):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.segments = nn.Embedding(n_segments, d_model)
        self.factor = d_model**0.5 if factor is None else factor(d_model)
        self.join = join or (lambda token, segment, wave: token + segment + wave)

    def forward(self, ids, segments):
        wave = sinusoid_table(ids.size(1), self.tokens.embedding_dim)
        token = self.factor * self.tokens(ids)
        return self.join(token, self.segments(segments), wave)


def _run_segments(answer, ids, segments, token_rows, segment_rows):
    """Build the reader's layer, give it these rows, and call it."""
    if getattr(answer, "forward", None) is nn.Module.forward:
        return None  # the class is still a stub
    sizes = len(token_rows), len(segment_rows), token_rows.size(1)
    with torch.random.fork_rng(devices=[]):  # leave the reader's numbers alone
        layer = answer(*sizes)
    if not isinstance(layer, nn.Module):
        return layer
    for name, rows in (("tokens", token_rows), ("segments", segment_rows)):
        table = getattr(layer, name, None)
        if not isinstance(table, nn.Embedding):
            raise Mistake(
                f"self.{name} should be an nn.Embedding, but it is "
                f"{type(table).__name__}."
            )
        if table.weight.shape != rows.shape:
            raise Mistake(
                f"the weight of self.{name} has shape {tuple(table.weight.shape)}, but "
                f"it should be {tuple(rows.shape)}."
            )
        table.weight.data.copy_(rows)
    return layer.eval()(ids, segments)


def _segment_cases():
    ids = torch.tensor([[5, 3, 7, 4], [2, 8, 8, 6], [9, 4, 1, 0]])
    segments = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 2], [0, 0, 0, 1]])
    return [(ids, segments, torch.randn(11, 6), torch.randn(3, 6))]


check_segments = Grader(
    "the class SegmentEmbeddings(vocab_size, n_segments, d_model), called with ids and "
    "segments, both (batch, length) -> (batch, length, d_model)",
    cases=_segment_cases,
    run=_run_segments,
    solution=_SegmentEmbeddings,
    right="Three vectors for each token, one sum.",
    mistakes={
        "the factor sqrt(d_model) on the token vectors is missing.":
            {"factor": lambda d_model: 1.0},
        "the factor is sqrt(d_model), not d_model.":
            {"factor": lambda d_model: d_model},
        "you divide the token vectors by sqrt(d_model); multiply.":
            {"factor": lambda d_model: d_model**-0.5},
        "the factor belongs to the token vectors; you multiply the segments, too.":
            {"join": lambda token, segment, wave: token + 6**0.5 * segment + wave},
        "the factor belongs to the token vectors, not to the whole sum.":
            {"join": lambda token, segment, wave: token + 6**0.5 * (segment + wave)},
        "the positions are missing.":
            {"join": lambda token, segment, wave: token + segment},
        "the segments are missing.":
            {"join": lambda token, segment, wave: token + wave},
        "positions start at 0, but yours start at 1.":
            {"join": lambda token, segment, wave: (
                token + segment + sinusoid_table(5, 6)[1:])},
        "you count positions along the batch; count along the sentence, ids.size(1).":
            {"join": lambda token, segment, wave: (
                token + segment + sinusoid_table(3, 6)[:, None])},
        "the vectors are too wide: add the three, don't concatenate them.":
            {"join": lambda token, segment, wave: (
                torch.cat([token, segment, wave.expand_as(token)], dim=-1))},
    },
)  # fmt: skip


def _waves(frequency):
    def answer(n_positions, d_model):
        angle = torch.arange(n_positions)[:, None] * frequency(d_model)
        return torch.cat([angle.sin(), angle.cos()], dim=1)

    return answer


def _primes(d_model):
    """Square roots of primes: hands that never all come back together."""
    primes = torch.tensor([2.0, 3, 5, 7, 11, 13, 17, 19])
    return primes[: d_model // 2].sqrt()


def _learned(n_positions, d_model):
    numbers = torch.Generator().manual_seed(0)
    return 2 * torch.rand(99, d_model, generator=numbers)[:n_positions] - 1


def _distance(tables):
    return torch.pdist(tables[0].double()).min().item()


def _shift_error(tables):
    """By how much the best matrix misses some next position."""
    here, following = tables[0][:-1].double(), tables[0][1:].double()
    matrix = torch.linalg.lstsq(here, following, driver="gelsd").solution
    return (here @ matrix - following).abs().max().item()


def _close(x, y):
    return torch.allclose(x.double(), y.double(), atol=1e-4)


check_positions = Grader(
    "n_positions, d_model -> a positional encoding of your own, (n_positions, "
    "d_model), graded by its properties",
    cases=lambda: [(64, 16)],
    run=lambda answer, n, width: tuple(answer(size, width) for size in (n, n, n // 2)),
    solution=_waves(_primes),
    right=lambda results: (
        f"All five properties. The smallest distance is {_distance(results[0]):.2f}, "
        "and one matrix carries every position to the next."
    ),
    any_answer=True,
    mistakes={
        "the same arguments gave two different tables.":
            Seen(lambda tables, n, width: not torch.equal(tables[0], tables[1]),
                 lambda n, width: torch.rand(n, width)),
        "position 1 has one vector in a table of 32 positions and a different one in a "
        "table of 64; it must not depend on the length.":
            Seen(lambda tables, n, width: not _close(tables[0][: n // 2], tables[2]),
                 lambda n, width: _waves(_primes)(n, width) / n),
        "all numbers must lie between -1 and 1, but one is {:.3g}.":
            Seen(lambda tables, n, width: (
                     x.item() if (x := tables[0].abs().max()) > 1 + 1e-6 else None),
                 lambda n, width: torch.arange(n)[:, None].expand(n, width)),
        "two positions are only {:.3f} apart; they must be more than 0.1 apart.":
            Seen(lambda tables, n, width: (
                     gap if (gap := _distance(tables)) <= 0.1 else None),
                 [lambda n, width: torch.ones(n, width),
                  _waves(lambda width: torch.full((width // 2,), math.pi / 8))]),
        "no single matrix carries every position to the next; the best one misses by "
        "{:.3f}.":
            Seen(lambda tables, n, width: (
                     gap if (gap := _shift_error(tables)) > 1e-3 else None),
                 _learned),
        "these are the paper's sinusoids; find a different encoding.":
            Seen(lambda tables, n, width: _close(tables[0], sinusoid_table(n, width)),
                 sinusoid_table),
    },
)  # fmt: skip
