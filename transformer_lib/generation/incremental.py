"""Decoding step by step: keys and values of a token are computed once and kept.

    decoder = IncrementalDecoder(model)
    decoder.prefill(src)                               # reads the source
    logits = decoder.step(torch.tensor([[bos_id]]))    # of the first token
    logits = decoder.step(torch.tensor([[7]]))         # of the one after token 7

The searches know nothing but these methods, the protocol `Decoding`. Here are three
classes that have them. `IncrementalDecoder` calls the modules of a Transformer as the
full pass does, so that hooks, adapters and subclasses count; `PromptDecoder` does the
same for a language model; and `RecomputingDecoder` calls the model as a whole and so
works for anything. The engine of `transformer_lib.fast` has the methods, too, for
anyone who asks for it.
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from transformer_lib.model.language_model import LanguageModel
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.transformer import Transformer
from transformer_lib.precision import at_least_float32


class Decoding(Protocol):
    """What a search needs: targets that grow, one row for each beam of each sentence.

    Row `i * n_beams + j` is beam j of sentence i.

    Attributes:
        length: tokens of the targets that were read so far.
    """

    length: int

    def prefill(self, src: Tensor, n_beams: int = 1) -> None:
        """Read the source (batch, src_len), and forget what was before."""

    def step(self, ids: Tensor) -> Tensor:
        """Read the next tokens (n_rows, n_new); return logits (n_rows, vocab_size).

        They score the token after the last one, in float32 at least: sums of
        log-probabilities need its precision.
        """

    def reorder(self, parents: Tensor) -> None:
        """Let every beam go on from what its parent read.

        Args:
            parents: (n_sentences, n_beams), the number of a beam of the same sentence.
        """

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, in this order: (n_kept,), indices."""


class KeyValueCache:
    """Keys and values of the target so far, for every self-attention of a decoder.

    A new token asks with its query, and is asked by all later ones for its key and
    value. So keys and values are kept, and queries are not. They are written in place
    into a buffer that is doubled when it is full: n tokens cost n writes, not n copies
    of all that came before.

    Args:
        n_beams: targets for each sentence.
        capacity: tokens there is space for at first.

    Attributes:
        length: tokens read so far, which is the position of the next one.
        source: the same for the memory.
        buffers: for each attention (2, n_rows, n_heads, capacity, d_head), the keys and
            the values, with space that is not in use yet.
        asked: the attentions that have stored keys and values in this step.
    """

    def __init__(self, n_beams: int = 1, capacity: int = 32) -> None:
        self.capacity, self.length = capacity, 0
        self.source = SourceCache(n_beams)
        self.buffers: dict[nn.Module, Tensor] = {}
        self.asked: set[nn.Module] = set()

    def __getitem__(self, attention: nn.Module) -> Tensor:
        """Return the keys and values kept: (2, n_rows, n_heads, length, d_head)."""
        return self.buffers[attention][:, :, :, : self.length]

    @property
    def n_bytes(self) -> int:
        """Size of all keys and values, with space that is not in use yet."""
        tensors = [*self.buffers.values(), *self.source.kept.values()]
        return sum(tensor.nbytes for tensor in tensors)

    def positions(self, ids: Tensor) -> Tensor:
        """Return the positions of new tokens (n_rows, n_new): (n_new,)."""
        return torch.arange(self.length, self.length + ids.size(1), device=ids.device)

    def update(
        self, attention: nn.Module, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Store the new tokens' keys and values; return those of all tokens.

        Args:
            attention: whose they are.
            key: (n_rows, n_heads, n_new, d_head)
            value: (n_rows, n_heads, n_new, d_head)

        Returns:
            Two tensors (n_rows, n_heads, length + n_new, d_head).

        Raises:
            ValueError: the attention was asked before in this step: the second keys
                and values would be written over the first.
        """
        if attention in self.asked:
            raise ValueError("an attention was asked twice in one step")
        self.asked.add(attention)
        buffer = self.buffers.get(attention)
        if buffer is None:
            buffer = key.new_empty(2, *key.shape[:2], self.capacity, key.size(3))
        start, end = self.length, self.length + key.size(2)
        while buffer.size(3) < end:  # full: double it
            buffer = torch.cat([buffer, torch.empty_like(buffer)], dim=3)
        buffer[0, :, :, start:end], buffer[1, :, :, start:end] = key, value
        self.buffers[attention] = buffer
        keys, values = buffer[:, :, :, :end]
        return keys, values

    def reorder(self, rows: Tensor) -> None:
        """Let every row go on from another one's keys and values: (n_rows,).

        Most beams go on from themselves, so only the others are copied.
        """
        numbers = torch.arange(len(rows), device=rows.device)
        moved = (rows != numbers).nonzero()[:, 0]
        for attention in self.buffers:
            kept = self[attention]
            kept[:, moved] = kept[:, rows[moved]]

    def select(self, rows: Tensor) -> None:
        """Keep these rows only, in this order: (n_kept,), indices."""
        for attention, buffer in self.buffers.items():
            self.buffers[attention] = buffer.index_select(1, rows)

    def truncate(self, length: int) -> None:
        """Forget all tokens but the first, so that another target can start with them.

        Raises:
            ValueError: length is negative, or above the number of tokens read.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"{length} tokens of {self.length} cannot be kept")
        self.length = length


