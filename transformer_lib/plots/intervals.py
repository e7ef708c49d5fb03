"""A plot of shares with their uncertainty: a dot and an interval a row."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from transformer_lib.evaluation.accuracy import Accuracy
from transformer_lib.plots.lines import PALETTE

ROW_HEIGHT = 0.3  # inches


def plot_intervals(rows: Mapping[str, Accuracy], x_label: str) -> Figure:
    """Draw each accuracy as a dot on its 95 % interval, and the first one's as a band.

    Args:
        rows: name -> accuracy, from the top.
        x_label: what the shares count.

    Raises:
        ValueError: there is no row.
    """
    if not rows:
        raise ValueError("a plot needs at least 1 row, but got 0")
    figure, axes = plt.subplots(figsize=(6.4, 1.0 + ROW_HEIGHT * len(rows)))
    axes.axvspan(*next(iter(rows.values())).interval, color="#E4E7EB", zorder=0)
    for place, score in enumerate(rows.values()):
        axes.plot(score.interval, [place, place], "|-", color=PALETTE[0])
        axes.plot(score.value, place, "o", color=PALETTE[0], markersize=5)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.4, -0.6)  # from the top
    axes.set(xlabel=x_label)
    axes.grid(True, axis="x")
    return figure
