"""A plot of repeated measurements: every value, their mean, and how far they spread."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from transformer_lib.plots.heatmaps import as_array
from transformer_lib.plots.lines import PALETTE

ROW_HEIGHT = 0.27  # inches


def plot_spread(rows: Mapping[str, ArrayLike], x_label: str) -> Figure:
    """Draw a row of dots a name, a tick at their mean, and a band behind all.

    The band is the range of the first row: what lies inside it differs from the first
    row no more than that row's own values do from each other.

    Args:
        rows: name -> (n_values,), from the top.
        x_label: what the values measure, with its unit.

    Raises:
        ValueError: there is no row, or one is no list of numbers.
    """
    if not rows:
        raise ValueError("a plot needs at least 1 row, but got 0")
    arrays = {name: as_array(v, 1, f"row {name!r}") for name, v in rows.items()}
    figure, axes = plt.subplots(figsize=(6.4, 1.0 + ROW_HEIGHT * len(arrays)))
    first = next(iter(arrays.values()))
    axes.axvspan(first.min(), first.max(), color="#E4E7EB", zorder=0)
    for place, values in enumerate(arrays.values()):
        heights = [place] * len(values)
        axes.plot(values, heights, "o", color=PALETTE[0], markersize=5, alpha=0.7)
        axes.plot(values.mean(), place, "|", color=PALETTE[1], markersize=13, mew=2.4)
    axes.set_yticks(range(len(arrays)), list(arrays))
    axes.set_ylim(len(arrays) - 0.4, -0.6)  # from the top
    axes.set(xlabel=x_label)
    axes.grid(True, axis="x")
    return figure
