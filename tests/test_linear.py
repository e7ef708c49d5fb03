"""Packed weights give what PyTorch's linear layer gives, where they are meant to."""

import pytest
import torch
import torch.nn.functional as F
from small_models import make_model
from torch import nn

from transformer_lib import linear as module
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.linear import Linear, linear, pack
from transformer_lib.packing import packed_weights

CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture
def any_size(monkeypatch) -> None:
    """Let small matrices be packed too."""
    monkeypatch.setattr(module, "_WORTH_PACKING", 1)


@pytest.mark.parametrize("shape", [(1, 5), (1, 1, 5), (2, 3, 5), (40, 5)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("d_out", [3, 5, 11])
def test_results_are_those_of_pytorch(any_size, shape, bias, d_out) -> None:
    torch.manual_seed(0)
    layer, x = Linear(5, d_out, bias=bias), torch.randn(shape)
    expected = F.linear(x, layer.weight, layer.bias)
    with torch.inference_mode():
        layer.pack()
        assert layer.packed.is_mkldnn
        torch.testing.assert_close(layer(x), expected, **CLOSE)
    layer.unpack()
    assert layer.packed is None


def test_large_matrices_of_32_and_16_bits_are_packed_in_inference_mode() -> None:
    large, small = torch.randn(256, 256), torch.randn(255, 256)
    assert not pack(large).is_mkldnn
    with torch.inference_mode():
        assert pack(large).is_mkldnn
        assert pack(large.bfloat16()).is_mkldnn
        assert not pack(large.double()).is_mkldnn
        assert not pack(small).is_mkldnn


def test_outside_inference_mode_a_packed_layer_is_pytorchs_bit_for_bit() -> None:
    torch.manual_seed(0)
    layer, x = Linear(256, 1024), torch.randn(3, 256)
    with torch.inference_mode():
        layer.pack()
    product = layer(x)
    assert torch.equal(product, F.linear(x, layer.weight, layer.bias))
    product.sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.parametrize("bias", [True, False])
def test_the_joint_projection_is_the_three_of_them(any_size, bias) -> None:
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2, bias=bias), torch.randn(3, 1, 8)
    layers = (attention.q_proj, attention.k_proj, attention.v_proj)
    expected = torch.cat([layer(x) for layer in layers], dim=-1)
    torch.testing.assert_close(linear(x, *attention.joint_projection()), expected)
    with torch.inference_mode():
        attention.pack()
        assert attention.joint_projection() is attention.packed
        joint = linear(x, *attention.joint_projection())
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
