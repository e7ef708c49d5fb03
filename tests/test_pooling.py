"""Pooling, against loops over single sequences; padding never counts."""

from typing import get_args

import pytest
import torch

from transformer_lib.model.classifier import Pool, Pooling

LENGTHS, D_MODEL = (3, 5, 1), 7


@pytest.fixture
def hidden():
    torch.manual_seed(0)
    return torch.randn(len(LENGTHS), max(LENGTHS), D_MODEL, dtype=torch.float64)


REAL = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)


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


@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_each_pooling_agrees_with_a_loop(pooling, hidden) -> None:
    pool = pool_of(pooling)
    found = pool(hidden, REAL)
    query = getattr(pool, "query", [None])[0]
    for row, length in enumerate(LENGTHS):
        expected = BY_HAND[pooling](hidden[row, :length], query)
        torch.testing.assert_close(found[row], expected)


@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_padding_does_not_count(pooling, hidden) -> None:
    pool = pool_of(pooling)
    before = pool(hidden, REAL)
    hidden[~REAL] = 99.0
    torch.testing.assert_close(pool(hidden, REAL), before)
    hidden[REAL] = 99.0
    assert not torch.allclose(pool(hidden, REAL), before)  # the test can fail


@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_a_gap_in_the_middle_does_not_count(pooling, hidden) -> None:
    real = torch.tensor([[False, True, False, True, False]])
    pool = pool_of(pooling)
    found = pool(hidden[:1], real)
    expected = pool(hidden[:1, [1, 3]], torch.ones(1, 2, dtype=torch.bool))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_padding_only_is_pooled_to_zeros_with_finite_gradients(pooling, hidden) -> None:
    hidden.requires_grad_()
    pooled = pool_of(pooling)(hidden, REAL & (torch.arange(3) > 0).unsqueeze(1))
    assert (pooled[0] == 0).all()
    pooled.sum().backward()
    assert hidden.grad.isfinite().all()
    assert (hidden.grad[0] == 0).all()


def test_attention_starts_as_the_mean(hidden) -> None:
    mean = Pool("mean", D_MODEL)(hidden, REAL)
    found = Pool("attention", D_MODEL).double()(hidden, REAL)
    torch.testing.assert_close(found, mean)


def test_only_attention_has_parameters() -> None:
    counts = {name: len(list(Pool(name, 7).parameters())) for name in get_args(Pooling)}
    assert counts == {"max": 0, "mean": 0, "first": 0, "last": 0, "attention": 1}
