"""Draw a row of dots for each name: values with their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from transformer_lib.plots.arrays import as_array
from transformer_lib.plots.palette import LIGHT

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


def _named_rows(names: Sequence[str], x_label: str) -> Axes:
    """Open a figure with a row for each name, the first at the top."""
    _, axes = plt.subplots(figsize=(6.4, 1.0 + 0.3 * len(names)))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set(xlabel=x_label)
    axes.grid(True, axis="x")
    return axes
