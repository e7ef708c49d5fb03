"""What a cache of keys and values refuses."""

from collections.abc import Collection
from typing import Any

from transformer_lib.model.attention import MultiHeadAttention


def check_cache_sizes(n_beams: int, capacity: int) -> None:
    """Refuse a cache without beams or room.

    Raises:
        ValueError: a number is below 1.
    """
    if n_beams < 1 or capacity < 1:
        raise ValueError(
            f"n_beams and capacity must be at least 1, not {n_beams} and {capacity}"
        )


def check_rows(n_rows: int, made_for: int) -> None:
    """Refuse other rows than those that a cache was made for.

    Raises:
        ValueError: the numbers differ.
    """
    if n_rows != made_for:
        raise ValueError(
            f"{n_rows} rows are to be decoded, but the cache was made for {made_for}"
        )


def check_first_call(
    attention: MultiHeadAttention, updated: Collection[MultiHeadAttention]
) -> None:
    """Refuse an attention that has stored keys and values in this step before.

    Raises:
        ValueError: it is among those that have.
    """
    if attention in updated:
        raise ValueError(
            "an attention was asked twice in one step: its two sets of keys and "
            "values can't be told apart"
        )


def check_every_layer(
    updated: Collection[MultiHeadAttention],
    kept: Collection[MultiHeadAttention],
    layers: Collection[Any],
) -> None:
    """Refuse a step in which a layer attended without the cache: it forgot the past.

    Args:
        updated: self-attentions that stored keys and values in this step.
        kept: cross-attentions whose keys and values are stored.
        layers: of the decoder.

    Raises:
        ValueError: there are fewer of one kind than layers.
    """
    n_used = min(len(updated), len(kept))
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