class SourceCache:
    """Keys and values of the memory, for every cross-attention of a decoder.

    They are computed in the first step and never change; fairseq calls them static. The
    beams of a sentence share them.

    Args:
        n_beams: targets for each sentence.

    Attributes:
        kept: for each attention (2, n_sentences, n_heads, src_len, d_head).
    """

    def __init__(self, n_beams: int) -> None:
        self.n_beams = n_beams
        self.kept: dict[nn.Module, Tensor] = {}

    def __getitem__(self, attention: nn.Module) -> Tensor:
        """Return the keys and values kept: (2, n_sentences, n_heads, src_len, …)."""
        return self.kept[attention]

    def update(
        self, attention: nn.Module, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Store keys and values in the first step; return them in every step.

        Args:
            attention: whose they are.
            key: (n_rows, n_heads, src_len, d_head) in the first step, of length 0 in
                all others, in which nothing of the memory is new.
            value: as key.

        Returns:
            Two tensors (n_rows, n_heads, src_len, d_head).
        """
        if key.size(2):  # the first step; the beams of a sentence have equal rows
            first = key[:: self.n_beams], value[:: self.n_beams]
            self.kept[attention] = torch.stack(first)
        kept = self.kept[attention][:, :, None]
        kept = kept.expand(-1, -1, self.n_beams, -1, -1, -1)
        keys, values = kept.flatten(1, 2)  # for one beam, nothing is copied
        return keys, values

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, in this order: (n_kept,), indices."""
        for attention, kept in self.kept.items():
            self.kept[attention] = kept.index_select(1, sentences)


class IncrementalDecoder:
    """The protocol `Decoding` on the model's own modules.

    Every module is called as in the full pass, with the new tokens only; the cache
    stands beside the model, which keeps nothing. It has no gradients: use it under
    `torch.no_grad()`, in evaluation mode.

    Args:
        model: in any state; hooks, adapters and subclasses of its modules count. What
            hangs on the model as a whole doesn't: see `make_decoder`.
        capacity: tokens that the cache has space for at first.

    Attributes:
        cache: keys and values of the targets; those of the memory in `cache.source`.
        new_memory: (n_rows, src_len, d_model) before the first step, which reads it;
            of length 0 from then on.
        src_mask: (n_rows, 1, 1, src_len), True where a token is no padding.
    """

    def __init__(self, model: Transformer, capacity: int = 32) -> None:
        self.model, self.capacity = model, capacity

    @property
    def length(self) -> int:
        """Tokens of the targets that were read so far."""
        return self.cache.length

    def prefill(self, src: Tensor, n_beams: int = 1) -> None:
        """Read the source; see `Decoding`."""
        self.n_beams = n_beams
        self.cache = KeyValueCache(n_beams, self.capacity)
        mask = padding_mask(src, self.model.config.pad_id)
        memory = self.model.encode(src, mask)
        self.new_memory = memory.repeat_interleave(n_beams, dim=0)
        self.src_mask = mask.repeat_interleave(n_beams, dim=0)

    def read(self, ids: Tensor) -> Tensor:
        """Read the next tokens (n_rows, n_new): features (n_rows, n_new, d_model).

        They are what `Transformer.decode` gives for these positions.

        Raises:
            ValueError: another number of rows than the cache holds, or a layer that
                leaves the cache out and so forgets all earlier tokens.
        """
        n_rows = len(self.new_memory)
        if len(ids) != n_rows:
            raise ValueError(f"{len(ids)} rows, but the cache is for {n_rows}")
        total, tgt_mask = self.length + ids.size(1), None
        # A single token is the last one: no future to hide from it. But the first one
        # has a mask: with few keys and none, the fused kernel turns NaN into 0.
        if ids.size(1) > 1 or self.length == 0:
            tgt_mask = causal_mask(total, ids.device)[self.length :]
        self.cache.asked.clear()
        features = self.model.decode(
            ids, self.new_memory, self.src_mask, tgt_mask, self.cache
        )
        n_asked = min(len(self.cache.asked), len(self.cache.source.kept))
        require_all_asked(n_asked, len(self.model.decoder.layers))
        self.cache.length = total
        self.new_memory = self.new_memory[:, :0].clone()  # all of it is read
        return features

    def step(self, ids: Tensor) -> Tensor:
        """Read the next tokens and score the one after them; see `Decoding`."""
        return at_least_float32(self.model.lm_head(self.read(ids)[:, -1]))

    def reorder(self, parents: Tensor) -> None:
        """Let every beam go on from what its parent read; see `Decoding`."""
        self.cache.reorder(row_numbers(parents))

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, with all their beams; see `Decoding`."""
        beams = torch.arange(self.n_beams, device=sentences.device)
        rows = row_numbers(beams.expand(len(sentences), -1), sentences)
        self.cache.select(rows)
        self.cache.source.select(sentences)
        self.new_memory = self.new_memory[rows]
        self.src_mask = self.src_mask[rows]

    def truncate(self, length: int) -> None:
        """Forget all tokens but the first; see `KeyValueCache.truncate`."""
        self.cache.truncate(length)


class PromptDecoder(IncrementalDecoder):
    """The protocol `Decoding` on a language model: the source is a prompt to continue.

    Prompts of different lengths are padded on the left, so that all of them end where
    their targets begin. The first token of a target, bos, is the prompt's end: it is
    not read, and a config's bos_id may be any token.

    Attributes:
        new_memory: (n_rows, prompt_len), the ids of the prompts. The first step reads
            them.
        src_mask: (n_rows, 1, 1, prompt_len), True from the first real token on.
    """

    @property
    def length(self) -> int:
        """Tokens of the targets that were read so far, bos included."""
        return max(self.cache.length - self.src_mask.size(-1) + 1, 0)

    def prefill(self, src: Tensor, n_beams: int = 1) -> None:
        """Remember the prompts; see `Decoding`.

        Raises:
            ValueError: a prompt is padded on the right.
        """
        real = src != self.model.config.pad_id
        if not real[:, -1].all():
            raise ValueError("a prompt ends with padding: pad prompts on the left")
        self.n_beams = n_beams
        self.cache = KeyValueCache(n_beams, self.capacity)
        self.new_memory = src.repeat_interleave(n_beams, dim=0)
        mask = (real.cumsum(dim=1) > 0)[:, None, None, :]
        self.src_mask = mask.repeat_interleave(n_beams, dim=0)

    def read(self, ids: Tensor) -> Tensor:
        """Read the next tokens (n_rows, n_new): logits (n_rows, n_read, vocab_size).

        Raises:
            ValueError: a layer leaves the cache out.
        """
        if self.length == 0:
            unread = self.new_memory[:, self.cache.length :]
            ids = torch.cat([unread, ids[:, 1:]], dim=1)
        total = self.cache.length + ids.size(1)
        mask = F.pad(self.src_mask, (0, total - self.src_mask.size(-1)), value=True)
        self.cache.asked.clear()
        logits = self.model(ids, mask, cache=self.cache)
        require_all_asked(len(self.cache.asked), len(self.model.layers))
        self.cache.length = total
        return logits

    def step(self, ids: Tensor) -> Tensor:
        """Read the next tokens and score the one after them; see `Decoding`."""
        return at_least_float32(self.read(ids)[:, -1])

    def truncate(self, length: int) -> None:
        """Forget all tokens of the targets but the first, and not the prompts."""
        self.cache.truncate(self.src_mask.size(-1) + length - 1)


class RecomputingDecoder:
    """The protocol `Decoding` for any model: all tokens are read anew in every step.

    Args:
        model: called as `model(src, tgt_in)`; returns logits
            (n_rows, tgt_len, vocab_size).
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    @property
    def length(self) -> int:
        """Tokens of the targets that were read so far."""
        return self.ids.size(1)

    def prefill(self, src: Tensor, n_beams: int = 1) -> None:
        """Remember the source; see `Decoding`."""
        self.n_beams = n_beams
        self.src = src.repeat_interleave(n_beams, dim=0)
        self.ids = self.src[:, :0]

    def step(self, ids: Tensor) -> Tensor:
        """Read all tokens again, and score the next one; see `Decoding`."""
        self.ids = torch.cat([self.ids, ids], dim=1)
        logits = self.model(self.src, self.ids)[:, -1]
        return at_least_float32(logits)

    def reorder(self, parents: Tensor) -> None:
        """Let every beam go on from what its parent read; see `Decoding`."""
        self.ids = self.ids[row_numbers(parents)]

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, with all their beams; see `Decoding`."""
        beams = torch.arange(self.n_beams, device=sentences.device)
        beams = beams.expand(len(sentences), -1)
        rows = row_numbers(beams, sentences)
        self.src, self.ids = self.src[rows], self.ids[rows]


def make_decoder(model: nn.Module) -> "IncrementalDecoder":
    """Return a decoder with a cache, which calls the model's own modules.

    Args:
        model: a `Transformer`, or a `LanguageModel`, whose sources are prompts.

    Raises:
        ValueError: a hook on the model as a whole, a wrapper around it, or a `forward`
            of its own would be left out: a cache needs encode, decode and lm_head to be
            called instead.
    """
    if isinstance(model, LanguageModel):  # which is called as a whole
        return PromptDecoder(model)
    kind = type(model)
    own = kind.forward is Transformer.forward and kind.__call__ is nn.Module.__call__
    hooks = (
        model._forward_hooks,
        model._forward_pre_hooks,
        torch_module._global_forward_hooks,
        torch_module._global_forward_pre_hooks,
    )
    if not own or "forward" in vars(model) or any(hooks):
        raise ValueError(
            "decoding with a cache calls encode, decode and lm_head of a Transformer. "
            f"What this {kind.__name__} does when it is called, a hook, a wrapper or a "
            "forward of its own, would be left out: use "
            "decoder=RecomputingDecoder(model)"
        )
    return IncrementalDecoder(model)


def require_all_asked(n_asked: int, n_layers: int) -> None:
    """Refuse a layer that leaves the cache out and so forgets all earlier tokens.

    Raises:
        ValueError: fewer layers than there are have used the cache.
    """
    if n_asked < n_layers:
        raise ValueError(
            f"{n_asked} of {n_layers} layers used the cache: use "
            "decoder=RecomputingDecoder(model)"
        )


def row_numbers(beams: Tensor, sentences: Tensor | None = None) -> Tensor:
    """Turn beams (n_sentences, n_beams) into numbers of rows: (n_rows,).

    Args:
        beams: the number of a beam of each sentence.
        sentences: (n_sentences,), which sentences; 0, 1, 2, ... if None.

    Raises:
        ValueError: a beam is none of n_beams: it would be one of another sentence.
    """
    n_beams = beams.size(1)
    if ((beams < 0) | (beams >= n_beams)).any():
        raise ValueError(f"beams must be from 0 to {n_beams - 1}: {beams.tolist()}")
    if sentences is None:
        sentences = torch.arange(len(beams), device=beams.device)
    return (sentences[:, None] * n_beams + beams).flatten()
