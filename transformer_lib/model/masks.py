"""Masks say which query may attend to which key: boolean, True = may attend.

Every mask of this library broadcasts to `(batch, n_heads, q_len, k_len)`, rows are
queries and columns are keys, and masks are joined with `&`:

    encoder self-attention     padding_mask(src, pad_id)
    decoder self-attention     padding_mask(tgt_in, pad_id) & causal_mask(tgt_len)
    cross-attention            padding_mask(src, pad_id)

Other libraries mean other things by a mask.
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
    """
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, device: torch.device | str | None = None) -> Tensor:
    """Hide the future: query i may attend to keys 0 to i (section 3.2.3 of the paper).

    Args:
        length: number of positions.
        device: where the mask is made; the default device if None.

    Returns:
        (length, length), boolean: True on and below the diagonal.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
