"""Masks say which query may attend to which key: boolean, True = may attend.

Every mask of this library broadcasts to `(batch, n_heads, q_len, k_len)`, rows are
queries and columns are keys, and masks are joined with `&`:

    encoder self-attention     padding_mask(src, pad_id)
    decoder self-attention     padding_mask(tgt_in, pad_id) & causal_mask(tgt_len)
    cross-attention            padding_mask(src, pad_id)

Other libraries mean other things by a mask; `convert_mask` translates.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

MaskConvention = Literal["attend", "ignore", "additive", "attend_byte", "ignore_byte"]


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Hide padding: no query may attend to a key that is a padding token.

    Args:
        ids: (batch, k_len), token ids.
        pad_id: the id of the padding token.

    Returns:
        (batch, 1, 1, k_len), boolean: the same for every head and every query.

    Raises:
        ValueError: ids is not two-dimensional, or a sequence is empty.
    """
    if ids.dim() != 2:
        raise ValueError(
            f"ids must have 2 dimensions (batch, k_len), not {ids.dim()}: "
            f"shape {tuple(ids.shape)}"
        )
    if ids.size(1) == 0:
        raise ValueError("ids has length 0, but a sequence needs at least 1 token")
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, device: torch.device | str | None = None) -> Tensor:
    """Hide the future: query i may attend to keys 0 to i (section 3.2.3 of the paper).

    Args:
        length: number of positions, at least 1.
        device: where the mask is made; the default device if None.

    Returns:
        (length, length), boolean: True on and below the diagonal.

    Raises:
        ValueError: length is below 1.
    """
    if length < 1:
        raise ValueError(f"length must be at least 1, not {length}")
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def check_mask(mask: Tensor, scores_shape: tuple[int, ...], name: str = "mask") -> None:
    """Refuse a mask that cannot be used on scores of this shape.

    Args:
        mask: boolean, broadcastable to scores_shape.
        scores_shape: (..., q_len, k_len)
        name: what the message calls the mask.

    Raises:
        TypeError: mask is not boolean.
        ValueError: mask does not broadcast to scores_shape.
    """
    if mask.dtype != torch.bool:
        raise TypeError(
            f"{name} must be boolean (True = may attend), not {mask.dtype}; "
            "convert_mask translates other conventions"
        )
    sizes = zip(reversed(mask.shape), reversed(scores_shape), strict=False)
    fits = all(size in (1, wanted) for size, wanted in sizes)
    if mask.dim() > len(scores_shape) or not fits:
        raise ValueError(
            f"{name} of shape {tuple(mask.shape)} does not broadcast to the scores' "
            f"shape {tuple(scores_shape)} (..., q_len, k_len)"
        )


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
    for name in (source, target):
        if name not in get_args(MaskConvention):
            raise ValueError(
                f"convention {name!r} is unknown; expected one of "
                f"{', '.join(get_args(MaskConvention))}"
            )
    attend = _read(mask, source)
    if target == "attend":
        return attend
    if target == "ignore":
        return ~attend
    if target == "attend_byte":
        return attend.long()
    if target == "ignore_byte":
        return (~attend).to(torch.uint8)
    hidden = torch.zeros(attend.shape, dtype=dtype, device=mask.device)
    return hidden.masked_fill(~attend, float("-inf"))


def _read(mask: Tensor, source: MaskConvention) -> Tensor:
    """Return the mask as boolean, True = may attend."""
    if source in ("attend", "ignore"):
        if mask.dtype != torch.bool:
            raise TypeError(f"a mask of kind {source!r} is boolean, not {mask.dtype}")
        return mask.clone() if source == "attend" else ~mask
    if source == "additive":
        if not mask.is_floating_point():
            raise TypeError(f"an additive mask is floating-point, not {mask.dtype}")
        # Anything below -1e4 leaves a weight of exactly 0 in float32 after softmax.
        if not ((mask == 0) | (mask <= -1e4)).all():
            raise ValueError(
                "an additive mask holds 0 where a query may attend and -infinity (or "
                "at most -1e4) where not; a value in between is a bias, not a mask"
            )
        return mask == 0
    if mask.is_floating_point() or mask.is_complex():
        raise TypeError(f"a mask of kind {source!r} holds integers, not {mask.dtype}")
    if not ((mask == 0) | (mask == 1)).all():
        raise ValueError(f"a mask of kind {source!r} holds only 0 and 1")
    return mask == 1 if source == "attend_byte" else mask == 0
