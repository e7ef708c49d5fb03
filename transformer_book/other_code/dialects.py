"""Habits of other implementations: masks, and convolutions for a linear layer."""

from typing import Literal

import torch
from torch import Tensor, nn

from transformer_lib import FeedForward

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
