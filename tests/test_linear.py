"""Packed weights give what PyTorch's linear layer gives, where they are meant to."""

import pytest
import torch
import torch.nn.functional as F
from small_models import make_model
from torch import Tensor, nn

from transformer_lib.fast import linear as module
from transformer_lib.fast.linear import FewRows, Linear
from transformer_lib.fast.packing import packed_weights
from transformer_lib.model.attention import MultiHeadAttention

CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture
def any_size(monkeypatch) -> None:
    """Let no matrix be too small."""
    monkeypatch.setattr(module, "_LARGE", 1)


@pytest.mark.parametrize(
    "shape", [(5,), (1, 5), (1, 1, 5), (2, 2, 5), (2, 3, 5), (40, 5)]
)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("d_out", [3, 4, 8])
@pytest.mark.parametrize("huge", [1, 2**19])
def test_results_are_those_of_pytorch(
    any_size, monkeypatch, shape, bias, d_out, huge
) -> None:
    monkeypatch.setattr(module, "_HUGE", huge)
    torch.manual_seed(0)
    layer, x = Linear(5, d_out, bias=bias), torch.randn(shape)
    if bias:
        torch.nn.init.normal_(layer.bias)
    expected = F.linear(x, layer.weight, layer.bias)
    with torch.inference_mode():
        layer.pack()
        found = layer(x)
    torch.testing.assert_close(found, expected, **CLOSE)
    assert found.is_contiguous()
    layer.unpack()
    assert layer.packed is None


def ways(weight: Tensor, *numbers_of_rows: int) -> list[str]:
    """How a matrix is multiplied by so many rows."""
    found = []
    for n_rows in numbers_of_rows:
        packed = FewRows(weight, None)
        with torch.inference_mode():
            packed(torch.zeros(n_rows, weight.size(1), dtype=weight.dtype))
        if vars(packed).get("reordered") is not None:
            found.append("reordered")
        else:
            found.append("shares" if n_rows <= packed.most_shared else "F.linear")
    return found


def test_the_way_depends_on_size_rows_and_numbers(monkeypatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    small, large = torch.randn(254, 256), torch.randn(256, 256)
    odd, wide = torch.randn(257, 256), torch.randn(128, 1024)
    huge = torch.randn(2048, 512)
    assert ways(small, 1, 5) == ["F.linear", "F.linear"]
    assert ways(large, 1, 4, 5) == ["shares", "shares", "reordered"]
    assert ways(odd, 1, 5) == ["reordered", "reordered"]
    assert ways(huge, 1, 2) == ["shares", "reordered"]
    assert ways(wide, 1, 2) == ["shares", "reordered"]
    assert ways(large.bfloat16(), 1, 5) == ["reordered", "reordered"]
    assert ways(large.double(), 1, 5) == ["F.linear", "F.linear"]


@pytest.mark.parametrize("n_rows", [1, 3, 9])
def test_outside_inference_mode_a_packed_layer_is_pytorchs_bit_for_bit(n_rows) -> None:
    torch.manual_seed(0)
    layer, x = Linear(256, 1024), torch.randn(n_rows, 256)
    with torch.inference_mode():
        layer.pack()
        layer(x)
    product = layer(x)
    assert torch.equal(product, F.linear(x, layer.weight, layer.bias))
    product.sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("n_rows", [3, 30])
def test_the_joint_projection_is_the_three_of_them(any_size, bias, n_rows) -> None:
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2, bias=bias), torch.randn(n_rows, 1, 8)
    layers = (attention.q_proj, attention.k_proj, attention.v_proj)
    expected = torch.cat([layer(x) for layer in layers], dim=-1)
    torch.testing.assert_close(attention.joint_projection()(x), expected)
    with torch.inference_mode():
        attention.pack()
        assert attention.joint_projection() is attention.packed
        joint = attention.joint_projection()(x)
        torch.testing.assert_close(joint, expected, **CLOSE)
    attention.unpack()
    assert attention.packed is None


def packed_parts(model: nn.Module) -> set[str]:
    return {
        name
        for name, part in model.named_modules()
        if getattr(part, "packed", None) is not None
    }


def test_all_that_a_step_multiplies_by_is_packed_and_no_more() -> None:
    model = make_model(8)
    with torch.inference_mode(), packed_weights(model):
        inside = packed_parts(model)
        with packed_weights(model):
            assert packed_parts(model) == inside
        assert packed_parts(model) == inside  # who came first goes last
    assert packed_parts(model) == set()
    each = {
        "self_attn",
        "self_attn.out_proj",
        "cross_attn.q_proj",
        "cross_attn.out_proj",
        "feed_forward.expand",
        "feed_forward.contract",
    }
    n_layers = len(model.decoder.layers)
    assert inside == {"lm_head"} | {
        f"decoder.layers.{i}.{name}" for i in range(n_layers) for name in each
    }


def test_weights_are_unpacked_when_a_search_breaks_down() -> None:
    model = make_model(8)
    with pytest.raises(KeyError), torch.inference_mode(), packed_weights(model):
        raise KeyError
    assert packed_parts(model) == set()


def test_parameters_are_pytorchs() -> None:
    nn.Linear(5, 11).load_state_dict(Linear(5, 11).state_dict())
