"""What a cache of keys and values refuses."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.checks import check_integers, check_tensors

if TYPE_CHECKING:
    from transformer_lib.generation.incremental import Decoding, KeyValueCache


def check_cache_sizes(n_beams: int, capacity: int) -> None:
    """Refuse a cache without beams or room.

    Raises:
        ValueError: a number is below 1.
    """
    check_integers(n_beams=n_beams, capacity=capacity)
    if n_beams < 1 or capacity < 1:
        raise ValueError(
            f"n_beams and capacity must be at least 1, not {n_beams} and {capacity}"
        )


def check_begun(decoder: "Decoding") -> None:
    """Refuse a step without a source.

    Raises:
        ValueError: prefill was not called.
    """
    if not hasattr(decoder, "n_beams"):
        raise ValueError("there is no source yet: prefill(src) comes before all else")


def check_rows(n_rows: int, made_for: int) -> None:
    """Refuse other rows than those that a cache was made for.

    Raises:
        ValueError: the numbers differ.
    """
    if n_rows != made_for:
        raise ValueError(
            f"{n_rows} rows are to be decoded, but the cache was made for {made_for}"
        )


def check_parents(parents: Tensor, n_beams: int, n_rows: int) -> None:
    """Refuse parents that are no beams: another sentence's would be taken for them.

    Raises:
        ValueError: they are not (n_sentences, n_beams), or one is none of the beams.
        TypeError: they are no integers.
    """
    _check_indices(parents, n_beams, "parents", "(n_sentences, n_beams)", 2)
    if parents.size(1) != n_beams:
        raise ValueError(
            f"each of {n_beams} beams has one parent, not {parents.size(1)}"
        )
    check_rows(parents.numel(), n_rows)


def check_sentences(sentences: Tensor, n_sentences: int) -> None:
    """Refuse to keep sentences that are not there.

    Raises:
        ValueError: they are not (n_kept,), or one is none of the sentences.
        TypeError: they are no integers.
    """
    _check_indices(sentences, n_sentences, "sentences", "(n_kept,)", 1)


def check_from_here(cache: "KeyValueCache") -> None:
    """Begin a step, also after one that was broken off: no attention was asked yet."""
    cache.updated = set()


def check_first_call(cache: "KeyValueCache", attention: MultiHeadAttention) -> None:
    """Note that an attention stores keys and values; refuse its second call in a step.

    Raises:
        ValueError: it has stored some in this step before.
    """
    if attention in cache.updated:
        raise ValueError(
            "an attention was asked twice in one step: its two sets of keys and "
            "values can't be told apart"
        )
    cache.updated.add(attention)


def check_every_layer(cache: "KeyValueCache", layers: Collection[Any]) -> None:
    """Refuse a step in which a layer attended without the cache: it forgot the past.

    Args:
        cache: that the step has read and filled.
        layers: of the decoder.

    Raises:
        ValueError: fewer attentions of one kind have used the cache than there are
            layers.
    """
    n_used = min(len(cache.updated), len(cache.source.kept))
    if n_used < len(layers):
        raise ValueError(
            f"{n_used} of {len(layers)} layers used the cache: an attention that "
            "leaves it out forgets all earlier tokens"
        )


def check_truncation(length: int, n_read: int) -> None:
    """Refuse to keep more tokens than were read, or fewer than none.

    Raises:
        ValueError: length is not between 0 and n_read.
    """
    if not 0 <= length <= n_read:
        raise ValueError(
            f"the cache holds {n_read} tokens and cannot be truncated to {length}"
        )


def _check_indices(
    chosen: Tensor, n: int, name: str, shape: str, n_dimensions: int
) -> None:
    check_tensors(**{name: chosen})
    if chosen.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must be integers of 32 or 64 bits, not {chosen.dtype}")
    if chosen.dim() != n_dimensions:
        raise ValueError(f"{name} must be {shape}, not {tuple(chosen.shape)}")
    wrong = (chosen < 0) | (chosen >= n)
    if wrong.any():
        raise ValueError(
            f"{name} must be from 0 to {n - 1}, not {int(chosen[wrong][0])}"
        )
