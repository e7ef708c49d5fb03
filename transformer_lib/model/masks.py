"""Masks say which query may attend to which key: boolean, True = may attend.

Every mask of this library broadcasts to `(batch, n_heads, q_len, k_len)`, rows are
queries and columns are keys, and masks are joined with `&`:

    encoder self-attention     padding_mask(src, pad_id)
    decoder self-attention     padding_mask(tgt_in, pad_id) & causal_mask(tgt_len)
    cross-attention            padding_mask(src, pad_id)

Other libraries mean other things by a mask; `convert_mask` translates.
"""

import torch
from torch import Tensor


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
