"""Draw attention maps, masks and matrices as cells.

Queries are always rows and keys are always columns. Weights have one fixed scale
from 0 to 1, so that two pictures can be compared.
"""

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import ArrayLike, NDArray

from transformer_lib.plots.arrays import as_array
from transformer_lib.plots.palette import LIGHT

Tokens = Sequence[str]
MAX_WRITTEN_CELLS = 100  # more numbers than this would be too small to read
EQUALLY_READABLE = 0.665  # the weight whose cell is as far from black as from white

_WEIGHTS = LinearSegmentedColormap.from_list("weights", LIGHT.weights)
_SIGNED = LinearSegmentedColormap.from_list("signed", LIGHT.signed)
_MASK = ListedColormap([LIGHT.hidden, LIGHT.shown])
_SIGNS = ("\N{MULTIPLICATION SIGN}", "\N{CHECK MARK}")  # hidden, may attend


def plot_attention(
    weights: ArrayLike,
    q_tokens: Tokens,
    k_tokens: Tokens,
) -> Figure:
    """Draw one attention map; a small one has the number in each cell.

    Args:
        weights: (q_len, k_len), each in 0..1.
        q_tokens: q_len names for the rows.
        k_tokens: k_len names for the columns.

    Raises:
        ValueError: wrong rank, other counts of tokens, or a weight outside 0..1.
    """
    array = as_array(weights, 2, "weights")
    figure = _draw_weights(array[None], q_tokens, k_tokens, [""], cell=0.42)
    if array.size <= MAX_WRITTEN_CELLS:
        for (row, column), value in np.ndenumerate(array):
            color = LIGHT.low if value < EQUALLY_READABLE else LIGHT.high
            place = {"ha": "center", "va": "center", "size": 8}
            figure.axes[0].text(column, row, f"{value:.2f}", color=color, **place)
    return figure


def plot_attention_heads(
    weights: ArrayLike,
    q_tokens: Tokens,
    k_tokens: Tokens,
    titles: Sequence[str] | None = None,
) -> Figure:
    """Draw the maps of all heads side by side, on one scale.

    Args:
        weights: (n_heads, q_len, k_len), each in 0..1.
        q_tokens: q_len names for the rows.
        k_tokens: k_len names for the columns.
        titles: n_heads titles; None counts "head 1", "head 2", ...

    Raises:
        ValueError: wrong rank, other counts of tokens or titles, or a weight
            outside 0..1.
    """
    array = as_array(weights, 3, "weights")
    if titles is None:
        titles = [f"head {index + 1}" for index in range(len(array))]
    return _draw_weights(array, q_tokens, k_tokens, titles, cell=0.3)


def plot_mask(
    mask: ArrayLike,
    q_tokens: Tokens,
    k_tokens: Tokens,
    title: str | None = None,
    labels: tuple[str, str] = ("query", "key"),
    meanings: tuple[str, str] = ("may attend", "hidden"),
) -> Figure:
    """Draw a boolean mask.

    Args:
        mask: (q_len, k_len), boolean, True where the query may attend.
        q_tokens: q_len names for the rows.
        k_tokens: k_len names for the columns.
        title: text above the mask.
        labels: what the rows and the columns are.
        meanings: of True and of False.

    Raises:
        TypeError: the mask is not boolean.
        ValueError: wrong rank, or other counts of tokens.
    """
    dtype = getattr(mask, "dtype", type(mask).__name__)
    if str(dtype).removeprefix("torch.") != "bool":
        raise TypeError(f"a mask must be boolean, not {dtype}")
    array = as_array(mask, 2, "mask")
    titles = [title or ""]
    figure = _draw_maps(array[None], q_tokens, k_tokens, titles, 0.3, _MASK, labels)
    for (row, column), attends in np.ndenumerate(array):
        sign = _SIGNS[int(attends)]
        figure.axes[0].text(column, row, sign, ha="center", va="center")
    patches = [
        Patch(facecolor=_MASK(value), edgecolor=LIGHT.ink, label=f"{sign} {text}")
        for value, sign, text in zip((1, 0), _SIGNS[::-1], meanings, strict=True)
    ]
    figure.legend(handles=patches, loc="outside lower center", ncols=2)
    return figure


