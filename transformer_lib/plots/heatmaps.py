"""Draw attention maps and masks as cells.

Queries are always rows and keys are always columns. Weights have one fixed scale
from 0 to 1, so that two pictures can be compared. Chapters import these functions
from transformer_lib.plotting, which also holds the theme.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Patch
from numpy.typing import ArrayLike, NDArray

INK, LINE, HIDDEN, SKY = "#1F2933", "#CBD2D9", "#ECEFF1", "#56B4E9"
MAX_WRITTEN_CELLS = 100  # more numbers than this would be too small to read

_WEIGHTS = LinearSegmentedColormap.from_list(
    "weights", ["#FFFFFF", "#CFE3F3", "#7DB4DC", "#2878B5", "#08306B"]
)
_MASK = ListedColormap([HIDDEN, SKY])
_SIGNS = ("\N{MULTIPLICATION SIGN}", "\N{CHECK MARK}")  # hidden, may attend

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


def plot_attention(
    weights: ArrayLike,
    q_tokens: Tokens,
    k_tokens: Tokens,
    title: str | None = None,
    annotate: bool | None = None,
) -> Figure:
    """Draw one attention map.

    Args:
        weights: (q_len, k_len), each in 0..1.
        q_tokens: q_len names for the rows.
        k_tokens: k_len names for the columns.
        title: text above the map.
        annotate: write the number into each cell; None does so in small maps.

    Raises:
        ValueError: wrong rank, other counts of tokens, or a weight outside 0..1.
    """
    array = as_array(weights, 2, "weights")
    figure = _draw_weights(array[None], q_tokens, k_tokens, [title or ""], cell=0.42)
    small = array.size <= MAX_WRITTEN_CELLS
    if small if annotate is None else annotate:
        write_numbers(figure.axes[0], array)
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
        titles: n_heads titles; None counts "head 0", "head 1", ...

    Raises:
        ValueError: wrong rank, other counts of tokens or titles, or a weight
            outside 0..1.
    """
    array = as_array(weights, 3, "weights")
    if titles is None:
        titles = [f"head {index}" for index in range(len(array))]
    if len(titles) != len(array):
        raise ValueError(f"{len(array)} heads, but {len(titles)} titles")
    return _draw_weights(array, q_tokens, k_tokens, titles, cell=0.3)


def plot_mask(
    mask: ArrayLike, q_tokens: Tokens, k_tokens: Tokens, title: str | None = None
) -> Figure:
    """Draw one boolean mask (q_len, k_len), ticked where the query may attend."""
    return plot_masks({title or "": mask}, q_tokens, k_tokens)


def plot_masks(
    masks: Mapping[str, ArrayLike],
    q_tokens: Tokens | Mapping[str, Tokens],
    k_tokens: Tokens | Mapping[str, Tokens],
) -> Figure:
    """Draw boolean masks side by side, each under its name.

    Args:
        masks: name -> (q_len, k_len), boolean, True where the query may attend.
        q_tokens: names for the rows: one list for all masks, or name -> list.
        k_tokens: names for the columns, in the same way.

    Raises:
        TypeError: a mask is not boolean.
        ValueError: wrong rank, or other counts of tokens.
    """
    panels = []
    for name, mask in masks.items():
        if str(mask.dtype).removeprefix("torch.") != "bool":
            raise TypeError(f"mask {name!r} must be boolean, not {mask.dtype}")
        rows = q_tokens[name] if isinstance(q_tokens, Mapping) else q_tokens
        columns = k_tokens[name] if isinstance(k_tokens, Mapping) else k_tokens
        panels.append((as_array(mask, 2, f"mask {name!r}"), rows, columns, name))
    figure = _draw_panels(panels, _MASK, cell=0.3)
    for axes, (array, *_) in zip(figure.axes, panels, strict=True):
        for (row, column), attends in np.ndenumerate(array):
            axes.text(column, row, _SIGNS[int(attends)], ha="center", va="center")
    meanings = ((SKY, f"{_SIGNS[1]} may attend"), (HIDDEN, f"{_SIGNS[0]} hidden"))
    figure.legend(
        handles=[Patch(facecolor=c, edgecolor=INK, label=text) for c, text in meanings],
        loc="outside lower center",
        ncols=2,
    )
    return figure


