"""PyTorch's own layers with our weights: the independent answer of the tests."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    LayerNorm,
)

EXACT = {"rtol": 0.0, "atol": 1e-10}  # for float64


def draw_parameters(module: nn.Module) -> nn.Module:
    """Move every parameter, biases and gains too, away from its start; in float64."""
    module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module


@torch.no_grad()
def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Copy our projections into PyTorch's attention."""
    projections = (ours.q_proj, ours.k_proj, ours.v_proj)
    weights = [projection.weight for projection in projections]
    if theirs.in_proj_weight is None:  # widths differ
        targets = (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
        for target, weight in zip(targets, weights, strict=True):
            target.copy_(weight)
    else:
        theirs.in_proj_weight.copy_(torch.cat(weights))
    biases = [p.bias if p.bias is not None else p.weight.new_zeros(ours.d_model)
              for p in projections]  # fmt: skip
    theirs.in_proj_bias.copy_(torch.cat(biases))
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())


@torch.no_grad()
def copy_norm(ours: LayerNorm, theirs: nn.LayerNorm) -> None:
    """Copy gain and bias."""
    theirs.weight.copy_(ours.gain)
    theirs.bias.copy_(ours.bias)


def copy_feed_forward(
    ours: FeedForward,
    theirs: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer,
) -> None:
    """Copy both linear maps into a layer of PyTorch's."""
    theirs.linear1.load_state_dict(ours.expand.state_dict())
    theirs.linear2.load_state_dict(ours.contract.state_dict())


def copy_encoder_layer(ours: EncoderLayer, theirs: nn.TransformerEncoderLayer) -> None:
    """Copy a whole encoder layer."""
    copy_attention(ours.self_attn, theirs.self_attn)
    copy_feed_forward(ours.feed_forward, theirs)
    copy_norm(ours.self_attn_connection.norm, theirs.norm1)
    copy_norm(ours.feed_forward_connection.norm, theirs.norm2)


def copy_decoder_layer(ours: DecoderLayer, theirs: nn.TransformerDecoderLayer) -> None:
    """Copy a whole decoder layer."""
    copy_attention(ours.self_attn, theirs.self_attn)
    copy_attention(ours.cross_attn, theirs.multihead_attn)
    copy_feed_forward(ours.feed_forward, theirs)
    copy_norm(ours.self_attn_connection.norm, theirs.norm1)
    copy_norm(ours.cross_attn_connection.norm, theirs.norm2)
    copy_norm(ours.feed_forward_connection.norm, theirs.norm3)


def gradients(output: Tensor, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Differentiate a sum in which every output number has another weight."""
    weights = torch.arange(output.numel(), dtype=output.dtype).view_as(output).cos()
    return torch.autograd.grad((output * weights).sum(), inputs, retain_graph=True)
