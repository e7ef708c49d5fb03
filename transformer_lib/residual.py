"""Residual connections, and the layer norm that belongs to each."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.dropout import Dropout


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Give every position mean 0 and variance 1 over its features, then gain and bias.

    (x - mean) / sqrt(variance + eps) * gain + bias, with the biased variance (divided
    by d_model) and eps inside the root (Ba et al. 2016).

    Args:
        x: (..., d_model)
        gain: (d_model,)
        bias: (d_model,)
        eps: keeps the root away from 0 where all features are equal.

    Returns:
        (..., d_model)
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


class LayerNorm(nn.Module):
    """`layer_norm` with a learned gain and bias, computed by PyTorch's fused kernel.

    Args:
        d_model: number of features, at least 1.
        eps: see `layer_norm`.

    Raises:
        ValueError: d_model is below 1.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        if d_model < 1:
            raise ValueError(f"d_model must be at least 1, not {d_model}")
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) -> (..., d_model). ValueError if the width is another."""
        gain = self.gain
        if x.size(-1) != gain.size(0):
            raise ValueError(
                f"x has width {x.size(-1)}, but this layer norm was built for "
                f"{gain.size(0)}"
            )
        return F.layer_norm(x, gain.shape, gain, self.bias, self.eps)


class SublayerConnection(nn.Module):
    """The residual connection around a sub-layer, and the place of its layer norm.

    Post-norm, as in the paper:  norm(x + dropout(sublayer(x)))
    Pre-norm (norm_first):       x + dropout(sublayer(norm(x)))

    Args:
        d_model: width of x.
        dropout: rate of dropout on the sub-layer's output while training.
        norm_first: pre-norm instead of post-norm.
        eps: of the layer norm.
    """

    def __init__(
        self,
        d_model: int,
        dropout: float = 0.1,
        norm_first: bool = False,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.norm = LayerNorm(d_model, eps)
        self.dropout = Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(batch, length, d_model) -> (batch, length, d_model)."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))
