"""Dropout: how much it drops, what it keeps, and that nothing is drawn alike."""

import pytest
import torch
from small_models import SRC, make_model
from torch import nn

from transformer_fast import for_training
from transformer_fast.dropout import FastDropout, fast_dropout
from transformer_lib.model.attention import eager_attention, fused_attention

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


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 5, 7), (0, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_shape_and_precision_is_kept(shape, dtype) -> None:
    y = fast_dropout(torch.ones(shape, dtype=dtype), 0.5)
    assert y.shape == shape and y.dtype == dtype


def test_the_gradient_passes_where_the_feature_did() -> None:
    torch.manual_seed(0)
    x = torch.randn(100, requires_grad=True)
    y = fast_dropout(x, 0.4)
    y.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), y.detach())
    assert 20 < (x.grad == 0).sum() < 60


def test_a_seed_repeats_it_and_the_next_draw_differs() -> None:
    x = torch.ones(1000)
    torch.manual_seed(0)
    first, second = fast_dropout(x, 0.5), fast_dropout(x, 0.5)
    torch.manual_seed(0)
    assert torch.equal(fast_dropout(x, 0.5), first)
    assert not torch.equal(first, second)


def test_evaluation_and_rate_0_give_the_input_itself() -> None:
    x = torch.ones(10)
    assert FastDropout(0.5).eval()(x) is x
    assert FastDropout(0.0).train()(x) is x
    assert not torch.equal(FastDropout(0.5).train()(torch.ones(100)), torch.ones(100))


def test_a_rate_next_to_1_stays_finite() -> None:
    assert fast_dropout(torch.ones(N), 1 - 1e-9).isfinite().all()


def test_a_rate_of_1_drops_all() -> None:
    assert (fast_dropout(torch.ones(100), 1.0) == 0).all()


@pytest.mark.parametrize("rate", [-0.1, 1.5])
def test_a_rate_out_of_range_is_refused(rate) -> None:
    with pytest.raises(ValueError, match=f"between 0 and 1, but got {rate}"):
        FastDropout(rate)


def test_another_default_device_changes_nothing() -> None:
    torch.manual_seed(0)
    x = torch.ones(100)
    expected = fast_dropout(x, 0.5)
    torch.manual_seed(0)
    torch.set_default_device("meta")
    try:
        found = fast_dropout(x, 0.5)
    finally:
        torch.set_default_device(None)
    assert torch.equal(found, expected)


def test_a_model_made_for_training_computes_what_it_did() -> None:
    model = make_model(dropout=0.3, activation_dropout=0.2)
    tgt = torch.tensor([[1, 3, 4]] * len(SRC))
    expected = model(SRC, tgt)
    state = list(model.state_dict())
    assert for_training(for_training(model)) is model
    assert torch.equal(model(SRC, tgt), expected)
    assert list(model.state_dict()) == state
    kinds = {type(part) for part in model.modules() if isinstance(part, nn.Dropout)}
    assert kinds == {FastDropout}
    torch.manual_seed(0)
    first, second = (model.train()(SRC, tgt) for _ in range(2))
    assert not torch.equal(first, second)


def test_what_is_attached_to_a_dropout_stays() -> None:
    model, seen = make_model(dropout=0.3), []
    watched = model.decoder.layers[0].feed_forward_connection.dropout
    watched.register_forward_hook(lambda *_: seen.append(1))
    for_training(model)(SRC, torch.tensor([[1, 3]] * len(SRC)))
    assert seen == [1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_is_eager_in_bfloat16_alone(dtype) -> None:
    model = for_training(make_model(), dtype)
    own = model.encoder.layers[0].self_attn.kernel
    assert own is (eager_attention if dtype == torch.bfloat16 else fused_attention)
