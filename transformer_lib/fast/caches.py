"""Keys and values that the engine keeps, and how it attends to them.

Queries come scaled by 1 / sqrt(d_head), which the engine does to their matrices.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.model.masks import causal_mask

_BATCHED_FROM = 16  # sequences; for fewer, the fused kernel takes less time
_MOST_SCORES = 2**20  # of one layer; for more, the fused kernel takes less memory


def is_batched(scores: tuple[int, ...], dtype: torch.dtype) -> bool:
    """Say whether `attend_batched` takes less time than `attend`.

    The fused kernel spares the memory of the scores, and pays for it with many small
    steps for each query. There is little to be spared where queries are single tokens.

    Args:
        scores: their shape, (n_sequences, n_heads, q_len, k_len).
        dtype: of the queries.
    """
    return (
        scores[0] >= _BATCHED_FROM
        and torch.Size(scores).numel() <= _MOST_SCORES
        and dtype in (torch.float32, torch.float64)
    )


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend with PyTorch's fused kernel.

    Args:
        q: (batch, n_heads, q_len, d_head)
        k: (batch, n_heads, k_len, d_head)
        v: (batch, n_heads, k_len, d_head)
        mask: broadcastable to (batch, n_heads, q_len, k_len): boolean, or added.

    Returns:
        (batch, n_heads, q_len, d_head)
    """
    return F.scaled_dot_product_attention(q, k, v, mask, 0.0, False, scale=1.0)


