"""Habits of other implementations: masks, small changes to layers, convolutions."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from transformer_lib import (
    Embeddings,
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    SublayerConnection,
)

MaskConvention = Literal["attend", "ignore", "additive", "attend_byte", "ignore_byte"]


def convert_mask(
    mask: Tensor,
    source: MaskConvention,
    target: MaskConvention,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Translate a mask between the conventions in use; its shape stays the same.

    | convention    | may attend | hidden    | who uses it                           |
    | ------------- | ---------- | --------- | ------------------------------------- |
    | `attend`      | True       | False     | this library, PyTorch's fused kernel  |
    | `ignore`      | False      | True      | nn.MultiheadAttention, fairseq        |
    | `additive`    | 0          | -infinity | the paper, fairseq's future mask      |
    | `attend_byte` | 1          | 0         | Hugging Face attention_mask           |
    | `ignore_byte` | 0          | 1         | fairseq before boolean tensors        |

    Args:
        mask: any shape, in the convention `source`.
        source: what the given mask means.
        target: what the returned mask shall mean.
        dtype: floating-point type of an additive result.

    Returns:
        The mask in the convention `target`: boolean, `dtype`, int64 for
        `attend_byte` or uint8 for `ignore_byte`.

    Raises:
        TypeError: a boolean mask where numbers are meant, or the other way around.
        ValueError: an additive mask holds a bias.
    """
    if (mask.dtype == torch.bool) != (source in ("attend", "ignore")):
        raise TypeError(f"a mask of kind {source} isn't {mask.dtype}")
    hidden = mask <= -1e4  # adding so much leaves a weight of 0
    if source == "additive" and not (hidden | (mask == 0)).all():
        raise ValueError("an additive mask holds 0 or -infinity only")
    attend = mask != 0 if source.startswith("attend") else mask == 0
    zeros = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    translations = {
        "attend": attend,
        "ignore": ~attend,
        "additive": zeros.masked_fill(~attend, float("-inf")),
        "attend_byte": attend.long(),
        "ignore_byte": (~attend).to(torch.uint8),
    }
    return translations[target]


def as_convolution(feed_forward: FeedForward) -> nn.Sequential:
    """Return the same network as two convolutions of kernel size 1.

    It expects positions last, as convolutions do:
    (batch, d_model, length) -> (batch, d_model, length).
    """
    convolutions = []
    for linear in (feed_forward.expand, feed_forward.contract):
        conv = nn.Conv1d(linear.in_features, linear.out_features, kernel_size=1)
        weight = linear.weight.unsqueeze(-1)  # (out, in, 1)
        conv.to(weight).load_state_dict({"weight": weight, "bias": linear.bias})
        convolutions.append(conv)
    first, second = convolutions
    return nn.Sequential(first, feed_forward.activation, feed_forward.dropout, second)


def _set(part: nn.Module, **attributes: Any) -> None:
    for name, value in attributes.items():
        setattr(part, name, value)


def _share_scale(part: MultiHeadAttention) -> None:
    for parameter in part.q_proj.parameters():
        parameter.data *= 3
    for parameter in part.k_proj.parameters():
        parameter.data /= 3


def _unbiased_variance(part: LayerNorm) -> None:
    part.gain.data *= math.sqrt(1 - 1 / part.gain.numel())


def _sines_first(part: Embeddings) -> None:
    part.positions.register_forward_hook(
        lambda _module, _inputs, waves: torch.cat(
            [waves[..., 0::2], waves[..., 1::2]], dim=-1
        )
    )


def _half_of_width(part: MultiHeadAttention) -> None:
    part.q_proj.weight.data *= math.sqrt(part.d_head) / (part.d_model / 2)


# What is changed -> the kind of part, and what happens to each part of that kind.
VARIANTS: dict[str, tuple[type[nn.Module], Callable[[Any], None]]] = {
    "queries x 3, keys / 3": (MultiHeadAttention, _share_scale),
    "epsilon 1e-6": (LayerNorm, partial(_set, eps=1e-6)),
    "unbiased variance": (LayerNorm, _unbiased_variance),
    "divisor d_model / 2": (MultiHeadAttention, _half_of_width),
    "GELU": (FeedForward, partial(_set, activation=nn.GELU())),
    "sines first": (Embeddings, _sines_first),
    "unscaled embeddings": (Embeddings, partial(_set, scale=1.0)),
    "norm first": (SublayerConnection, partial(_set, norm_first=True)),
}


def apply_variant(model: nn.Module, variant: str) -> None:
    """Change every part of the model that a variant is about, in place.

    Args:
        model: a model of the library.
        variant: a key of VARIANTS.
    """
    kind, change = VARIANTS[variant]
    for part in model.modules():
        if isinstance(part, kind):
            change(part)
