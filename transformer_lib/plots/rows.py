"""Draw a row of dots for each name: values with their uncertainty, and ratios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator
from numpy.typing import ArrayLike

from transformer_lib.plots.arrays import as_array
from transformer_lib.plots.palette import LIGHT

_MARKERS = "os^DPXv*"  # form and color tell the names apart

if TYPE_CHECKING:
    from transformer_lib.evaluation.accuracy import Accuracy


def plot_intervals(rows: Mapping[str, Accuracy], x_label: str) -> Figure:
    """Draw each accuracy as a dot on its 95 % interval, and the first one's as a band.

    Args:
        rows: name -> accuracy, from the top.
        x_label: what the shares count.
    """
    axes = _named_rows(list(rows), x_label)
    axes.axvspan(*next(iter(rows.values())).interval, color=LIGHT.band, zorder=0)
    for y, score in enumerate(rows.values()):
        axes.plot(score.interval, [y, y], "|-", color=LIGHT.series[0])
        axes.plot(score.value, y, "o", color=LIGHT.series[0], markersize=5)
    return axes.figure


def plot_spread(rows: Mapping[str, ArrayLike], x_label: str) -> Figure:
    """Draw a row of dots a name, a tick at their mean, and a band behind all.

    The band is the range of the first row: what lies inside it differs from the first
    row no more than that row's own values do from each other.

    Args:
        rows: name -> (n_values,), from the top.
        x_label: what the values measure, with its unit.

    Raises:
        ValueError: a value is not finite.
    """
    arrays = {name: as_array(v, 1, f"row {name!r}") for name, v in rows.items()}
    axes = _named_rows(list(rows), x_label)
    first = next(iter(arrays.values()))
    axes.axvspan(first.min(), first.max(), color=LIGHT.band, zorder=0)
    dots = {"color": LIGHT.series[0], "markersize": 5, "alpha": 0.7}
    mean = {"color": LIGHT.series[1], "markersize": 13, "mew": 2.4}
    for y, values in enumerate(arrays.values()):
        axes.plot(values, [y] * len(values), "o", **dots)
        axes.plot(values.mean(), y, "|", **mean)
    return axes.figure


def plot_ratios(rows: Mapping[str, Mapping[str, float]], x_label: str) -> Figure:
    """Draw a row a name, with a mark for each of its ratios, and a line at 1.

    Args:
        rows: name -> (name of the mark -> ratio), from the top. A mark may be missing
            in a row; it has the same form and color in all of them.
        x_label: what is divided by what.

    Raises:
        ValueError: a ratio is not above 0.
    """
    ratios = [ratio for marks in rows.values() for ratio in marks.values()]
    if min(ratios) <= 0:  # a logarithmic axis leaves it out
        raise ValueError(f"a ratio must be above 0, but one is {min(ratios)}")
    names = list(dict.fromkeys(name for marks in rows.values() for name in marks))
    axes = _named_rows(list(rows), x_label, above=(len(names) + 1) // 2)
    axes.axvline(1, color=LIGHT.soft, linewidth=1)
    for number, name in enumerate(names):
        heights = [y for y, marks in enumerate(rows.values()) if name in marks]
        values = [marks[name] for marks in rows.values() if name in marks]
        marker, color = _MARKERS[number % len(_MARKERS)], f"C{number}"
        axes.plot(values, heights, marker, color=color, markersize=7, label=name)
    low, high = math.floor(math.log2(min(ratios))), math.ceil(math.log2(max(ratios)))
    axes.set_xscale("log", base=2)
    axes.set_xlim(2 ** (low - 0.1), 2 ** (high + 0.1))  # so the last power has a tick
    axes.xaxis.set_major_locator(LogLocator(base=2))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.figure.legend(loc="outside upper center", ncols=2)
    return axes.figure


def _named_rows(names: Sequence[str], x_label: str, above: int = 0) -> Axes:
    """Open a figure with a row for each name, the first at the top.

    Args:
        names: of the rows.
        x_label: what is measured.
        above: rows of a legend above them.
    """
    height = 1.0 + 0.3 * (len(names) + above)
    _, axes = plt.subplots(figsize=(6.4, height))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set(xlabel=x_label)
    axes.grid(True, axis="x")
    return axes
