"""Draw lines, bars and histograms.

Lines differ in their dashes and bars in their hatching, never in their color alone.
Up to five lines are named where they end; a legend names more, and groups of bars.
"""

import textwrap
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from transformer_lib.plots.arrays import as_array
from transformer_lib.plots.numbers import number_ticks, written

_HATCHES = ("", "//", "..", "xx", "--", "oo")
_WIDE = (6.8, 3.2)  # inches: as wide as a page's text
_NAMED = 5  # lines that are named where they end
_LETTERS = 16  # of a line of such a name
_LINE = 0.07  # its height, as a share of the axes
_SAME = 0.01  # so close, two ends are the same


def plot_lines(
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
) -> Figure:
    """Draw curves over the same x, each with a color and dashes of its own.

    Args:
        x: (n_points,)
        curves: name -> (n_points,)
        x_label: what x measures, with its unit.
        y_label: what the curves measure, with its unit.
        log_x: use a logarithmic x axis.
        log_y: use a logarithmic y axis.
        bands: name of a curve -> both edges of an area around it, each (n_points,).

    Raises:
        ValueError: a value is not finite.
    """
    x = as_array(x, 1, "x")
    arrays = {name: as_array(y, 1, f"curve {name!r}") for name, y in curves.items()}
    figure, axes = plt.subplots(figsize=_WIDE)
    for name, y in arrays.items():
        mark = "o" if len(x) <= 12 else None
        [line] = axes.plot(x, y, label=name, marker=mark, markersize=4)
        if bands and name in bands:
            low, high = (as_array(edge, 1, f"band {name!r}") for edge in bands[name])
            axes.fill_between(x, low, high, color=line.get_color(), alpha=0.2, lw=0)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    axes.margins(x=0.02)
    axes.grid(True)
    number_ticks(axes, x.tolist(), log_x, log_y)
    if len(arrays) > 1:
        name_lines(axes)
    return figure


def name_lines(axes: Axes) -> None:
    """Write the name of each line where it ends, at the right.

    More than five lines get a legend, and so do those that end in the same place.

    Args:
        axes: with all lines drawn, each with its label.
    """
    lines, labels = axes.get_legend_handles_labels()
    lines = [line for line in lines if isinstance(line, Line2D)]
    ends = [(line.get_xdata()[-1], line.get_ydata()[-1]) for line in lines]
    axes.autoscale_view()
    to_axes = axes.transData - axes.transAxes
    heights_of_ends = [to_axes.transform(end)[1] for end in ends]
    if len(lines) > _NAMED or np.diff(sorted(heights_of_ends)).min() < _SAME:
        axes.legend()
        return
    names = [textwrap.fill(label, _LETTERS) for label in labels]
    heights = [_LINE * (name.count("\n") + 1) for name in names]
    places = _apart(heights_of_ends, heights)
    for line, name, end, place in zip(lines, names, ends, places, strict=True):
        color, dashes = line.get_color(), line.get_linestyle()
        lead = {"arrowstyle": "-", "color": color, "linestyle": dashes}
        lead |= {"relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 0}
        axes.annotate(
            name, end, (1.05, place), textcoords="axes fraction", va="center",
            color=color, fontsize=9, arrowprops=lead,
        )  # fmt: skip


def _apart(wanted: Sequence[float], heights: Sequence[float]) -> np.ndarray:
    """Centers as near as can be to those wanted, so that no two names overlap."""
    order = np.argsort(wanted, kind="stable")
    tall = np.asarray(heights)[order]
    free = np.asarray(wanted)[order] - (
        tall.cumsum() - tall / 2
    )  # if none had a height
    up, down = np.maximum.accumulate(free), np.minimum.accumulate(free[::-1])[::-1]
    places = np.empty(len(order))
    places[order] = (up + down) / 2 + (tall.cumsum() - tall / 2)
    return places


def plot_bars(
    labels: Sequence[str],
    values: ArrayLike | Mapping[str, ArrayLike],
    x_label: str,
    y_label: str,
) -> Figure:
    """Draw one bar a label, or a group of bars a label where values has names.

    Args:
        labels: n_labels names.
        values: (n_labels,), or name -> (n_labels,).
        x_label: what the labels name.
        y_label: what the bars measure, with its unit.

    Raises:
        ValueError: another count of values than of labels.
    """
    groups = values if isinstance(values, Mapping) else {"": values}
    arrays = {name: as_array(each, 1, "values") for name, each in groups.items()}
    for array in arrays.values():
        if len(array) != len(labels):  # one value would be drawn at every label
            raise ValueError(f"{len(labels)} labels, but {len(array)} values")
    n_bars = len(labels) * len(arrays)
    figure, axes = plt.subplots(figsize=(min(_WIDE[0], 2 + 0.5 * n_bars), _WIDE[1]))
    width = 0.8 / len(arrays)
    for index, (name, array) in enumerate(arrays.items()):
        center = np.arange(len(labels)) + (index + 0.5) * width - 0.4
        hatch = _HATCHES[index % len(_HATCHES)]
        bars = axes.bar(center, array, width * 0.94, label=name, hatch=hatch)
        if n_bars <= 16:
            axes.bar_label(bars, fmt=written, padding=2, fontsize=8)
    axes.set(xlabel=x_label, ylabel=y_label)
    number_ticks(axes, [], log_x=False, log_y=False)
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

    Raises:
        ValueError: a value is not finite.
    """
    arrays = {name: as_array(each, 1, name) for name, each in samples.items()}
    edges = np.histogram_bin_edges(np.concatenate(list(arrays.values())), n_bins)
    figure, axes = plt.subplots(figsize=(_WIDE[0], 2.6))
    for name, array in arrays.items():
        shares = np.histogram(array, edges)[0] / len(array)
        outline = np.concatenate([[0], shares.repeat(2), [0]])
        [line] = axes.plot(edges.repeat(2), outline, label=name)
        if len(arrays) > 1:  # named at the right slope, which is nobody else's
            slope = np.flatnonzero(shares >= 0.6 * shares.max())[-1] + 1
            at = edges[slope], 0.6 * shares.max()
            right = {"textcoords": "offset points", "color": line.get_color()}
            axes.annotate(name, at, (5, 2), fontsize=9, **right)
    axes.set(xlabel=x_label, ylabel="share of values per bin", ylim=(0, None))
    axes.grid(True)
    number_ticks(axes, [], log_x=False, log_y=False)
    return figure
