"""Graders of the chapter on embeddings."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from transformer_lib.exercises.feedback import (
    Feedback,
    call,
    check_integer,
    check_tensor,
    right,
    wrong,
)
from transformer_lib.model.embeddings import sinusoid_table

SRC_VOCAB, TGT_VOCAB, D_MODEL, PAD = 13, 11, 6, 2
IDS = ((5, 3, 7, 4), (PAD, PAD, 8, 6), (9, 4, PAD, PAD))  # padded left and right
N_POSITIONS, WIDTH = 64, 16

_TABLE = sinusoid_table(20, 8)


def check_count(answer: Callable[[int, int, int, str], int]) -> Feedback:
    """Grade a function that counts the parameters of embeddings and output layer.

    Args:
        answer: (src_vocab, tgt_vocab, d_model, tying) -> number of parameters.
    """
    src, tgt = SRC_VOCAB, TGT_VOCAB
    rows = {"none": src + 2 * tgt, "decoder": src + tgt, "all": src}
    for tying, n_rows in rows.items():
        tgt, count = (src if tying == "all" else TGT_VOCAB), n_rows * D_MODEL
        result = call(answer, src, tgt, D_MODEL, tying)
        if problem := check_integer(result):
            return problem
        if result != count:
            return wrong(_explain_count(tying, src, tgt, result, count))
    return right("Three matrices, two or one: tying removes whole matrices.")


def _explain_count(tying: str, src: int, tgt: int, result: int, count: int) -> str:
    width = D_MODEL
    start = f"{src} and {tgt} tokens, width {width}, tying {tying!r}: "
    if result == count + tgt:
        return start + "the output layer has no bias here."
    if result == (src + 2 * tgt) * width:
        return start + "a shared matrix counts once, not for each of its jobs."
    if tying == "none" and result == (src + tgt) * width:
        return start + "you left out the output layer, which has a matrix of its own."
    if tying == "decoder" and result == 2 * src * width:
        return start + "the output layer shares with the target embedding, not source."
    if tying == "decoder" and result in (src * width, tgt * width):
        return start + "the source embedding keeps a matrix of its own."
    return start + f"expected {count}, but got {result}."


def check_embed(answer: Callable[[Tensor, Tensor, int], Tensor]) -> Feedback:
    """Grade a function that embeds a padded batch (equation 1.6).

    Args:
        answer: ids (batch, length), weight (vocab_size, d_model), pad_id ->
            (batch, length, d_model). Vectors at padding are not looked at.
    """
    ids = torch.tensor(IDS)
    weight = _random(SRC_VOCAB, D_MODEL)
    result = call(answer, ids, weight, PAD)
    if isinstance(result, Tensor) and result.shape == (*ids.shape, 2 * D_MODEL):
        return wrong(
            f"the width is {2 * D_MODEL}, twice d_model {D_MODEL}: add the position "
            "vectors, don't concatenate them."
        )
    problem = check_tensor(result, (*ids.shape, D_MODEL))
    if problem is not None:
        return problem

    real = ids != PAD
    token, scaled = weight[ids], math.sqrt(D_MODEL) * weight[ids]
    table = sinusoid_table(ids.numel() + 1, D_MODEL)
    counts = (real.cumsum(1) - 1).clamp(min=0)
    through = (real.flatten().cumsum(0) - 1).clamp(min=0).view_as(ids)
    place, naive = table[counts], table[: ids.size(1)]
    if _close(result[real], (scaled + place)[real]):
        return right("Scaled token plus place, wherever the padding stands.")
    mistakes = [
        (token + place, "the factor sqrt(d_model) on the token vectors is missing."),
        (
            math.sqrt(D_MODEL) * (token + place),
            "the factor belongs to the token vectors only, not to the sum.",
        ),
        (D_MODEL * token + place, "the factor is sqrt(d_model), not d_model."),
        (scaled / D_MODEL + place, "you divide by sqrt(d_model); multiply."),
        (scaled, "the positions are missing."),
        (scaled + naive, "count positions past the padding, not from the left edge."),
        (scaled + table[counts + 1], "positions start at 0, but yours start at 1."),
        (
            scaled + table[counts + PAD + 1],
            "positions start at 0, but yours start at pad_id + 1, as fairseq's do.",
        ),
        (
            scaled + table[through],
            "positions go on from one sentence to the next; each starts at 0.",
        ),
        (
            token + naive,
            "two mistakes: no factor on the tokens, and positions counted from the "
            "left edge.",
        ),
    ]
    for vectors, message in mistakes:
        if _close(result[real], vectors[real]):
            return wrong(message)
    return wrong("the vectors differ from sqrt(d_model) * token + sinusoid.")


def check_shift(answer: Callable[[Tensor, int], Tensor]) -> Feedback:
    """Grade a function that moves sinusoidal vectors by k positions (equation 1.4).

    Args:
        answer: places (n_positions, d_model), k -> (n_positions, d_model).
    """
    length = 5
    for k in (3, -4, 0):
        places, expected = _TABLE[7 : 7 + length], _TABLE[7 + k : 7 + k + length]
        result = call(answer, places.clone(), k)
        problem = check_tensor(result, tuple(places.shape))
        if problem is not None:
            return problem
        if not _close(result, expected):
            return wrong(_explain_shift(places, expected, k, result))
    return right("One rotation for each frequency moves every position alike.")


def _explain_shift(places: Tensor, expected: Tensor, k: int, result: Tensor) -> str:
    length, width = places.shape
    half = torch.arange(width // 2)
    mistakes = [
        (
            _TABLE[7 - k : 7 - k + length],
            f"for k = {k} you moved by {-k}: check the signs.",
        ),
        (
            places.roll(-k, dims=0),
            "the rows were moved in the tensor; compute the vectors further on, which "
            "need not be among the given ones.",
        ),
        (
            expected.unflatten(1, (-1, 2)).flip(-1).flatten(1),
            "sine and cosine changed places.",
        ),
        (
            torch.cat([expected[:, 0::2], expected[:, 1::2]], dim=1),
            "all sines come first in yours; here they alternate with the cosines.",
        ),
        (places, "the vectors come back unmoved."),
        (
            _TABLE[max(k, 0) : max(k, 0) + length],
            "you count the rows from 0, but the positions of the rows are unknown.",
        ),
        (
            _rotate(places, torch.full((width // 2,), float(k))),
            "every pair of columns turns at the same speed; pair i has the frequency "
            "10000^(-2i / d_model).",
        ),
        (
            _rotate(places, k / 10_000 ** (half / width)),
            "the exponent is 2i / d_model, but yours is i / d_model.",
        ),
    ]
    for vectors, message in mistakes:
        if _close(result, vectors):
            return message
    return f"for k = {k} the result differs from the vectors {k} further on."


def check_positions(answer: Callable[[int, int], Tensor]) -> Feedback:
    """Grade a positional encoding of the reader's own by its properties.

    Args:
        answer: n_positions, d_model -> (n_positions, d_model).
    """
    tables = []
    for length in (N_POSITIONS, N_POSITIONS, N_POSITIONS // 2):
        table = call(answer, length, WIDTH)
        problem = check_tensor(table, (length, WIDTH))
        if problem is not None:
            return problem
        tables.append(table.double())
    table, again, half = tables
    if not torch.equal(table, again):
        return wrong("two equal calls give two different tables.")
    if not _close(table[: N_POSITIONS // 2], half):
        return wrong(
            f"position 1 has one vector among {N_POSITIONS // 2} positions and another "
            f"among {N_POSITIONS}: don't let it depend on the length."
        )
    largest = table.abs().max().item()
    if largest > 1 + 1e-6:
        return wrong(f"entries must lie between -1 and 1, but one is {largest:.3g}.")
    smallest = torch.pdist(table).min().item()
    if smallest <= 0.1:
        return wrong(
            f"two positions are only {smallest:.3f} apart; more than 0.1 is needed."
        )
    gap = _shift_error(table)
    if gap > 1e-3:
        return wrong(
            "no single matrix carries every position to the next: the best one is off "
            f"by {gap:.3f}."
        )
    if _close(table, sinusoid_table(N_POSITIONS, WIDTH).double()):
        return wrong("these are the paper's own waves; find others.")
    return right(
        f"All five properties: smallest distance {smallest:.2f}, and one matrix moves "
        "every position."
    )


def _shift_error(table: Tensor) -> float:
    """Return by how much the best matrix misses some next position."""
    here, following = table[:-1], table[1:]
    matrix = torch.linalg.lstsq(here, following, driver="gelsd").solution
    return (here @ matrix - following).abs().max().item()


def _rotate(places: Tensor, angle: Tensor) -> Tensor:
    sin, cos = places[:, 0::2], places[:, 1::2]
    turned = [
        sin * angle.cos() + cos * angle.sin(),
        cos * angle.cos() - sin * angle.sin(),
    ]
    return torch.stack(turned, dim=-1).flatten(1)


def _random(*shape: int) -> Tensor:
    """Return numbers that are the same at every call, without touching the seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def _close(x: Tensor, y: Tensor) -> bool:
    return x.shape == y.shape and torch.allclose(x.double(), y.double(), atol=1e-4)
