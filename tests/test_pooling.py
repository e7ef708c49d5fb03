"""Pooling, against loops over single sequences; padding never counts."""

from typing import get_args

import pytest
import torch

from transformer_lib.model.classifier import Pool, Pooling

D_MODEL = 7
HIDDEN = torch.randn(
    4, 5, D_MODEL, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
)
REAL = torch.tensor(  # padding on the right, none, all but one, and on all sides
    [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [0, 1, 0, 1, 0]]
).bool()
POOLINGS = pytest.mark.parametrize("pooling", get_args(Pooling))


def weighted(rows, query):
    weights = torch.softmax(rows @ query / D_MODEL**0.5, dim=0)
    return sum(weight * row for weight, row in zip(weights, rows, strict=True))


BY_HAND = {
    "max": lambda rows, _: torch.stack([max(column) for column in rows.T]),
    "mean": lambda rows, _: sum(rows) / len(rows),
    "first": lambda rows, _: rows[0],
    "last": lambda rows, _: rows[-1],
    "attention": weighted,
}


def pool_of(pooling) -> Pool:
    pool = Pool(pooling, D_MODEL).double()
    if pooling == "attention":
        torch.nn.init.normal_(pool.query)
    return pool


@POOLINGS
def test_each_pooling_agrees_with_a_loop_over_what_is_real(pooling) -> None:
    pool = pool_of(pooling)
    query = getattr(pool, "query", [None])[0]
    for found, rows, real in zip(pool(HIDDEN, REAL), HIDDEN, REAL, strict=True):
        torch.testing.assert_close(found, BY_HAND[pooling](rows[real], query))


@POOLINGS
def test_padding_only_is_pooled_to_zeros_with_finite_gradients(pooling) -> None:
    hidden = HIDDEN.clone().requires_grad_()
    pooled = pool_of(pooling)(hidden, REAL & (torch.arange(4) > 0).unsqueeze(1))
    assert (pooled[0] == 0).all()
    pooled.sum().backward()
    assert hidden.grad.isfinite().all()
    assert (hidden.grad[0] == 0).all()


def test_attention_starts_as_the_mean() -> None:
    mean = Pool("mean", D_MODEL)(HIDDEN, REAL)
    found = Pool("attention", D_MODEL).double()(HIDDEN, REAL)
    torch.testing.assert_close(found, mean)
