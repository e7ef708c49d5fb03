"""What a decoder remembers of the tokens it has read, so that it reads each one once.

A new token asks with its query, and is asked by all later ones for its key and value.
So keys and values are kept, and queries are not. Of the source, keys and values are
the same at every step: they are computed once.

    cache = model.start_cache(src)                          # reads the source
    features = model.decode_next(torch.tensor([[bos]]), cache)  # the first token
    features = model.decode_next(torch.tensor([[7]]), cache)    # the next one
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.masks import causal_mask

if TYPE_CHECKING:
    from transformer_lib.layers import DecoderLayer


class SelfAttentionCache:
    """One layer's self-attention, with keys and values of the target so far.

    They are written in place into room that is made in advance and doubled when it is
    full, so that n tokens cost n writes and not n copies of all before them.

    Args:
        attention: whose keys and values are kept.
        n_rows: targets decoded side by side.
        capacity: tokens there is room for at first.

    Attributes:
        length: tokens read so far.
        keys_values: (2, n_rows, n_heads, capacity, d_head); its first `length`
            positions are in use.
    """

    def __init__(
        self, attention: MultiHeadAttention, n_rows: int, capacity: int
    ) -> None:
        self.attention, self.length = attention, 0
        # One product with a matrix of three is faster than three products. The packed
        # weights live as long as the cache.
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        self.weight = torch.cat([projection.weight for projection in projections])
        self.bias = None
        if attention.q_proj.bias is not None:
            self.bias = torch.cat([projection.bias for projection in projections])
        shape = (2, n_rows, attention.n_heads, capacity, attention.d_head)
        self.keys_values = self.weight.new_empty(shape)

    def attend(self, x: Tensor) -> Tensor:
        """Add the new tokens, and let them attend to all tokens up to themselves.

        Args:
            x: (n_rows, n_new, d_model), what the layer knows of the new tokens.

        Returns:
            (n_rows, n_new, d_model)

        Raises:
            ValueError: x has another number of rows than the cache.
        """
        n_rows, n_new, _ = x.shape
        if n_rows != self.keys_values.size(1):
            raise ValueError(
                f"{n_rows} rows are to be decoded, but the cache was made for "
                f"{self.keys_values.size(1)}"
            )
        attention = self.attention
        packed = F.linear(x, self.weight, self.bias)
        query, *new = (
            attention.split_heads(part) for part in packed.chunk(3, dim=-1)
        )  # each (n_rows, n_heads, n_new, d_head)
        start, self.length = self.length, self.length + n_new
        self._make_room()
        for kept, part in zip(self.keys_values, new, strict=True):
            kept[:, :, start : self.length] = part
        keys, values = self.keys_values[:, :, :, : self.length]
        # A single new token is the last one: there is no future to be hidden from it.
        mask = None
        if n_new > 1:
            mask = causal_mask(self.length, device=x.device)[start:]
        return attention.out_proj(
            attention.join_heads(attention.attend(query, keys, values, mask))
        )

    def select(self, rows: Tensor) -> None:
        """Keep these rows only, in this order: (n_kept,), indices."""
        self.keys_values = self.keys_values.index_select(1, rows)

    def copy_rows(self, source: Tensor, target: Tensor) -> None:
        """Copy rows over others, in place: (n_copied,) indices each."""
        used = self.keys_values[:, :, :, : self.length]
        used[:, target] = used[:, source]

    def _make_room(self) -> None:
        capacity = self.keys_values.size(3)
        if self.length > capacity:
            missing = max(capacity, self.length - capacity)
            self.keys_values = F.pad(self.keys_values, (0, 0, 0, missing))


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
        attention = self.attention
        keys, values = self.keys_values
        query = attention.q_proj(x).view(keys.size(0), -1, attention.d_model)
        output = attention.attend(
            attention.split_heads(query), keys, values, self.mask
        )  # (batch, n_heads, n_beams * n_new, d_head)
        return attention.out_proj(attention.join_heads(output).view(x.shape))

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


class DecoderCache:
    """What a decoder remembers while it writes: one `LayerCache` for each layer.

    The caller owns it: the decoder is given it with every call and keeps nothing.
    It has no gradients; use it under `torch.no_grad()`.

    Args:
        layers: of the decoder that the cache is for.
        memory: (batch, src_len, d_memory), the encoder's output.
        src_mask: (batch, 1, 1, src_len), boolean; None if nothing is padded.
        n_beams: targets written for each sentence. Row `i * n_beams + j` of the cache
            is beam j of sentence i.
        capacity: tokens there is room for at first; it is doubled when it is full.

    Raises:
        ValueError: n_beams or capacity is below 1, or there is no layer.
    """

    def __init__(
        self,
        layers: Iterable["DecoderLayer"],
        memory: Tensor,
        src_mask: Tensor | None = None,
        n_beams: int = 1,
        capacity: int = 32,
    ) -> None:
        for name, value in (("n_beams", n_beams), ("capacity", capacity)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.n_beams, self.n_sentences = n_beams, memory.size(0)
        if src_mask is not None and src_mask.all():
            src_mask = None  # attention without a mask is faster
        self.layers = [
            LayerCache(
                SelfAttentionCache(layer.self_attn, self.n_rows, capacity),
                CrossAttentionCache(layer.cross_attn, memory, src_mask),
            )
            for layer in layers
        ]
        if not self.layers:
            raise ValueError("a decoder of 0 layers has nothing to remember")

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
        parts = (part for kept in self.layers for part in vars(kept).values())
        return sum(part.keys_values.nbytes for part in parts)

    def reorder(self, parents: Tensor) -> None:
        """Let every beam go on from what its parent has read.

        Only beams that have another parent than themselves are copied, in place.

        Args:
            parents: (n_sentences, n_beams), the number of a beam of the same sentence.
        """
        first = torch.arange(0, self.n_rows, self.n_beams, device=parents.device)
        sources = (first[:, None] + parents).flatten()  # (n_rows,)
        targets = torch.arange(self.n_rows, device=parents.device)
        moved = (sources != targets).nonzero()[:, 0]
        if len(moved):
            for layer in self.layers:
                layer.self_attn.copy_rows(sources[moved], moved)

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, in this order, with all their beams.

        Args:
            sentences: (n_kept,), indices.
        """
        beams = torch.arange(self.n_beams, device=sentences.device)
        rows = (sentences[:, None] * self.n_beams + beams).flatten()
        for layer in self.layers:
            layer.self_attn.select(rows)
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
