"""Attention that remembers: the keys and values of one decoder layer.

A new token asks with its query, and is asked by all later ones for its key and value.
So keys and values are kept, and queries are not.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.masks import causal_mask


class SelfAttentionCache:
    """One layer's self-attention, with keys and values of the target so far.

    They are written in place into room that is made in advance, so that n tokens cost n
    writes and not n copies of all before them.

    Args:
        attention: whose keys and values are kept.
        keys_values: the room, (2, n_rows, n_heads, capacity, d_head); its first
            `length` positions are in use.

    Attributes:
        length: tokens read so far.
    """

    def __init__(self, attention: MultiHeadAttention, keys_values: Tensor) -> None:
        self.attention, self.keys_values, self.length = attention, keys_values, 0
        self.in_proj = attention.joint_projection()

    def attend(self, x: Tensor) -> Tensor:
        """Add the new tokens, and let them attend to all tokens up to themselves.

        Args:
            x: (n_rows, n_new, d_model), what the layer knows of the new tokens.

        Returns:
            (n_rows, n_new, d_model)

        Raises:
            ValueError: x has another number of rows than the cache, or the cache is
                full.
        """
        n_rows, n_new, _ = x.shape
        if n_rows != self.keys_values.size(1):
            raise ValueError(
                f"{n_rows} rows are to be decoded, but the cache was made for "
                f"{self.keys_values.size(1)}"
            )
        start, length = self.length, self.length + n_new
        capacity = self.keys_values.size(3)
        if length > capacity:
            raise ValueError(
                f"the cache is full: it has room for {capacity} tokens, not {length}"
            )
        attention = self.attention
        # (n_rows, n_new, 3 * d_model) -> (3, n_rows, n_heads, n_new, d_head)
        shape = (n_rows, n_new, 3, attention.n_heads, attention.d_head)
        joint = self.in_proj(x).view(shape).permute(2, 0, 3, 1, 4)
        self.length = length
        self.keys_values.narrow(3, start, n_new).copy_(joint[1:])
        keys, values = self.keys_values.narrow(3, 0, length).unbind()
        # A single new token is the last one: there is no future to be hidden from it.
        mask = causal_mask(length, x.device)[start:] if n_new > 1 else None
        output = attention.attend(joint[0], keys, values, mask)
        return attention.out_proj(attention.join_heads(output))


class CrossAttentionCache:
    """One layer's cross-attention, with keys and values of the source.

    Fairseq calls them static. The beams of a sentence share them: they ask together,
    as so many queries of one sentence, so that nothing is repeated for each beam.

    Args:
        attention: whose keys and values are kept.
        memory: (batch, src_len, d_memory)
        mask: (batch, 1, 1, src_len), boolean, or None.

    Attributes:
        keys_values: (2, batch, n_heads, src_len, d_head)
    """

    def __init__(
        self, attention: MultiHeadAttention, memory: Tensor, mask: Tensor | None
    ) -> None:
        self.attention, self.mask = attention, mask
        projections = (attention.k_proj, attention.v_proj)
        self.keys_values = torch.stack(
            [attention.split_heads(projection(memory)) for projection in projections]
        )

    def attend(self, x: Tensor) -> Tensor:
        """Let the new tokens attend to the source.

        Args:
            x: (n_rows, n_new, d_model); the rows of a sentence stand together.

        Returns:
            (n_rows, n_new, d_model)
        """
        attention, (keys, values) = self.attention, self.keys_values
        # (n_rows, n_new, d_model) -> (batch, n_heads, n_beams * n_new, d_head)
        query = attention.q_proj(x).reshape(len(keys), -1, attention.d_model)
        query = attention.split_heads(query)
        output = attention.attend(query, keys, values, self.mask)
        return attention.out_proj(attention.join_heads(output).reshape(x.shape))

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, in this order: (n_kept,), indices."""
        self.keys_values = self.keys_values.index_select(1, sentences)
        if self.mask is not None:
            self.mask = self.mask.index_select(0, sentences)


@dataclass(frozen=True)
class LayerCache:
    """What one decoder layer remembers: the target so far, and the source."""

    self_attn: SelfAttentionCache
    cross_attn: CrossAttentionCache
