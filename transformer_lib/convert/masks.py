"""Masks of other libraries, translated: `convert_mask`."""

from typing import Literal, get_args

import torch
from torch import Tensor

from transformer_lib.model.checks import check_kind, check_tensors

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
        ValueError: an unknown convention, or values that `source` does not have: an
            additive mask may hold 0 and negative values too large to add only.
        TypeError: the mask's type does not fit `source`.
    """
    check_conventions(source, target)
    check_values(mask, source)
    check_floating(dtype)
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


def check_conventions(*names: str) -> None:
    """Refuse an unknown convention."""
    for name in names:
        if not isinstance(name, str) or name not in get_args(MaskConvention):
            raise ValueError(
                f"convention {name!r} is unknown; expected one of "
                f"{', '.join(get_args(MaskConvention))}"
            )


def check_floating(dtype: torch.dtype) -> None:
    """Refuse a type that has no infinity."""
    check_kind(torch.dtype, dtype=dtype)
    if not dtype.is_floating_point:
        raise TypeError(f"dtype must be a floating-point type, not {dtype}")


def check_values(mask: Tensor, source: MaskConvention) -> None:
    """Refuse a mask of a type, or with values, that its convention does not have."""
    check_tensors(mask=mask)
    if source in ("attend", "ignore"):
        if mask.dtype != torch.bool:
            raise TypeError(f"a mask of kind {source!r} is boolean, not {mask.dtype}")
    elif source == "additive":
        if not mask.is_floating_point():
            raise TypeError(f"an additive mask is floating-point, not {mask.dtype}")
        # Anything below -1e4 leaves a weight of exactly 0 in float32 after softmax.
        if not ((mask == 0) | (mask <= -1e4)).all():
            raise ValueError(
                "an additive mask holds 0 where a query may attend and -infinity (or "
                "at most -1e4) where not; a value in between is a bias, not a mask"
            )
    elif mask.is_floating_point() or mask.is_complex():
        raise TypeError(f"a mask of kind {source!r} holds integers, not {mask.dtype}")
    elif not ((mask == 0) | (mask == 1)).all():
        raise ValueError(f"a mask of kind {source!r} holds only 0 and 1")
