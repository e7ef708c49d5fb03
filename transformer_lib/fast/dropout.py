"""Dropout: while training, every feature is left out with a certain probability."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_LEVELS = 2**16  # of a random number of 16 bits


class Dropout(nn.Module):
    """Set a share of all features to zero while training, and scale up the rest.

    Every feature is zeroed by chance with probability `rate`, the others are divided
    by 1 - rate, so that the expectation stays what it was (Srivastava et al. 2014).

    Args:
        rate: at least 0 and below 1.

    Raises:
        ValueError: rate is out of range.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ValueError(f"rate must be at least 0 and below 1, not {rate}")
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """(...) -> (...), the same shape; x itself in evaluation mode."""
        return dropout(x, self.rate) if self.training else x

    def extra_repr(self) -> str:
        """Show the rate when the module is printed."""
        return f"rate={self.rate}"


def dropout(x: Tensor, rate: float) -> Tensor:
    """Zero each element with probability rate, divide the others by 1 - rate.

    On a CPU, PyTorch draws one random number after the other for this, an eighth of
    the time of a training step. Here one draw of 64 bits serves four elements. The
    rate is rounded to a multiple of 2^-16, and the scale fits the rounded one.

    Args:
        x: (...)
        rate: at least 0 and below 1.

    Returns:
        (...), the shape of x.
    """
    if rate == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    dropped = min(round(rate * _LEVELS), _LEVELS - 1)  # this many of 2^16 levels
    keep = _random_levels(x.shape) >= dropped - _LEVELS // 2
    return x * (keep.to(x.dtype) * (_LEVELS / (_LEVELS - dropped)))


def _random_levels(shape: torch.Size) -> Tensor:
    """Draw integers from -2^15 to 2^15 - 1, all alike in probability."""
    draws = torch.empty(-(-shape.numel() // 4), dtype=torch.int64)
    draws.random_(-(2**63), None)  # the whole range of 64 bits
    return draws.view(torch.int16)[: shape.numel()].view(shape)
