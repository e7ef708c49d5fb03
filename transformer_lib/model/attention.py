"""Attention: scaled dot products, and several of them side by side (section 3.2)."""

import math
from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Attends with all heads: (q, k, v, mask, dropout rate) -> output, each of q, k, v and
# output of shape (batch, n_heads, length, d_head).
Kernel = Callable[[Tensor, Tensor, Tensor, Tensor | None, float], Tensor]


class Cache(Protocol):
    """What a decoder needs of a cache; see `generation.incremental`.

    Attributes:
        length: tokens that it holds, which is the position of the next one.
        source: the same for the memory, whose keys and values never change.
    """

    length: int
    source: "Cache"

    def positions(self, ids: Tensor) -> Tensor:
        """Return the positions of new tokens (batch, n_new): (n_new,)."""

    def update(
        self, attention: nn.Module, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Store new keys and values; return them after all that came before."""


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Average the values, weighting each by how well its key matches the query.

    Computes softmax(Q K^T / sqrt(d_head)) V, equation 1 of the paper.

    Args:
        query: (..., q_len, d_head)
        key: (..., k_len, d_head)
        value: (..., k_len, d_value)
        mask: boolean, broadcastable to (..., q_len, k_len); True where the query
            may attend to the key. None allows every pair.
        dropout: rate at which weights are dropped before they are used.

    Returns:
        output: (..., q_len, d_value), in the units of value. A query that may attend
            to no key at all gets zeros.
        weights: (..., q_len, k_len), probabilities before dropout: each row sums to
            1, or to 0 where no key is left.
    """
    # A dot product of d_head unit-variance terms has variance d_head; the square
    # root brings it back to 1, where softmax still has a useful gradient.
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))  # (..., q_len, k_len)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        # Softmax over no key at all is 0 / 0: such a row becomes zero. Its gradient
        # does too, since masked_fill passes none back to what it has filled.
        weights = weights.masked_fill(~mask, 0.0)
    if dropout:
        return F.dropout(weights, dropout) @ value, weights
    return weights @ value, weights


def eager_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
) -> Tensor:
    """Attend step by step, as `scaled_dot_product_attention` does."""
    return scaled_dot_product_attention(q, k, v, mask, dropout)[0]


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
) -> Tensor:
    """Attend with PyTorch's fused kernel: the same result, its weights never stored."""
    return F.scaled_dot_product_attention(q, k, v, mask, dropout)


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each on its own slice of width d_head.

    Section 3.2.2 of the paper: Concat(head_1, ..., head_h) W^O, where head i attends
    with Q W_i^Q, K W_i^K, V W_i^V. The matrices of all heads stand side by side in one
    projection for each role.

    Self-attention or cross-attention is decided by what is passed to `forward`.

    Args:
        d_model: width of the output, and of the inputs unless d_inputs says otherwise.
        n_heads: number of heads; must divide d_model.
        d_inputs: widths of query, key and value, where they differ from d_model (an
            encoder of another width, say).
        bias: whether the three input projections add a bias. The output projection
            always does.
        dropout: rate of dropout on the attention weights while training.

    Attributes:
        kernel: how the heads attend: `fused_attention`, `eager_attention`, or a
            function of your own that records or changes the weights.

    Raises:
        ValueError: n_heads does not divide d_model.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_inputs: tuple[int, int, int] | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"n_heads {n_heads} does not divide d_model {d_model}")
        self.d_model, self.n_heads = d_model, n_heads
        self.d_head = d_model // n_heads
        self.d_inputs = d_inputs or (d_model, d_model, d_model)
        self.dropout = dropout
        d_query, d_key, d_value = self.d_inputs
        self.q_proj = nn.Linear(d_query, d_model, bias=bias)
        self.k_proj = nn.Linear(d_key, d_model, bias=bias)
        self.v_proj = nn.Linear(d_value, d_model, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model)
        self.kernel: Kernel = fused_attention

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Attend from every query position to every key position the mask allows.

        Args:
            query: (batch, q_len, d_query)
            key: (batch, k_len, d_key)
            value: (batch, k_len, d_value)
            mask: boolean, (q_len, k_len) or broadcastable to (batch, n_heads, q_len,
                k_len) with all four axes; True where the query may attend to the key.
                None allows every pair.
            cache: stores keys and values. Those that it holds from earlier calls come
                before those of this call, and count in k_len of the mask.

        Returns:
            (batch, q_len, d_model)

        Raises:
            ValueError: there is no batch, or more than one size of it, or a key without
                a value; the mask is not boolean, or has neither two nor four axes.
        """
        # Without a batch, heads would attend to features; a smaller batch would be
        # repeated; and the fused kernel doesn't miss the values of the last keys.
        same_batch = query.size(0) == key.size(0)
        if query.dim() != 3 or not same_batch or key.shape[:2] != value.shape[:2]:
            raise ValueError(
                "query, key and value must be (batch, length, width), of one batch "
                f"size, with a value for each key, not {tuple(query.shape)}, "
                f"{tuple(key.shape)} and {tuple(value.shape)}"
            )
        # Numbers would be added to the scores, and the first of three axes is heads'.
        if mask is not None and (mask.dtype != torch.bool or mask.dim() not in (2, 4)):
            raise ValueError(
                "mask must be boolean, (q_len, k_len) or (batch, n_heads, q_len, "
                f"k_len), not {mask.dtype} of shape {tuple(mask.shape)}"
            )
        q = self.split_heads(self.q_proj(query))
        k = self.split_heads(self.k_proj(key))
        v = self.split_heads(self.v_proj(value))
        if cache is not None:
            k, v = cache.update(self, k, v)
        dropout = self.dropout if self.training else 0.0
        output = self.kernel(q, k, v, mask, dropout)  # (batch, n_heads, q_len, d_head)
        return self.out_proj(self.join_heads(output))

    def split_heads(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) -> (batch, n_heads, length, d_head)."""
        return x.unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)

    def join_heads(self, x: Tensor) -> Tensor:
        """(batch, n_heads, length, d_head) -> (batch, length, d_model)."""
        return x.transpose(1, 2).flatten(-2)