def attend_batched(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Attend with three calls, each of which does all heads of all sequences.

    Args:
        q: (batch * n_heads, q_len, d_head)
        k: (batch * n_heads, k_len, d_head)
        v: (batch * n_heads, k_len, d_head)
        mask: (batch * n_heads, 1, k_len), is added.

    Returns:
        (batch * n_heads, q_len, d_head)
    """
    if mask is None:
        scores = torch.bmm(q, k.transpose(1, 2))
    else:
        scores = torch.baddbmm(mask, q, k.transpose(1, 2))
    return torch.bmm(scores.softmax(2), v)


class SourceMask:
    """Which source tokens are padding.

    A sentence that is all padding has no token to attend to, and its attention is 0.
    Here it attends to all of its tokens, and their values are 0.

    Args:
        is_token: (batch, 1, 1, src_len), boolean.
        dtype: of what is added to scores.
    """

    def __init__(self, is_token: Tensor, dtype: torch.dtype) -> None:
        self.is_token = is_token
        self.added: Tensor | None = None  # (batch, 1, 1, src_len)
        self.has_tokens: Tensor | None = None  # (batch, 1, 1, 1)
        if not is_token.all():
            has_tokens = is_token.any(dim=-1, keepdim=True)
            self.added = torch.zeros(is_token.shape, dtype=dtype, device="cpu")
            self.added.masked_fill_(~is_token & has_tokens, -torch.inf)
            if not has_tokens.all():
                self.has_tokens = has_tokens.to(dtype)

    def added_to(self, n_heads: int) -> Tensor | None:
        """Return what is added to the scores: (batch * n_heads, 1, src_len)."""
        if self.added is None:
            return None
        return self.added.expand(-1, n_heads, -1, -1).flatten(0, 1)

    def hide(self, values: Tensor) -> Tensor:
        """Make values (..., batch, n_heads, src_len, d_head) 0 where all is padding."""
        return values if self.has_tokens is None else values * self.has_tokens

    def select(self, sentences: Tensor) -> "SourceMask":
        """Return the mask of these sentences only: (n_kept,), indices."""
        dtype = torch.float32 if self.added is None else self.added.dtype
        return SourceMask(self.is_token[sentences], dtype)


class MemoryCache:
    """Keys and values of the memory, for all layers in one tensor.

    The beams of a sentence share them: they ask together, as queries of one sentence.

    Args:
        keys_values: (2 * n_layers, batch, n_heads, src_len, d_head), contiguous.
        mask: of the source.
    """

    def __init__(self, keys_values: Tensor, mask: SourceMask) -> None:
        keys_values[1::2] = mask.hide(keys_values[1::2])
        self.keys_values, self.mask = keys_values, mask

    def begin(self, n_queries: int) -> None:
        """Make ready for a step with so many queries of each sentence."""
        n_sentences, n_heads, src_len, _ = self.keys_values.shape[1:]
        scores = (n_sentences, n_heads, n_queries, src_len)
        self._batched = is_batched(scores, self.keys_values.dtype)
        self._n_queries = n_queries
        if self._batched:
            kept = self.keys_values.flatten(1, 2).unbind()
            self._mask = self.mask.added_to(n_heads)
        else:
            kept = self.keys_values.unbind()
            self._mask = self.mask.added
        self._kept = [*zip(kept[::2], kept[1::2], strict=True)]

    def attend(self, layer: int, query: Tensor) -> Tensor:
        """Let the new tokens attend to the source.

        Args:
            layer: its number.
            query: (batch * n_queries, d_model)

        Returns:
            (batch * n_queries, d_model)
        """
        n_sentences, n_heads, _, d_head = self.keys_values.shape[1:]
        keys, values = self._kept[layer]
        q = query.view(n_sentences, self._n_queries, n_heads, d_head).transpose(1, 2)
        if not self._batched:
            output = attend(q, keys, values, self._mask)
        else:
            q = q.reshape(n_sentences * n_heads, self._n_queries, d_head)
            output = attend_batched(q, keys, values, self._mask)
            output = output.view(n_sentences, n_heads, self._n_queries, d_head)
        return output.transpose(1, 2).reshape(query.shape)

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, in this order: (n_kept,), indices."""
        self.keys_values = self.keys_values.index_select(1, sentences)
        self.mask = self.mask.select(sentences)


class TargetCache:
    """Keys and values of the targets so far, for all layers in one tensor.

    They are written in place, into room that is doubled when it is full.

    Beams of a sentence have most of their tokens in common. So when a beam goes on from
    another one, only the positions are copied in which the two rows differ.

    Args:
        sizes: (n_layers, n_sentences, n_beams, n_heads, d_head)
        dtype: of keys and values.
        capacity: tokens that there is room for at first.

    Attributes:
        length: tokens read so far.
        room: (n_layers, 2, n_rows, n_heads, capacity, d_head)
    """

    def __init__(
        self,
        sizes: tuple[int, int, int, int, int],
        dtype: torch.dtype,
        capacity: int,
    ) -> None:
        n_layers, n_sentences, n_beams, n_heads, d_head = sizes
        self.n_beams, self.length, self._n_new = n_beams, 0, 0
        shape = (n_layers, 2, n_sentences * n_beams, n_heads, capacity, d_head)
        with torch.inference_mode(False):  # to be written in any mode
            self.room = torch.empty(shape, dtype=dtype, device="cpu")
        # For two beams of a sentence, the number of first positions that are the same.
        self._shared = [[[0] * n_beams] * n_beams for _ in range(n_sentences)]

    def begin(self, n_new: int) -> None:
        """Make ready for a step with so many new tokens of each target."""
        total = self.length + n_new
        self._make_room(total)
        n_layers, _, n_rows, n_heads, capacity, d_head = self.room.shape
        self._slots = self.room.narrow(4, self.length, n_new).unbind()
        self._n_new, self._mask = n_new, None
        # A single new token is the last one: there is no future to be hidden from it.
        if n_new > 1:
            self._mask = causal_mask(total, "cpu")[self.length :]
        scores = (n_rows, n_heads, n_new, total)
        self._batched = n_new == 1 and is_batched(scores, self.room.dtype)
        if self._batched:
            kept = self.room.view(2 * n_layers, n_rows * n_heads, capacity, d_head)
            kept = kept.narrow(2, 0, total).unbind()
        else:
            kept = self.room.flatten(0, 1).narrow(3, 0, total).unbind()
        self._kept = [*zip(kept[::2], kept[1::2], strict=True)]

    def attend(self, layer: int, joint: Tensor) -> Tensor:
        """Keep the new tokens' keys and values, and let their queries attend.

        Args:
            layer: its number.
            joint: (n_rows * n_new, 3 * d_model), queries, keys and values.

        Returns:
            (n_rows * n_new, d_model)
        """
        n_rows, n_heads, _, d_head = self.room.shape[2:]
        keys, values = self._kept[layer]
        # -> (3, n_rows, n_heads, n_new, d_head)
        parts = joint.view(n_rows, self._n_new, 3, n_heads, d_head)
        parts = parts.permute(2, 0, 3, 1, 4)
        self._slots[layer].copy_(parts[1:])
        if self._batched:
            q = parts[0].reshape(n_rows * n_heads, 1, d_head)
            return attend_batched(q, keys, values).view(n_rows, -1)
        output = attend(parts[0], keys, values, self._mask)
        return output.transpose(1, 2).reshape(len(joint), -1)

    def end(self) -> None:
        """Count the new tokens, which all layers have read."""
        self.length += self._n_new

    def _make_room(self, total: int) -> None:
        *sizes, capacity, d_head = self.room.shape
        if total > capacity:
            with torch.inference_mode(False):
                room = self.room.new_empty(*sizes, max(2 * capacity, total), d_head)
            room[..., : self.length, :] = self.room[..., : self.length, :]
            self.room = room

    def reorder(self, parents: list[list[int]]) -> None:
        """Let every beam go on from its parent.

        Args:
            parents: for each sentence the number of each beam's parent.

        Raises:
            IndexError: a parent is none of the beams.
        """
        stay = list(range(self.n_beams))
        copies = []  # of (row, row to copy, first position that differs)
        for sentence, beams in enumerate(parents):
            if beams == stay:
                continue
            if min(beams) < 0 or max(beams) >= self.n_beams:
                raise IndexError(f"beams must be from 0 to {stay[-1]}: {beams}")
            shared, first = self._shared[sentence], sentence * self.n_beams
            copies += [
                (first + beam, first + parent, shared[beam][parent])
                for beam, parent in enumerate(beams)
                if beam != parent
            ]
            self._shared[sentence] = [
                [self.length if a == b else shared[a][b] for b in beams] for a in beams
            ]
        self._copy(copies)

    def _copy(self, copies: list[tuple[int, int, int]]) -> None:
        used = self.room[..., : self.length, :]
        written = {row for row, _, _ in copies}
        # What is to be read after it was written over is put aside before.
        aside = {
            source: used.select(2, source).clone()
            for _, source, _ in copies
            if source in written
        }
        for row, source, start in copies:
            values = aside[source] if source in aside else used.select(2, source)
            used.select(2, row)[..., start:, :] = values[..., start:, :]

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, in this order: (n_kept,), indices."""
        room = self.room.unflatten(2, (-1, self.n_beams))
        with torch.inference_mode(False):
            self.room = room.index_select(2, sentences).flatten(2, 3)
        self._shared = [self._shared[sentence] for sentence in sentences.tolist()]
