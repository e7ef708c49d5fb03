"""Graders of the chapter on embeddings."""

import math

import torch

from transformer_lib.exercises.grading import Grader, Seen
from transformer_lib.model.embeddings import sinusoid_table


def _count(src_vocab, tgt_vocab, d_model, tying, **rows):
    src, tgt = src_vocab, tgt_vocab
    usual = {"none": src + 2 * tgt, "decoder": src + tgt, "all": tgt}
    return (rows[tying](src, tgt) if tying in rows else usual[tying]) * d_model


check_count = Grader(
    "src_vocab, tgt_vocab, d_model, tying -> number of parameters of the embeddings "
    "and the output layer",
    cases=lambda: [(13, 11, 6, "none"), (13, 11, 6, "decoder"), (13, 13, 6, "all")],
    solution=_count,
    right="Three matrices, two or one: tying removes whole matrices.",
    mistakes={
        "the output layer has no bias here.":
            lambda src, tgt, d_model, tying: _count(src, tgt, d_model, tying) + tgt,
        "a shared matrix counts once, not for each of its jobs.":
            lambda src, tgt, d_model, tying: (src + 2 * tgt) * d_model,
        "you left out the output layer, which has a matrix of its own.":
            {"none": lambda src, tgt: src + tgt},
        "the output layer shares with the target embedding, not source.":
            {"decoder": lambda src, tgt: 2 * src},
        "the source embedding keeps a matrix of its own.":
            [{"decoder": lambda src, tgt: src}, {"decoder": lambda src, tgt: tgt}],
    },
)  # fmt: skip

_PAD = 2
_IDS = [[5, 3, 7, 4], [_PAD, _PAD, 8, 6], [9, 4, _PAD, _PAD]]  # left and right


def _embed(ids, weight, pad_id, factor=None, of_sum=1, count=None):
    d_model, count = weight.size(1), count or (lambda real: real.cumsum(1) - 1)
    positions = count(ids != pad_id).clamp(min=0)
    places = sinusoid_table(99, d_model)[positions]
    return of_sum * ((factor or d_model**0.5) * weight[ids] + places)


def _from_the_edge(real):
    return torch.arange(real.size(1)).expand(real.shape)


check_embed = Grader(
    "ids (batch, length), weight (vocab_size, d_model), pad_id -> (batch, length, "
    "d_model), equation 1.6. Vectors at padding are not looked at.",
    cases=lambda: [(torch.tensor(_IDS), torch.randn(13, 6), _PAD)],
    view=lambda result, ids, weight, pad_id: result[ids != pad_id],
    solution=_embed,
    right="Scaled token plus place, wherever the padding stands.",
    mistakes={
        "the width is twice d_model: add the positions, don't concatenate them.":
            lambda *given: torch.cat(2 * [_embed(*given)], dim=-1),
        "the factor sqrt(d_model) on the token vectors is missing.": {"factor": 1},
        "the factor belongs to the token vectors only, not to the sum.":
            {"factor": 1, "of_sum": 6**0.5},
        "the factor is sqrt(d_model), not d_model.": {"factor": 6},
        "you divide by sqrt(d_model); multiply.": {"factor": 6**-0.5},
        "the positions are missing.":
            lambda ids, weight, pad_id: math.sqrt(weight.size(1)) * weight[ids],
        "count positions past the padding, not from the left edge.":
            {"count": _from_the_edge},
        "positions start at 0, but yours start at 1.":
            {"count": lambda real: real.cumsum(1)},
        "positions start at 0, but yours start at pad_id + 1, as fairseq's do.":
            {"count": lambda real: real.cumsum(1) + _PAD},
        "positions go on from one sentence to the next; each starts at 0.":
            {"count": lambda real: real.view(-1).cumsum(0).view_as(real) - 1},
        "two mistakes: no factor on the tokens, and positions counted from the left "
        "edge.": {"factor": 1, "count": _from_the_edge},
    },
)  # fmt: skip


