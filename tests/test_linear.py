"""Training made fast: the same products and gradients, and strangers left alone."""

from functools import partial

import pytest
import torch
from reference import gradients
from torch import Tensor, nn

from transformer_fast import training
from transformer_fast.dropout import FastDropout
from transformer_fast.training import FastLinear, for_training
from transformer_lib import MultiHeadAttention
from transformer_lib.model import GroupedQueryAttention, fused_attention
from transformer_lib.model.attention import eager_attention


@pytest.fixture
def any_size(monkeypatch) -> None:
    """Let no product be too small."""
    monkeypatch.setattr(training, "_LITTLE", 1)


def results(linear: nn.Linear, x: Tensor) -> list[Tensor]:
    """Return the output, and the gradients of its weighted sum."""
    y = linear(x)
    return [y, *gradients(y, [x, *linear.parameters()])]


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 7, 5)])
@pytest.mark.parametrize("bias", [True, False])
def test_products_and_gradients_are_pytorchs(any_size, shape, bias) -> None:
    torch.manual_seed(0)
    linear, x = nn.Linear(5, 11, bias=bias), torch.randn(shape, requires_grad=True)
    expected = results(linear, x)
    found = results(for_training(nn.Sequential(linear))[0], x)
    assert type(linear) is FastLinear
    assert "_Product" in type(found[0].grad_fn).__name__
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_only_what_is_wanted_gets_a_gradient(any_size) -> None:
    linear, x = for_training(nn.Sequential(nn.Linear(5, 11)))[0], torch.randn(3, 5)
    linear.weight.requires_grad_(False)
    linear(x).sum().backward()
    assert linear.weight.grad is None
    assert x.grad is None
    torch.testing.assert_close(linear.bias.grad, torch.full((11,), 3.0))


def test_what_mkldnn_does_not_serve_is_pytorchs_bit_for_bit(any_size) -> None:
    torch.manual_seed(0)
    plain, x = nn.Linear(5, 11), torch.randn(3, 5)
    fast = for_training(nn.Sequential(nn.Linear(5, 11)))[0]
    fast.load_state_dict(plain.state_dict())
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(fast(x), plain(x))
        assert fast(x).dtype == torch.bfloat16
    with torch.no_grad():
        assert fast(x).grad_fn is None
    rows = torch.func.vmap(torch.func.jacrev(fast))(x)
    torch.testing.assert_close(rows, plain.weight.detach().expand(3, -1, -1))
    assert torch.equal(fast.double()(x.double()), plain.double()(x.double()))


class OwnLinear(nn.Linear):
    """Somebody's own."""


def test_layers_of_others_stay_as_they_are() -> None:
    parts = [nn.Linear(2, 2), OwnLinear(2, 2), nn.Dropout(0.5), nn.Dropout(0.5)]
    parts[0].register_forward_hook(lambda *_: None)
    parts[2].register_full_backward_hook(lambda *_: None)
    model = for_training(nn.Sequential(*parts))
    kinds = [type(part) for part in model]
    assert kinds == [nn.Linear, OwnLinear, nn.Dropout, FastDropout]
    model.eval()
    assert for_training(model) is model
    assert not model[3].training


@pytest.mark.parametrize(
    "kind", [MultiHeadAttention, partial(GroupedQueryAttention, n_kv_heads=1)]
)
def test_attention_is_eager_in_bfloat16_only(kind) -> None:
    own = kind(4, 2)
    own.kernel = lambda *arguments: eager_attention(*arguments)
    model = nn.Sequential(kind(4, 2), own)
    kernels = [model[0].kernel, own.kernel]
    for_training(model)
    assert [model[0].kernel, own.kernel] == kernels == [fused_attention, own.kernel]
    for_training(model, torch.bfloat16)
    assert [model[0].kernel, own.kernel] == [eager_attention, kernels[1]]
