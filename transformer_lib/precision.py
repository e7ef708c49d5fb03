"""Precision: sums of log-probabilities need more bits than half precision has."""

import torch
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """Return x, in float32 if it has fewer bits."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
