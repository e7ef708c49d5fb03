"""Dropout: how much it drops, what it keeps, and that nothing is drawn alike."""

import pytest
import torch
from small_models import SRC, make_model
from torch import nn

from transformer_lib.fast import fast_training
from transformer_lib.fast.dropout import FastDropout, fast_dropout

N = 1_000_000


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
def test_it_drops_its_share_and_keeps_the_mean(rate) -> None:
    torch.manual_seed(0)
    y = fast_dropout(torch.ones(N), rate)
    kept = y[y != 0]
    spread = (rate * (1 - rate) / N) ** 0.5  # of a share among N draws
    assert abs(1 - len(kept) / N - rate) < 4 * spread + 2**-16
    assert kept.unique().tolist() == pytest.approx([1 / (1 - rate)], rel=1e-3)
    assert y.mean().item() == pytest.approx(1, abs=4 * spread / (1 - rate))


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 8])
def test_neighbors_are_drawn_apart(distance) -> None:
    torch.manual_seed(0)
    kept = (fast_dropout(torch.ones(N), 0.3) != 0).double() - 0.7
    together = (kept[:-distance] * kept[distance:]).mean().item()
    assert abs(together) < 4 * 0.3 * 0.7 / N**0.5


def test_the_gradient_passes_where_the_feature_did() -> None:
    torch.manual_seed(0)
    x = torch.randn(100, requires_grad=True)
    y = fast_dropout(x, 0.4)
    y.sum().backward()  # a single number, expanded to all features
    torch.testing.assert_close(x.grad * x.detach(), y.detach())
    assert 20 < (x.grad == 0).sum() < 60


def test_a_seed_repeats_it_and_the_next_draw_differs() -> None:
    torch.manual_seed(0)
    first, second = (fast_dropout(torch.ones(1000), 0.5) for _ in range(2))
    torch.manual_seed(0)
    assert torch.equal(fast_dropout(torch.ones(1000), 0.5), first)
    assert not torch.equal(second, first)


def test_a_model_made_for_training_computes_what_it_did() -> None:
    model = make_model(dropout=0.3, activation_dropout=0.2)
    tgt = torch.tensor([[1, 3, 4]] * len(SRC))
    expected = model(SRC, tgt)
    with fast_training(model):
        assert torch.equal(model(SRC, tgt), expected)
        kinds = {type(part) for part in model.modules() if isinstance(part, nn.Dropout)}
        assert kinds == {FastDropout}
        torch.manual_seed(0)
        first, second = (model.train()(SRC, tgt) for _ in range(2))
        assert not torch.equal(first, second)


@pytest.mark.parametrize("rate", [0.0, 0.5, 1 - 1e-9, 1.0])
def test_every_rate_is_served(rate) -> None:
    x = torch.ones(2, 5, 7, dtype=torch.bfloat16)
    y = FastDropout(rate)(x)
    assert y.shape == x.shape and y.dtype == x.dtype and y.isfinite().all()
    assert (y is x) == (rate == 0.0)
    assert FastDropout(rate).eval()(x) is x
