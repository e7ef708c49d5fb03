"""Draw lines, bars and histograms.

Lines differ in their dashes and bars in their hatching, never in their color alone.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from transformer_lib.plots.arrays import as_array

_HATCHES = ("", "//", "..", "xx", "--", "oo")


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
        ValueError: a value is not finite.
    """
    x = as_array(x, 1, "x")
    arrays = {name: as_array(y, 1, f"curve {name!r}") for name, y in curves.items()}
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
    figure, axes = plt.subplots()
    width = 0.8 / len(arrays)
    for index, (name, array) in enumerate(arrays.items()):
        center = np.arange(len(labels)) + (index + 0.5) * width - 0.4
        hatch = _HATCHES[index % len(_HATCHES)]
        bars = axes.bar(center, array, width * 0.94, label=name, hatch=hatch)
        if len(labels) * len(arrays) <= 16:
            axes.bar_label(bars, fmt="%.3g", padding=2, fontsize=8)
    axes.set(xlabel=x_label, ylabel=y_label)
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