def plot_matrix(
    matrix: ArrayLike,
    title: str | None = None,
    row_label: str = "row",
    column_label: str = "column",
) -> Figure:
    """Draw a matrix of signed numbers; zero is white, the limits are symmetric.

    Args:
        matrix: (n_rows, n_columns).
        title: text above the matrix.
        row_label: what the rows count.
        column_label: what the columns count.

    Raises:
        ValueError: wrong rank, or a number is not finite.
    """
    array = as_array(matrix, 2, "matrix")
    n_rows, n_columns = array.shape
    limit = np.abs(array).max() or 1.0
    width = min(max(0.42 * n_columns + 2, 4), 7)
    height = min(max(0.3 * n_rows + 1.1, 2), 4.4)
    figure, axes = plt.subplots(figsize=(width, height))
    image = axes.imshow(
        array,
        cmap=_SIGNED,
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        interpolation="none",
    )
    axes.set_title(title or "")
    _label(axes, row_label, column_label)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)
    figure.colorbar(image, ax=axes, label="value")
    return figure


def _draw_weights(
    weights: NDArray[np.float64],
    q_tokens: Tokens,
    k_tokens: Tokens,
    titles: Sequence[str],
    cell: float,
) -> Figure:
    """Draw (n_maps, q_len, k_len) with one color bar for all."""
    low, high = weights.min(), weights.max()
    if low < -1e-6 or high > 1 + 1e-6:  # up to rounding
        raise ValueError(f"weights must lie in 0..1, but go from {low:g} to {high:g}")
    labels = ("query", "key")
    figure = _draw_maps(weights, q_tokens, k_tokens, titles, cell, _WEIGHTS, labels)
    image = figure.axes[0].images[0]
    figure.colorbar(image, ax=list(figure.axes), label="attention weight", shrink=0.9)
    return figure


def _draw_maps(
    maps: NDArray[np.float64],
    q_tokens: Tokens,
    k_tokens: Tokens,
    titles: Sequence[str],
    cell: float,
    colors: Colormap,
    labels: tuple[str, str],
) -> Figure:
    """Draw (n_maps, q_len, k_len) side by side; a cell has so many inches at most."""
    n_maps, q_len, k_len = maps.shape
    side = min(cell, (5.4 if n_maps == 1 else 2.9) / max(q_len, k_len))
    width = max(1.4, side * k_len + 0.2)
    height = max(1.4, side * q_len + 0.06 * max(map(len, k_tokens)) + 0.9)
    n_columns = min(n_maps, max(1, int(6.6 // width)))
    n_rows = math.ceil(n_maps / n_columns)
    names = 0.08 * max(map(len, q_tokens)) + 0.3
    size = (width * n_columns + names + 0.8, height * n_rows)
    figure, grid = plt.subplots(
        n_rows, n_columns, figsize=size, squeeze=False, layout="compressed"
    )
    for axes in grid.flat[n_maps:]:
        axes.remove()
    for index, (array, title) in enumerate(zip(maps, titles, strict=True)):
        axes = grid.flat[index]
        axes.imshow(array, cmap=colors, vmin=0, vmax=1, interpolation="none")
        axes.set_title(title)
        axes.spines[:].set_visible(False)
        _label(axes, *labels)
        _token_ticks(axes, q_tokens, k_tokens)
        if index % n_columns:  # a row of maps names its rows once
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)
    return figure


def _label(axes: Axes, row_label: str, column_label: str) -> None:
    """Label both axes; the name of a role, such as "query", has the role's color."""
    for label, write in ((row_label, axes.set_ylabel), (column_label, axes.set_xlabel)):
        color = LIGHT.roles.get(label)
        write(label, **({"color": color, "weight": "bold"} if color else {}))


def _token_ticks(axes: Axes, q_tokens: Tokens, k_tokens: Tokens) -> None:
    """Write the queries down the side and the keys along the top of the cells."""
    q_len, k_len = axes.images[0].get_array().shape
    slanted = max(map(len, k_tokens)) > 3
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    # A token is no formula: "$x^2$" is five characters.
    plain = {"parse_math": False}
    axes.set_xticks(range(k_len), k_tokens, rotation=45 if slanted else 0, **plain)
    if slanted:
        plt.setp(axes.get_xticklabels(), ha="left", rotation_mode="anchor")
    axes.set_yticks(range(q_len), q_tokens, **plain)
    axes.set_xticks(np.arange(k_len - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(q_len - 1) + 0.5, minor=True)
    axes.tick_params(which="both", length=0)
    axes.grid(True, which="minor", color=LIGHT.line, linewidth=0.6)
