"""Attention: every query averages the values whose keys match it."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.fast.dropout import dropout
from transformer_lib.fast.linear import FewRows, Linear
from transformer_lib.model.masks import check_mask


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Average the values, weighting each by how well its key matches the query.

    Computes softmax(Q K^T / sqrt(d_head)) V, equation 1 of the paper.

    Args:
        query: (..., q_len, d_head)
        key: (..., k_len, d_head)
        value: (..., k_len, d_value)
        mask: boolean, broadcastable to (..., q_len, k_len); True where the query
            may attend to the key. None allows every pair.

    Returns:
        output: (..., q_len, d_value), in the units of value. A query that may attend
            to no key at all gets zeros.
        weights: (..., q_len, k_len), probabilities: each row sums to 1, or to 0 where
            no key is left.

    Raises:
        ValueError: sizes of query, key and value do not fit each other, a sequence is
            empty, or the mask does not broadcast.
        TypeError: mask is not boolean.
    """
    _check_sizes(query, key, value)
    d_head = query.size(-1)

    # A dot product of d_head unit-variance terms has variance d_head; the square
    # root brings it back to 1, where softmax still has a useful gradient.
    scores = query @ key.transpose(-2, -1) / math.sqrt(d_head)  # (..., q_len, k_len)
    if mask is not None:
        check_mask(mask, scores.shape)
        scores = scores.masked_fill(~mask, float("-inf"))

    weights = scores.softmax(dim=-1)
    if mask is not None:
        # Softmax over no key at all is 0 / 0: such a row becomes zero. Its gradient
        # does too, since masked_fill passes none back to what it has filled.
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ value, weights


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

    Raises:
        ValueError: n_heads does not divide d_model, or a size is below 1.
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
        if n_heads < 1 or d_model < 1:
            raise ValueError(
                f"d_model and n_heads must be at least 1, not {d_model} and {n_heads}"
            )
        if d_model % n_heads != 0:
            raise ValueError(f"n_heads {n_heads} does not divide d_model {d_model}")
        self.d_model, self.n_heads, self.d_head = d_model, n_heads, d_model // n_heads
        self.dropout = dropout
        d_query, d_key, d_value = d_inputs or (d_model, d_model, d_model)
        self.q_proj = Linear(d_query, d_model, bias=bias)
        self.k_proj = Linear(d_key, d_model, bias=bias)
        self.v_proj = Linear(d_value, d_model, bias=bias)
        self.out_proj = Linear(d_model, d_model)
        # Set by record_attention for as long as somebody asks for the weights.
        self.on_weights: Callable[[Tensor], None] | None = None
        self.packed: FewRows | None = None

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Attend from every query position to every key position the mask allows.

        Args:
            query: (batch, q_len, d_query)
            key: (batch, k_len, d_key)
            value: (batch, k_len, d_value)
            mask: boolean, broadcastable to (batch, n_heads, q_len, k_len); True where
                the query may attend to the key. None allows every pair.

        Returns:
            (batch, q_len, d_model)

        Raises:
            ValueError: a width, a length or the batch size does not fit, or the mask
                does not broadcast.
            TypeError: mask is not boolean.
        """
        self._check_inputs(query, key, value)
        heads = [
            self.split_heads(self.q_proj(query)),
            self.split_heads(self.k_proj(key)),
            self.split_heads(self.v_proj(value)),
        ]
        if mask is not None:
            check_mask(mask, (query.size(0), self.n_heads, query.size(1), key.size(1)))
            mask = torch.atleast_2d(mask)  # the fused kernel takes no fewer
        output = self.attend(*heads, mask)  # (batch, n_heads, q_len, d_head)
        return self.out_proj(self.join_heads(output))

    def joint_projection(self) -> FewRows:
        """Return the three input projections as one, their outputs side by side.

        One product with a matrix of three is faster than three products.
        """
        if self.packed is not None:
            return self.packed
        layers, bias = (self.q_proj, self.k_proj, self.v_proj), None
        if self.q_proj.bias is not None:
            bias = torch.cat([layer.bias for layer in layers])
        return FewRows(torch.cat([layer.weight for layer in layers]), bias)

    def pack(self) -> None:
        """Keep the joint projection; weights must not change until `unpack`."""
        self.packed = self.joint_projection()

    def unpack(self) -> None:
        """Forget the joint projection."""
        self.packed = None

    def split_heads(self, x: Tensor) -> Tensor:
        """(batch, length, d_model) -> (batch, n_heads, length, d_head)."""
        return x.unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)

    def join_heads(self, x: Tensor) -> Tensor:
        """(batch, n_heads, length, d_head) -> (batch, length, d_model)."""
        return x.transpose(1, 2).flatten(-2)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Attend with all heads: fused, or in the open if somebody records them.

        Args:
            q: (batch, n_heads, q_len, d_head)
            k: (batch, n_heads, k_len, d_head)
            v: (batch, n_heads, k_len, d_head)
            mask: boolean, broadcastable to (batch, n_heads, q_len, k_len), or None.

        Returns:
            (batch, n_heads, q_len, d_head)
        """
        rate = self.dropout if self.training else 0.0
        if self.on_weights is None and not _open_is_faster(q):
            return F.scaled_dot_product_attention(q, k, v, mask, rate)
        output, weights = scaled_dot_product_attention(q, k, v, mask)
        if self.on_weights is not None:
            self.on_weights(weights)
        return dropout(weights, rate) @ v if rate else output

    def _check_inputs(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        projections = (self.q_proj, self.k_proj, self.v_proj)
        for name, x, projection in zip(
            ("query", "key", "value"), (query, key, value), projections, strict=True
        ):
            if x.dim() != 3:
                raise ValueError(
                    f"{name} must have 3 dimensions (batch, length, width), "
                    f"not {x.dim()}: shape {tuple(x.shape)}"
                )
            if x.size(-1) != projection.in_features:
                raise ValueError(
                    f"{name} has width {x.size(-1)}, but this layer was built for "
                    f"{projection.in_features}"
                )
            if x.size(0) != query.size(0):
                raise ValueError(
                    f"query has batch size {query.size(0)}, but {name} has {x.size(0)}"
                )
        _check_lengths(query, key, value)


def _open_is_faster(q: Tensor) -> bool:
    """Say where the fused kernel is not worth having, on a CPU.

    Its backward pass in bfloat16 takes four to eight times as long as plain matrix
    products do at the length of sentences. And it makes a task of every head of every
    row, which does not pay for the few queries that many rows ask in decoding.
    """
    if q.device.type != "cpu":
        return False
    if q.requires_grad:
        return q.dtype == torch.bfloat16
    return q.size(0) >= 16 and q.size(2) <= 8


def _check_sizes(query: Tensor, key: Tensor, value: Tensor) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() < 2:
            raise ValueError(
                f"{name} needs at least 2 dimensions (..., length, width), "
                f"not {x.dim()}: shape {tuple(x.shape)}"
            )
    if key.size(-1) != query.size(-1):
        raise ValueError(
            f"query has d_head {query.size(-1)}, but key has {key.size(-1)}"
        )
    _check_lengths(query, key, value)


def _check_lengths(query: Tensor, key: Tensor, value: Tensor) -> None:
    if key.size(-2) != value.size(-2):
        raise ValueError(
            f"key has length {key.size(-2)}, but value has {value.size(-2)}: "
            "every key needs its value"
        )
    for name, x in (("query", query), ("key", key)):
        if x.size(-2) == 0:
            raise ValueError(f"{name} has length 0, but needs at least 1 position")