def _draw_weights(
    weights: NDArray[np.float64],
    q_tokens: Tokens,
    k_tokens: Tokens,
    titles: Sequence[str],
    cell: float,
) -> Figure:
    """Draw (n_maps, q_len, k_len) with one color bar for all."""
    check_weights(weights)
    panels = [(m, q_tokens, k_tokens, t) for m, t in zip(weights, titles, strict=True)]
    figure = _draw_panels(panels, _WEIGHTS, cell)
    image = figure.axes[0].images[0]
    figure.colorbar(image, ax=list(figure.axes), label="attention weight", shrink=0.9)
    return figure


def _draw_panels(
    panels: list[tuple[NDArray[np.float64], Tokens, Tokens, str]],
    colors: Colormap,
    cell: float,
) -> Figure:
    """Draw (array, q_tokens, k_tokens, title) panels; a cell has so many inches."""
    width = height = 1.6
    for array, q_tokens, k_tokens, _ in panels:
        check_tokens(array.shape, q_tokens, k_tokens)
        side = min(cell, 5.4 / max(array.shape))
        labels = max(map(len, q_tokens)), max(map(len, k_tokens))
        width = max(width, side * array.shape[1] + 0.08 * labels[0] + 0.5)
        height = max(height, side * array.shape[0] + 0.06 * labels[1] + 0.9)
    n_columns = min(len(panels), max(1, int(7.4 // width)))
    n_rows = math.ceil(len(panels) / n_columns)
    size = (max(width * n_columns, 2.4) + 0.8, height * n_rows)
    figure, grid = plt.subplots(
        n_rows, n_columns, figsize=size, squeeze=False, layout="compressed"
    )
    for axes, panel in zip_longest(grid.flat, panels):
        if panel is None:
            axes.remove()
        else:
            _draw_cells(axes, *panel, colors)
    return figure


def _draw_cells(
    axes: Axes,
    array: NDArray[np.float64],
    q_tokens: Tokens,
    k_tokens: Tokens,
    title: str,
    colors: Colormap,
) -> AxesImage:
    """Draw (q_len, k_len): queries down the side, keys along the top."""
    image = axes.imshow(array, cmap=colors, vmin=0, vmax=1, interpolation="nearest")
    axes.set_title(title)
    axes.spines[:].set_visible(False)
    token_ticks(axes, q_tokens, k_tokens)
    return image


def token_ticks(axes: Axes, q_tokens: Tokens, k_tokens: Tokens) -> None:
    """Write the queries down the side and the keys along the top of the cells."""
    slanted = max(map(len, k_tokens)) > 3
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(range(len(k_tokens)), k_tokens, rotation=45 if slanted else 0)
    if slanted:
        plt.setp(axes.get_xticklabels(), ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(q_tokens)), q_tokens)
    axes.set(xlabel="key", ylabel="query")
    axes.set_xticks(np.arange(len(k_tokens) - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(len(q_tokens) - 1) + 0.5, minor=True)
    axes.tick_params(which="both", length=0)
    axes.grid(True, which="minor", color=LINE, linewidth=0.6)


def write_numbers(axes: Axes, array: NDArray[np.float64]) -> None:
    """Write each number into its cell, black or white, whichever can be read."""
    colors = axes.images[0].to_rgba(np.ma.masked_invalid(array))[..., :3]
    linear = np.where(
        colors < 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4
    )
    light = linear @ [0.2126, 0.7152, 0.0722] > 0.179  # here both contrasts are 4.6 : 1
    for (row, column), value in np.ndenumerate(array):
        text = f"{value.round(2) + 0.0:.2f}"  # adding 0 turns -0.00 into 0.00
        color = "black" if light[row, column] else "white"
        axes.text(column, row, text, ha="center", va="center", size=8, color=color)
