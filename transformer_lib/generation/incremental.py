"""Attention that remembers: the keys and values of one decoder layer.

A new token asks with its query, and is asked by all later ones for its key and value.
So keys and values are kept, and queries are not.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.masks import causal_mask


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


"""What a decoder remembers of the tokens it has read, so that it reads each one once.

cache = model.start_cache(src)                              # reads the source
features = model.decode_next(torch.tensor([[bos]]), cache)  # the first token
features = model.decode_next(torch.tensor([[7]]), cache)    # the next one
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torch import Tensor

from transformer_lib.generation.incremental import (
    CrossAttentionCache,
    LayerCache,
    SelfAttentionCache,
)

if TYPE_CHECKING:
    from transformer_lib.model.layers import DecoderLayer


class DecoderCache:
    """What a decoder remembers while it writes: one `LayerCache` for each layer.

    The caller owns it: the decoder is given it with every call and keeps nothing.
    It has no gradients; use it under `torch.no_grad()`.

    Args:
        layers: of the decoder that the cache is for; all have as many heads.
        memory: (batch, src_len, d_memory), the encoder's output.
        src_mask: (batch, 1, 1, src_len), boolean; None if nothing is padded.
        n_beams: targets written for each sentence. Row `i * n_beams + j` of the cache
            is beam j of sentence i.
        capacity: tokens there is room for at first; it is doubled when it is full.

    Attributes:
        keys_values: (n_layers, 2, n_rows, n_heads, capacity, d_head), of the targets;
            every layer works on its part.

    Raises:
        ValueError: n_beams or capacity is below 1, there is no layer, or layers differ
            in their number of heads.
    """

    def __init__(
        self,
        layers: Iterable["DecoderLayer"],
        memory: Tensor,
        src_mask: Tensor | None = None,
        n_beams: int = 1,
        capacity: int = 32,
    ) -> None:
        layers = list(layers)
        if n_beams < 1 or capacity < 1:
            raise ValueError(
                f"n_beams and capacity must be at least 1, not {n_beams} and {capacity}"
            )
        if not layers:
            raise ValueError("a decoder of 0 layers has nothing to remember")
        heads = {layer.self_attn.n_heads for layer in layers}
        if len(heads) > 1:
            raise ValueError(f"all layers need as many heads, not {sorted(heads)}")
        self.n_beams, self.n_sentences = n_beams, memory.size(0)
        if src_mask is not None and src_mask.all():
            src_mask = None  # attention without a mask is faster
        first = layers[0].self_attn
        self.keys_values = first.q_proj.weight.new_empty(
            len(layers), 2, self.n_rows, first.n_heads, capacity, first.d_head
        )
        self.layers = [
            LayerCache(
                SelfAttentionCache(layer.self_attn, part),
                CrossAttentionCache(layer.cross_attn, memory, src_mask),
            )
            for layer, part in zip(layers, self.keys_values, strict=True)
        ]

    @property
    def n_rows(self) -> int:
        """Targets that are decoded side by side."""
        return self.n_sentences * self.n_beams

    @property
    def length(self) -> int:
        """Tokens read so far, which is the position of the next one."""
        return self.layers[0].self_attn.length

    @property
    def n_bytes(self) -> int:
        """Size of all keys and values, room that is not in use yet included."""
        source = (layer.cross_attn.keys_values.nbytes for layer in self.layers)
        return self.keys_values.nbytes + sum(source)

    def make_room(self, n_new: int) -> None:
        """See to it that so many tokens can be added; what is kept stays as it is."""
        *sizes, capacity, d_head = self.keys_values.shape
        if self.length + n_new > capacity:
            capacity = max(2 * capacity, self.length + n_new)
            room = self.keys_values.new_empty(*sizes, capacity, d_head)
            room[..., : self.length, :] = self.keys_values[..., : self.length, :]
            self._replace(room)

    def reorder(self, parents: Tensor) -> None:
        """Let every beam go on from what its parent has read.

        Only beams that have another parent than themselves are copied, in place.

        Args:
            parents: (n_sentences, n_beams), the number of a beam of the same sentence.
        """
        sources = [
            sentence * self.n_beams + parent
            for sentence, row in enumerate(parents.tolist())
            for parent in row
        ]
        moved = [row for row, source in enumerate(sources) if source != row]
        used = self.keys_values[..., : self.length, :].unbind(2)  # row by row
        read = {sources[row] for row in moved}
        # What is written over before it is read is put aside.
        aside = {row: used[row].clone() for row in read.intersection(moved)}
        for row in moved:
            source = sources[row]
            used[row].copy_(aside.get(source, used[source]))

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, in this order, with all their beams.

        Args:
            sentences: (n_kept,), indices.
        """
        beams = torch.arange(self.n_beams, device=sentences.device)
        rows = (sentences[:, None] * self.n_beams + beams).flatten()
        self._replace(self.keys_values.index_select(2, rows))
        for layer in self.layers:
            layer.cross_attn.select(sentences)
        self.n_sentences = len(sentences)

    def truncate(self, length: int) -> None:
        """Forget all tokens but the first, so that another target can start with them.

        Raises:
            ValueError: length is negative, or above the number of tokens read.
        """
        if not 0 <= length <= self.length:
            raise ValueError(
                f"the cache holds {self.length} tokens and cannot be cut to {length}"
            )
        for layer in self.layers:
            layer.self_attn.length = length

    def _replace(self, keys_values: Tensor) -> None:
        self.keys_values = keys_values
        for layer, part in zip(self.layers, keys_values, strict=True):
            layer.self_attn.keys_values = part
