"""Draw figures in the book's one theme; every function returns its Figure.

Colors can be told apart with any color vision, and never carry a meaning alone:
lines differ in their dashes, bars in their hatching, cells hold signs or numbers.
"""

import sys
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from transformer_lib.plots.heatmaps import (
    HIDDEN,
    INK,
    MAX_WRITTEN_CELLS,
    as_array,
    check_tokens,
    plot_attention,
    plot_attention_heads,
    plot_mask,
    plot_masks,
    token_ticks,
    write_numbers,
)

__all__ = [
    "plot_attention",
    "plot_attention_heads",
    "plot_bars",
    "plot_histograms",
    "plot_lines",
    "plot_mask",
    "plot_masks",
    "plot_matrix",
    "plot_scores",
    "use_book_theme",
]

# Okabe and Ito's palette: blue, vermilion, green, purple, orange, black.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000")
_SIGNED = LinearSegmentedColormap.from_list(
    "signed",
    ["#8C3B00", "#D55E00", "#F6C9AC", "#FFFFFF", "#A9CFE6", "#0072B2", "#003B5C"],
).with_extremes(bad=HIDDEN)
_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1)), (0, (3, 1)))
_HATCHES = ("", "//", "..", "xx", "--", "oo")


def use_book_theme() -> None:
    """Set the fonts, sizes and colors of every later figure, once a notebook."""
    plt.rcParams.update(
        {
            "figure.dpi": 100,
            "figure.figsize": (6.0, 3.6),
            "figure.constrained_layout.use": True,
            "font.family": "DejaVu Sans",  # comes with matplotlib: same everywhere
            "font.size": 10,
            "axes.titlesize": 11,
            "text.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=_DASHES),
            "grid.color": "#E4E7EB",
            "hatch.color": "white",
            "legend.edgecolor": "none",
            "lines.linewidth": 1.8,
        }
    )
    if getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)():
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        # Without a version stamp, the same picture is the same file.
        kept = {"metadata": {"Software": None}, "pil_kwargs": {"optimize": True}}
        set_matplotlib_formats("png", **kept)


def plot_matrix(
    matrix: ArrayLike,
    title: str | None = None,
    row_label: str = "row",
    column_label: str = "column",
    unit: str = "value",
    row_names: Sequence[str] | None = None,
) -> Figure:
    """Draw a matrix of signed numbers; zero is white, the limits are symmetric.

    Args:
        matrix: (n_rows, n_columns). NaN and infinities are gray and written out.
        title: text above the matrix.
        row_label: what the rows count.
        column_label: what the columns count.
        unit: label of the color bar: the quantity and its unit.
        row_names: n_rows names for the rows, such as tokens; None numbers them.

    Raises:
        ValueError: wrong rank, or another count of names than of rows.
    """
    array = as_array(matrix, 2, "matrix")
    n_rows, n_columns = array.shape
    if row_names is not None and len(row_names) != n_rows:
        raise ValueError(f"{n_rows} rows, but {len(row_names)} row_names")
    finite = np.where(np.isfinite(array), array, np.nan)
    limit = np.nanmax(np.abs(finite), initial=0.0) or 1.0
    width = min(max(0.42 * n_columns + 2, 4), 7)
    height = min(max(0.3 * n_rows + 1.1, 2), 4.4)
    figure, axes = plt.subplots(figsize=(width, height))
    image = axes.imshow(finite, cmap=_SIGNED, vmin=-limit, vmax=limit, aspect="auto")
    if array.size <= MAX_WRITTEN_CELLS:
        write_numbers(axes, array)
    axes.set(title=title or "", xlabel=column_label, ylabel=row_label)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)
    if row_names is not None:
        axes.set_yticks(range(n_rows), row_names)
    figure.colorbar(image, ax=axes, label=unit)
    return figure