def _shift(places, k, frequency=lambda i, d_model: 10_000.0 ** (-2 * i / d_model)):
    d_model = places.size(1)
    angle = k * frequency(torch.arange(d_model // 2), d_model)
    sin, cos = places[:, 0::2], places[:, 1::2]
    new_sin = sin * angle.cos() + cos * angle.sin()
    new_cos = cos * angle.cos() - sin * angle.sin()
    return torch.stack([new_sin, new_cos], dim=-1).flatten(1)


check_shift = Grader(
    "places (n_positions, d_model), k -> the vectors k positions further on, of the "
    "same shape (equation 1.4)",
    cases=lambda: [(sinusoid_table(20, 8)[7:12], k) for k in (3, -4, 0)],
    solution=_shift,
    right="One rotation for each frequency moves every position alike.",
    mistakes={
        "you moved in the other direction: check the signs.":
            lambda places, k: _shift(places, -k),
        "the rows were moved in the tensor; compute the vectors further on, which need "
        "not be among the given ones.": lambda places, k: places.roll(-k, dims=0),
        "sine and cosine are swapped.":
            lambda places, k: _shift(places, k).view(-1, 4, 2).flip(-1).flatten(1),
        "all sines come first in yours; here they alternate with the cosines.":
            lambda places, k: _shift(places, k).view(-1, 4, 2).mT.flatten(1),
        "the vectors come back unmoved.": lambda places, k: places.clone(),
        "you count the rows from 0, but the positions of the rows are unknown.":
            lambda places, k: sinusoid_table(20, 8)[max(k, 0) :][: len(places)],
        "every pair of columns turns at the same speed; pair i has the frequency "
        "10000^(-2i / d_model).": {"frequency": lambda i, d_model: torch.ones(len(i))},
        "the exponent is 2i / d_model, but yours is i / d_model.":
            {"frequency": lambda i, d_model: 10_000.0 ** (-i / d_model)},
    },
)  # fmt: skip


def _waves(frequency):
    def answer(n_positions, d_model):
        angle = torch.arange(n_positions)[:, None] * frequency(d_model)
        return torch.cat([angle.sin(), angle.cos()], dim=1)

    return answer


def _golden(d_model):
    """Multiples of the golden ratio: waves that are never in step."""
    return torch.arange(1, d_model // 2 + 1) * (1 + 5**0.5) / 2


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
    "n_positions, d_model -> a positional encoding of the reader's own, (n_positions, "
    "d_model), graded by its properties",
    cases=lambda: [(64, 16)],
    run=lambda answer, n, width: tuple(answer(size, width) for size in (n, n, n // 2)),
    solution=_waves(_golden),
    right=lambda results: (
        f"All five properties: smallest distance {_distance(results[0]):.2f}, and one "
        "matrix moves every position."
    ),
    any_answer=True,
    mistakes={
        "two equal calls give two different tables.":
            Seen(lambda tables, n, width: not torch.equal(tables[0], tables[1]),
                 lambda n, width: torch.rand(n, width)),
        "position 1 has one vector among 32 positions and another among 64: don't let "
        "it depend on the length.":
            Seen(lambda tables, n, width: not _close(tables[0][: n // 2], tables[2]),
                 lambda n, width: _waves(_golden)(n, width) / n),
        "entries must lie between -1 and 1, but one is {:.3g}.":
            Seen(lambda tables, n, width: (
                     x.item() if (x := tables[0].abs().max()) > 1 + 1e-6 else None),
                 lambda n, width: torch.arange(n)[:, None].expand(n, width)),
        "two positions are only {:.3f} apart; more than 0.1 is needed.":
            Seen(lambda tables, n, width: (
                     gap if (gap := _distance(tables)) <= 0.1 else None),
                 [lambda n, width: torch.ones(n, width),
                  _waves(lambda width: torch.full((width // 2,), math.pi / 8))]),
        "no single matrix carries every position to the next: the best one is off by "
        "{:.3f}.":
            Seen(lambda tables, n, width: (
                     gap if (gap := _shift_error(tables)) > 1e-3 else None),
                 _learned),
        "these are the paper's own waves; find others.":
            Seen(lambda tables, n, width: _close(tables[0], sinusoid_table(n, width)),
                 sinusoid_table),
    },
)  # fmt: skip
