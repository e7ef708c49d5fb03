"""Residual connections, and the layer norm that belongs to each."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.fast.dropout import Dropout


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


"""The feed-forward network, and the two kinds of layer built from parts."""

from typing import Literal

from torch import Tensor, nn

from transformer_lib.fast.linear import Linear
from transformer_lib.generation.incremental import LayerCache
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import SublayerConnection
from transformer_lib.model.masks import check_mask

Activation = Literal["relu", "gelu", "swish"]
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "swish": nn.SiLU}


class FeedForward(nn.Module):
    """The same small network at every position: max(0, x W_1 + b_1) W_2 + b_2.

    Equation 2 of the paper. Its output is added to its input, so both have d_model
    features; only the hidden width d_ff is free.

    Args:
        d_model: width of input and output.
        d_ff: width of the hidden layer.
        activation: "relu" as in the paper, "gelu", or "swish" (x times sigmoid of x).
        dropout: rate of dropout on the hidden layer while training; 0 in the paper.

    Raises:
        ValueError: a size is below 1, or the activation is unknown.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: Activation = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if d_model < 1 or d_ff < 1:
            raise ValueError(
                f"d_model and d_ff must be at least 1, not {d_model} and {d_ff}"
            )
        if activation not in ACTIVATIONS:
            raise ValueError(
                f"activation must be one of {tuple(ACTIVATIONS)}, not {activation!r}"
            )
        self.expand = Linear(d_model, d_ff)
        self.contract = Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]()
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) -> (..., d_model), every position by itself."""
        return self.contract(self.dropout(self.activation(self.expand(x))))

    def as_convolution(self) -> nn.Sequential:
        """Return the same network as two convolutions of kernel size 1.

        Its weights are copies of this module's. It expects positions last, as
        convolutions do: (batch, d_model, length) -> (batch, d_model, length).
        """
        convolutions = []
        for linear in (self.expand, self.contract):
            conv = nn.Conv1d(linear.in_features, linear.out_features, kernel_size=1)
            conv = conv.to(linear.weight)
            with torch.no_grad():
                conv.weight.copy_(linear.weight.unsqueeze(-1))  # (out, in, 1)
                conv.bias.copy_(linear.bias)
            convolutions.append(conv)
        first, second = convolutions
        return nn.Sequential(first, self.activation, self.dropout, second)


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
    """

    def __init__(
        self,
        self_attn: MultiHeadAttention,
        feed_forward: FeedForward,
        dropout: float = 0.1,
        norm_first: bool = False,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.self_attn = self_attn
        self.feed_forward = feed_forward
        options = (self_attn.d_model, dropout, norm_first, eps)
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

    Raises:
        ValueError: the two attentions differ in d_model.
    """

    def __init__(
        self,
        self_attn: MultiHeadAttention,
        cross_attn: MultiHeadAttention,
        feed_forward: FeedForward,
        dropout: float = 0.1,
        norm_first: bool = False,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        if cross_attn.d_model != self_attn.d_model:
            raise ValueError(
                f"self_attn has d_model {self_attn.d_model}, but cross_attn has "
                f"{cross_attn.d_model}; both are added to the same x"
            )
        self.self_attn = self_attn
        self.cross_attn = cross_attn
        self.feed_forward = feed_forward
        options = (self_attn.d_model, dropout, norm_first, eps)
        self.self_attn_connection = SublayerConnection(*options)
        self.cross_attn_connection = SublayerConnection(*options)
        self.feed_forward_connection = SublayerConnection(*options)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """Look back at the target, across at the source, then think for itself.

        Args:
            x: (batch, tgt_len, d_model)
            memory: (batch, src_len, d_memory), the encoder's output. It is not
                normalized here: a pre-norm encoder ends with a norm of its own.
            src_mask: boolean, broadcastable to (batch, n_heads, tgt_len, src_len).
            tgt_mask: boolean, broadcastable to (batch, n_heads, tgt_len, tgt_len).
            cache: what this layer has kept of the memory and of the tokens before x,
                instead of memory and masks.

        Returns:
            (batch, tgt_len, d_model)

        Raises:
            ValueError: the memory's width or batch size does not fit, a mask belongs
                to another attention block, the cache to another layer, or there is
                neither a memory nor a cache, or both.
            TypeError: a mask is not boolean.
        """
        if cache is not None:
            if not (memory is src_mask is tgt_mask is None):
                raise ValueError("a cache stands for memory and masks: give it alone")
            self._check_cache(cache)
            look_back, look_across = cache.self_attn.attend, cache.cross_attn.attend
        else:
            self._check_memory(x, memory)
            self._check_masks(x, memory, src_mask, tgt_mask)

            def look_back(x: Tensor) -> Tensor:
                return self.self_attn(x, x, x, tgt_mask)

            def look_across(x: Tensor) -> Tensor:
                return self.cross_attn(x, memory, memory, src_mask)

        x = self.self_attn_connection(x, look_back)
        x = self.cross_attn_connection(x, look_across)
        return self.feed_forward_connection(x, self.feed_forward)

    def _check_cache(self, cache: LayerCache) -> None:
        made_for = (cache.self_attn.attention, cache.cross_attn.attention)
        if made_for != (self.self_attn, self.cross_attn):
            raise ValueError("the cache was made for another layer than this one")

    def _check_memory(self, x: Tensor, memory: Tensor | None) -> None:
        if memory is None:
            raise ValueError("a decoder layer needs the memory, or a cache of it")
        if not x.dim() == memory.dim() == 3:
            return  # the attention names the shape
        d_memory = self.cross_attn.k_proj.in_features
        if memory.size(-1) != d_memory:
            raise ValueError(
                f"memory has width {memory.size(-1)}, but cross_attn was built for "
                f"{d_memory} (its d_inputs)"
            )
        if memory.size(0) != x.size(0):
            raise ValueError(
                f"memory has batch size {memory.size(0)}, but the target has "
                f"{x.size(0)}"
            )

    def _check_masks(
        self,
        x: Tensor,
        memory: Tensor,
        src_mask: Tensor | None,
        tgt_mask: Tensor | None,
    ) -> None:
        if not x.dim() == memory.dim() == 3:
            return
        (batch, tgt_len, _), src_len = x.shape, memory.size(1)
        if tgt_mask is not None:
            scores_shape = (batch, self.self_attn.n_heads, tgt_len, tgt_len)
            check_mask(tgt_mask, scores_shape, "self-attention's tgt_mask")
        if src_mask is not None:
            scores_shape = (batch, self.cross_attn.n_heads, tgt_len, src_len)
            check_mask(src_mask, scores_shape, "cross-attention's src_mask")