def plot_scores(
    scores: ArrayLike,
    q_tokens: Sequence[str],
    k_tokens: Sequence[str],
    title: str | None = None,
    unit: str = "score",
) -> Figure:
    """Draw scores before the softmax, laid out as an attention map.

    Args:
        scores: (q_len, k_len). Hidden scores, -infinity, are gray and written out.
        q_tokens: q_len names for the rows.
        k_tokens: k_len names for the columns.
        title: text above the map.
        unit: label of the color bar.

    Raises:
        ValueError: wrong rank, or other counts of tokens.
    """
    array = as_array(scores, 2, "scores")
    check_tokens(array.shape, q_tokens, k_tokens)
    figure = plot_matrix(scores, title, "query", "key", unit)
    token_ticks(figure.axes[0], q_tokens, k_tokens)
    return figure


def plot_lines(
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
) -> Figure:
    """Draw curves over the same x, each with a color and dashes of its own.

    Args:
        x: (n_points,)
        curves: name -> (n_points,)
        x_label: what x measures, with its unit.
        y_label: what the curves measure, with its unit.
        log_x: use a logarithmic x axis.
        log_y: use a logarithmic y axis.

    Raises:
        ValueError: a curve and x differ in length.
    """
    x = as_array(x, 1, "x")
    arrays = {name: as_array(y, 1, f"curve {name!r}") for name, y in curves.items()}
    for name, y in arrays.items():
        if len(y) != len(x):
            raise ValueError(f"x has {len(x)} points, but curve {name!r} has {len(y)}")
    figure, axes = plt.subplots()
    for name, y in arrays.items():
        axes.plot(x, y, label=name, marker="o" if len(x) <= 12 else None, markersize=4)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    axes.grid(True)
    if len(arrays) > 1:
        axes.legend()
    return figure


def plot_bars(
    labels: Sequence[str],
    values: ArrayLike | Mapping[str, ArrayLike],
    x_label: str,
    y_label: str,
    log_y: bool = False,
) -> Figure:
    """Draw one bar a label, or a group of bars a label where values has names.

    Args:
        labels: n_labels names.
        values: (n_labels,), or name -> (n_labels,).
        x_label: what the labels name.
        y_label: what the bars measure, with its unit.
        log_y: use a logarithmic y axis.

    Raises:
        ValueError: another count of values than of labels.
    """
    groups = values if isinstance(values, Mapping) else {"": values}
    arrays = {name: as_array(each, 1, "values") for name, each in groups.items()}
    for array in arrays.values():
        if len(array) != len(labels):
            raise ValueError(f"{len(labels)} labels, but {len(array)} values")
    figure, axes = plt.subplots()
    width = 0.8 / len(arrays)
    for index, (name, array) in enumerate(arrays.items()):
        center = np.arange(len(labels)) + (index + 0.5) * width - 0.4
        hatch = _HATCHES[index % len(_HATCHES)]
        bars = axes.bar(center, array, width * 0.94, label=name, hatch=hatch)
        if len(labels) * len(arrays) <= 16:
            axes.bar_label(bars, fmt="%.3g", padding=2, fontsize=8)
    axes.set(xlabel=x_label, ylabel=y_label, yscale="log" if log_y else "linear")
    axes.set_xticks(range(len(labels)), labels)
    axes.margins(y=0.1)
    if len(arrays) > 1:
        axes.legend()
    return figure


def plot_histograms(
    samples: Mapping[str, ArrayLike], x_label: str, n_bins: int = 40
) -> Figure:
    """Draw the distributions of several samples over the same bins.

    Args:
        samples: name -> (n_samples,); the samples may differ in length.
        x_label: what the samples measure, with its unit.
        n_bins: bins between the smallest and the largest value.
    """
    arrays = {name: as_array(each, 1, name) for name, each in samples.items()}
    edges = np.histogram_bin_edges(np.concatenate(list(arrays.values())), n_bins)
    figure, axes = plt.subplots()
    for name, array in arrays.items():
        shares = np.histogram(array, edges)[0] / len(array)
        outline = np.concatenate([[0], shares.repeat(2), [0]])
        axes.plot(edges.repeat(2), outline, label=name)
    axes.set(xlabel=x_label, ylabel="share of values per bin", ylim=(0, None))
    axes.grid(True)
    if len(arrays) > 1:
        axes.legend()
    return figure
