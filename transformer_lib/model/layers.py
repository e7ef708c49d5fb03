"""What stands around attention: norm, residual, feed-forward, and the two layers."""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.model.attention import Cache, MultiHeadAttention

Activation = Literal["relu", "gelu", "swish"]
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "swish": nn.SiLU}


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
        d_model: number of features.
        eps: see `layer_norm`.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) -> (..., d_model)."""
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


class SublayerConnection(nn.Module):
    """The residual connection around a sub-layer, with its layer norm.

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
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(batch, length, d_model) -> (batch, length, d_model)."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class FeedForward(nn.Module):
    """The same small network at every position: max(0, x W_1 + b_1) W_2 + b_2.

    Equation 2 of the paper. Its output is added to its input, so both have d_model
    features; only the hidden width d_ff is free.

    Args:
        d_model: width of input and output.
        d_ff: width of the hidden layer.
        activation: "relu" as in the paper, "gelu", or "swish" (x times sigmoid of x).
        dropout: rate of dropout on the hidden layer while training; 0 in the paper.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: Activation = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) -> (..., d_model), every position by itself."""
        return self.contract(self.dropout(self.activation(self.expand(x))))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with its residual connection.

    The layer is put together from its parts, so that every variant is a choice of
    parts: `EncoderLayer(MultiHeadAttention(512, 8), FeedForward(512, 2048))`.

    Args:
        self_attn: attention of the sequence to itself.
        feed_forward: the position-wise network.
        dropout: rate of dropout on both sub-layers' outputs while training.
        norm_first: pre-norm instead of the paper's post-norm.
        eps: of the layer norms.
        d_model: width of x, if self_attn does not say it.
    """

    def __init__(
        self,
        self_attn: MultiHeadAttention,
        feed_forward: FeedForward,
        dropout: float = 0.1,
        norm_first: bool = False,
        eps: float = 1e-5,
        d_model: int | None = None,
    ) -> None:
        super().__init__()
        self.self_attn = self_attn
        self.feed_forward = feed_forward
        d_model = d_model or self_attn.d_model
        options = (d_model, dropout, norm_first, eps)
        self.self_attn_connection = SublayerConnection(*options)
        self.feed_forward_connection = SublayerConnection(*options)

    def forward(self, x: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Let every position look at every other, then think for itself.

        Args:
            x: (batch, src_len, d_model)
            src_mask: boolean, broadcastable to (batch, n_heads, src_len, src_len).

        Returns:
            (batch, src_len, d_model)
        """
        x = self.self_attn_connection(x, lambda x: self.self_attn(x, x, x, src_mask))
        return self.feed_forward_connection(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention to the memory, then feed-forward.

    Args:
        self_attn: attention of the target to itself.
        cross_attn: attention of the target to the memory; built with
            d_inputs=(d_model, d_memory, d_memory) if the encoder has another width.
        feed_forward: the position-wise network.
        dropout: rate of dropout on the sub-layers' outputs while training.
        norm_first: pre-norm instead of the paper's post-norm.
        eps: of the layer norms.
        d_model: width of x, if self_attn does not say it.
    """

    def __init__(
        self,
        self_attn: MultiHeadAttention,
        cross_attn: MultiHeadAttention,
        feed_forward: FeedForward,
        dropout: float = 0.1,
        norm_first: bool = False,
        eps: float = 1e-5,
        d_model: int | None = None,
    ) -> None:
        super().__init__()
        self.self_attn = self_attn
        self.cross_attn = cross_attn
        self.feed_forward = feed_forward
        d_model = d_model or self_attn.d_model
        options = (d_model, dropout, norm_first, eps)
        self.self_attn_connection = SublayerConnection(*options)
        self.cross_attn_connection = SublayerConnection(*options)
        self.feed_forward_connection = SublayerConnection(*options)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Look back at the target, across at the source, then think for itself.

        Args:
            x: (batch, tgt_len, d_model)
            memory: (batch, src_len, d_memory), the encoder's output. It is not
                normalized here: a pre-norm encoder ends with a norm of its own.
            src_mask: boolean, broadcastable to (batch, n_heads, tgt_len, src_len).
            tgt_mask: boolean, broadcastable to (batch, n_heads, tgt_len, tgt_len).
            cache: stores keys and values of both attentions, those of the memory in
                its `source`; x and memory then hold only what is new.

        Returns:
            (batch, tgt_len, d_model)
        """

        def look_back(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, tgt_mask, cache=cache)

        def look_across(x: Tensor) -> Tensor:
            return self.cross_attn(
                x,
                memory,
                memory,
                src_mask,
                cache=None if cache is None else cache.source,
            )

        x = self.self_attn_connection(x, look_back)
        x = self.cross_attn_connection(x, look_across)
        return self.feed_forward_connection(x, self.feed_forward)
