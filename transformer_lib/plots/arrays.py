"""What is drawn, as arrays. A plot leaves out NaN without a word."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor


def as_array(values: ArrayLike, ndim: int, name: str) -> NDArray[np.float64]:
    """Return values as a float array.

    Args:
        values: numbers, in a tensor, an array or lists.
        ndim: axes that they must have.
        name: what messages call them.

    Raises:
        ValueError: they have other axes, or one of them is not finite.
    """
    if isinstance(values, Tensor):
        values = values.detach().cpu().double()
    array = np.asarray(values, dtype=float)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes, not shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, but holds NaN or infinity")
    return array
