"""Draw a row for each name: a value with its interval, runs, or two values.

A row's name stands above its marks and not beside them, so a figure is legible in the
width of a phone: no text is smaller than 11 pixels where the figure is 350 wide.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter
from numpy.typing import ArrayLike

from transformer_lib.plots.arrays import as_array
from transformer_lib.plots.palette import LIGHT

_WIDTH, _SIZE = 4.4, 10.5  # inches; points of the smallest text

Interval = tuple[float, float, float]


def plot_intervals(
    rows: Mapping[str, Interval],
    x_label: str,
    against: float | None = None,
    runs: Mapping[str, ArrayLike] | None = None,
    band: bool = False,
    number: str = "+.1f",
) -> Figure:
    """Draw each value as a dot on its interval, and write it at the right.

    A dot is hollow, and its interval dashed, where the interval holds the number that
    rows are compared with: then the data don't say on which side the value lies.

    Args:
        rows: name -> (value, low, high), from the top; all in the unit of x_label.
        x_label: what the values measure, with its unit.
        against: the number that rows are compared with, drawn as a line: 0 for a
            difference, 1 for a ratio.
        runs: name -> (n_runs,), small dots: what a row's value is the mean of.
        band: draw the first row's interval behind all rows.
        number: how a value is written.

    Raises:
        ValueError: a number is not finite, or a value is outside its interval.
    """
    for name, row in rows.items():
        value, low, high = as_array(row, 1, f"row {name!r}")
        if not low <= value <= high:
            raise ValueError(f"row {name!r}: {value} is not in {low} to {high}")
    axes = _named_rows(list(rows), x_label)
    if band:
        _, *ends = next(iter(rows.values()))
        axes.axvspan(*ends, color=LIGHT.band, zorder=0)
    for y, (name, (value, low, high)) in enumerate(rows.items()):
        if against is not None:  # not across the words above
            axes.vlines(against, y - 0.18, y + 0.3, color=LIGHT.ink, linewidth=1)
        if runs:
            dots = as_array(runs[name], 1, f"runs of {name!r}")
            style = {"color": LIGHT.series[1], "markersize": 3.5, "alpha": 0.5}
            axes.plot(dots, [y] * len(dots), "o", **style)
        is_open = against is not None and low <= against <= high
        axes.plot([low, high], [y, y], "--" if is_open else "-", color=LIGHT.series[0])
        face = LIGHT.page if is_open else LIGHT.series[0]
        dot = {"markerfacecolor": face, "markersize": 7, "markeredgewidth": 1.5}
        axes.plot(value, y, "o", color=LIGHT.series[0], **dot)
        _write(axes, y, f"{value:{number}}")
    return axes.figure


def plot_pairs(
    rows: Mapping[str, tuple[float, float]],
    names: tuple[str, str],
    x_label: str,
    log_x: bool = False,
    number: str = ",.0f",
) -> Figure:
    """Draw two values a row, a hollow diamond and a dot, and write both at the right.

    Args:
        rows: name -> (first value, second value), from the top.
        names: what the first and the second values are.
        x_label: what both measure, with their unit.
        log_x: use a logarithmic x axis.
        number: how a value is written.

    Raises:
        ValueError: a value is not finite.
    """
    pairs = {name: as_array(row, 1, f"row {name!r}") for name, row in rows.items()}
    axes = _named_rows(list(rows), x_label)
    if log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.xaxis.set_minor_locator(NullLocator())
    first = {"color": LIGHT.series[1], "markerfacecolor": LIGHT.page}
    for y, (old, new) in enumerate(pairs.values()):
        axes.plot([old, new], [y, y], "-", color=LIGHT.line, zorder=1)
        axes.plot(old, y, "D", markersize=7, markeredgewidth=1.5, **first)
        axes.plot(new, y, "o", color=LIGHT.series[0], markersize=5)
        _write(axes, y, f"{old:{number}} → {new:{number}}")
    for line, name in zip(axes.lines[1:3], names, strict=True):
        line.set_label(name)
    above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "fontsize": _SIZE}
    axes.legend(ncols=2, borderpad=0, borderaxespad=0, handletextpad=0, **above)
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
    mean = {"color": LIGHT.series[1], "markersize": 11, "mew": 2.4}
    for y, values in enumerate(arrays.values()):
        axes.plot(values, [y] * len(values), "o", **dots)
        axes.plot(values.mean(), y, "|", **mean)
        _write(axes, y, f"{values.mean():.1f}")
    return axes.figure


def _named_rows(names: Sequence[str], x_label: str) -> Axes:
    """Open a figure with a row for each name, the first at the top."""
    _, axes = plt.subplots(figsize=(_WIDTH, 0.6 + 0.4 * len(names)))
    axes.set_yticks([])
    axes.set_ylim(len(names) - 0.5, -0.8)
    axes.set_xlabel(x_label, size=_SIZE)
    axes.tick_params(axis="x", labelsize=_SIZE)
    axes.spines["left"].set_visible(False)
    axes.grid(True, axis="x")
    for y, name in enumerate(names):
        _write(axes, y, name, right=False)
    return axes


def _write(axes: Axes, y: int, words: str, right: bool = True) -> None:
    """Write words above a row's marks, at one end of the row."""
    side = {"ha": "right" if right else "left", "va": "bottom"}
    axes.text(
        float(right),
        y - 0.2,
        words.replace("-", "\N{MINUS SIGN}") if right else words,
        transform=axes.get_yaxis_transform(),
        size=_SIZE,
        parse_math=False,
        **side,
    )
