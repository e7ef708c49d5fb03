"""Variants of other implementations, to be tried out on a model of the library."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.embeddings import Embeddings
from transformer_lib.model.layers import FeedForward, LayerNorm, SublayerConnection


def _share_scale(part: MultiHeadAttention) -> None:
    for query, key in zip(
        part.q_proj.parameters(), part.k_proj.parameters(), strict=True
    ):
        query.data *= 3
        key.data /= 3


def _other_epsilon(part: LayerNorm) -> None:
    part.eps = 1e-6


def _unbiased_variance(part: LayerNorm) -> None:
    part.gain.data *= math.sqrt(1 - 1 / part.gain.numel())


def _gelu(part: FeedForward) -> None:
    part.activation = nn.GELU()


def _sines_first(part: Embeddings) -> None:
    part.positions.register_forward_hook(
        lambda _module, _inputs, waves: torch.cat(
            [waves[..., 0::2], waves[..., 1::2]], dim=-1
        )
    )


def _half_of_width(part: MultiHeadAttention) -> None:
    part.q_proj.weight.data *= math.sqrt(part.d_head) / (part.d_model / 2)


def _no_scale(part: Embeddings) -> None:
    part.scale = 1.0


def _norm_first(part: SublayerConnection) -> None:
    part.norm_first = True


# What is changed -> the kind of part, and what happens to each part of that kind.
VARIANTS: dict[str, tuple[type[nn.Module], Callable[[Any], None]]] = {
    "queries x 3, keys / 3": (MultiHeadAttention, _share_scale),
    "epsilon 1e-6": (LayerNorm, _other_epsilon),
    "unbiased variance": (LayerNorm, _unbiased_variance),
    "divisor d_model / 2": (MultiHeadAttention, _half_of_width),
    "GELU": (FeedForward, _gelu),
    "sines first": (Embeddings, _sines_first),
    "unscaled embeddings": (Embeddings, _no_scale),
    "norm first": (SublayerConnection, _norm_first),
}


def apply_variant(model: nn.Module, variant: str) -> None:
    """Change every part of the model that a variant is about, in place.

    Args:
        model: a model of the library.
        variant: a key of VARIANTS.

    Raises:
        ValueError: the variant is unknown, or the model has no part that it is about.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {list(VARIANTS)}, not {variant!r}")
    kind, change = VARIANTS[variant]
    parts = [part for part in model.modules() if isinstance(part, kind)]
    if not parts:
        raise ValueError(f"{type(model).__name__} holds no {kind.__name__} to change")
    for part in parts:
        change(part)
