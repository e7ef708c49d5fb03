"""A plot of ratios, on an axis where 2 and 1/2 are equally far from 1."""

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from transformer_lib.model.checks import check_finite, check_kind

WIDTH, ROW_HEIGHT = 5.2, 0.3  # inches
MARKERS = "os^DPXv*"  # form and color tell the names apart


def plot_ratios(rows: Mapping[str, Mapping[str, float]], x_label: str) -> Figure:
    """Draw a row a name, with a mark for each of its ratios, and a line at 1.

    Args:
        rows: name -> (name of the mark -> ratio), from the top. A mark may be missing
            in a row; it has the same form and color in all of them.
        x_label: what is divided by what.

    Raises:
        ValueError: there is no ratio, or one is not above 0.
    """
    check_kind(Mapping, rows=rows)
    check_kind(Mapping, **{f"row {name!r}": marks for name, marks in rows.items()})
    ratios = [ratio for marks in rows.values() for ratio in marks.values()]
    if not ratios:
        raise ValueError("a plot needs at least 1 ratio, but got 0")
    for name, marks in rows.items():
        each = {f"{mark} of {name}": ratio for mark, ratio in marks.items()}
        check_finite(-math.inf, math.inf, **each)
    if min(ratios) <= 0:
        raise ValueError(f"a ratio must be above 0, but one is {min(ratios)}")
    names = list(dict.fromkeys(name for marks in rows.values() for name in marks))
    height = 1.0 + ROW_HEIGHT * (len(rows) + (len(names) + 1) // 2)
    figure, axes = plt.subplots(figsize=(WIDTH, height))
    axes.axvline(1, color="0.3", linewidth=1)
    for number, name in enumerate(names):
        found = [
            (y, marks[name]) for y, marks in enumerate(rows.values()) if name in marks
        ]
        heights, values = zip(*found, strict=True)
        marker, color = MARKERS[number % len(MARKERS)], f"C{number}"
        axes.plot(values, heights, marker, color=color, markersize=7, label=name)
    low, high = math.floor(math.log2(min(ratios))), math.ceil(math.log2(max(ratios)))
    axes.set_xscale("log", base=2)
    axes.set_xlim(2 ** (low - 0.1), 2 ** (high + 0.1))  # so the last power has a tick
    axes.xaxis.set_major_locator(LogLocator(base=2))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.4, -0.6)  # from the top
    axes.set(xlabel=x_label)
    axes.grid(True, axis="x")
    figure.legend(loc="outside upper center", ncols=2)
    return figure
