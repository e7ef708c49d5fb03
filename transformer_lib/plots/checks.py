"""Checks of what plots and charts are given."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from transformer_lib.model.checks import check_kind, check_tensors, check_texts

Tokens = Sequence[str]


def as_array(
    values: ArrayLike, ndim: int, name: str, finite: bool = True
) -> NDArray[np.float64]:
    """Return values as a float array.

    Args:
        values: numbers, in a tensor, an array or lists.
        ndim: axes that they must have.
        name: what messages call them.
        finite: refuse NaN and infinity, which a plot would leave out without a word.

    Raises:
        TypeError: they are no numbers.
        ValueError: they have other axes, an empty one, or one of them is not finite.
    """
    if isinstance(values, Tensor):
        check_tensors(**{name: values})
        if values.device.type == "meta" or values.is_complex():
            raise TypeError(
                f"{name} must hold real numbers, not {values.dtype} on {values.device}"
            )
        values = values.detach().cpu().double().numpy()
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":  # texts would be read as numbers, None as NaN
        raise TypeError(f"{name} must be numbers, not {values!r:.80}")
    array = array.astype(float)
    if array.ndim != ndim or 0 in array.shape:
        shape = tuple(array.shape)
        raise ValueError(f"{name} must have {ndim} axes and no empty one, not {shape}")
    if finite and not np.isfinite(array).all():
        place = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, but holds {array[place]} at {place}")
    return array


def check_tokens(shape: tuple[int, ...], q_tokens: Tokens, k_tokens: Tokens) -> None:
    """Raise ValueError unless shape ends in (q_len, k_len)."""
    check_texts("q_tokens", q_tokens)
    check_texts("k_tokens", k_tokens)
    q_len, k_len = shape[-2:]
    if len(q_tokens) != q_len:
        raise ValueError(f"{q_len} rows (queries), but {len(q_tokens)} q_tokens")
    if len(k_tokens) != k_len:
        raise ValueError(f"{k_len} columns (keys), but {len(k_tokens)} k_tokens")


def check_named(what: str, named: Mapping[str, Any]) -> None:
    """Refuse what is no mapping from names, or an empty one.

    Raises:
        TypeError: naming what it is.
        ValueError: there is nothing in it.
    """
    check_kind(Mapping, **{what: named})
    if not named:
        raise ValueError(f"{what} must name at least 1, but got 0")


def check_weights(weights: NDArray[np.float64]) -> None:
    """Raise ValueError unless all weights lie in 0..1, up to rounding."""
    low, high = weights.min(), weights.max()
    if not (low >= -1e-6 and high <= 1 + 1e-6):  # written so that NaN fails too
        raise ValueError(f"weights must lie in 0..1, but go from {low:g} to {high:g}")
