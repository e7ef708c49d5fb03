"""Decoding: from a source sentence to the model's own words, one token at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer_lib.masks import causal_mask, padding_mask
from transformer_lib.model import Transformer


@dataclass(frozen=True)
class Decoded:
    """What a search has found.

    Attributes:
        ids: (batch, length), without bos. Every row ends with its eos, then padding.
        finished: (batch,), boolean. False where the model had not come to an end at
            the maximum length, and eos was put there by force.
    """

    ids: Tensor
    finished: Tensor


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode, and back into its own mode afterwards."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


@torch.no_grad()
def greedy_decode(
    model: Transformer, src: Tensor, bos_id: int, eos_id: int, max_len: int
) -> Decoded:
    """Let the model say its likeliest token, read it, and go on until it says eos.

    Every step reads the whole target so far again and uses only the last row.

    Args:
        model: in either mode; it decodes without dropout.
        src: (batch, src_len), source ids, padded with the config's pad_id.
        bos_id: the token that starts every target.
        eos_id: the token that ends it.
        max_len: length at which a target ends in any case, its eos included.

    Raises:
        ValueError: max_len is below 1, a sentence is all padding, or the model's
            logits are not finite.
    """
    pad_id = model.config.pad_id
    src_mask = padding_mask(src, pad_id)
    _check_source(src_mask, max_len)
    ids = src.new_full((src.size(0), 1), bos_id)  # (batch, length so far)
    ended = finished = torch.zeros_like(ids[:, 0], dtype=torch.bool)
    with without_dropout(model):
        memory = model.encode(src, src_mask)
        while ids.size(1) <= max_len and not ended.all():
            # No mask for padding: only rows that have ended hold any.
            tgt_mask = causal_mask(ids.size(1), device=ids.device)
            features = model.decode(ids, memory, src_mask, tgt_mask)
            token = _likeliest(model.lm_head(features[:, -1]), pad_id)  # (batch,)
            finished = ended | (token == eos_id)
            if ids.size(1) == max_len:
                token = token.new_full(token.shape, eos_id)
            token = token.masked_fill(ended, pad_id)
            ids = torch.cat([ids, token[:, None]], dim=1)
            ended = finished
    return Decoded(ids[:, 1:], finished)


def _likeliest(logits: Tensor, pad_id: int) -> Tensor:
    """(batch, vocab_size) -> (batch,); padding is no word that can be said."""
    if not logits.isfinite().all():
        raise ValueError("the model's logits are not finite: its weights are broken")
    logits = logits.clone()
    logits[:, pad_id] = -torch.inf
    return logits.argmax(dim=1)


def _check_source(src_mask: Tensor, max_len: int) -> None:
    if max_len < 1:
        raise ValueError(f"max_len must be at least 1, not {max_len}")
    empty = ~src_mask.flatten(1).any(dim=1)
    if empty.any():
        row = int(empty.nonzero()[0])
        raise ValueError(f"sentence {row} of the batch is empty: it is all padding")
