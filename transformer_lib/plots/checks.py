"""Checks of what plots and charts are given."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Tokens = Sequence[str]


def as_array(values: ArrayLike, ndim: int, name: str) -> NDArray[np.float64]:
    """Return values as a float array; raise ValueError unless it has ndim axes."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    array = np.asarray(values, dtype=float)
    if array.ndim != ndim or 0 in array.shape:
        shape = tuple(array.shape)
        raise ValueError(f"{name} must have {ndim} axes and no empty one, not {shape}")
    return array


def check_tokens(shape: tuple[int, ...], q_tokens: Tokens, k_tokens: Tokens) -> None:
    """Raise ValueError unless shape ends in (q_len, k_len)."""
    q_len, k_len = shape[-2:]
    if len(q_tokens) != q_len:
        raise ValueError(f"{q_len} rows (queries), but {len(q_tokens)} q_tokens")
    if len(k_tokens) != k_len:
        raise ValueError(f"{k_len} columns (keys), but {len(k_tokens)} k_tokens")


def check_weights(weights: NDArray[np.float64]) -> None:
    """Raise ValueError unless all weights lie in 0..1, up to rounding."""
    low, high = weights.min(), weights.max()
    if not (low >= -1e-6 and high <= 1 + 1e-6):  # written so that NaN fails too
        raise ValueError(f"weights must lie in 0..1, but go from {low:g} to {high:g}")
