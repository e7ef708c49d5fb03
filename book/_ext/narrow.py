"""Each plot of a notebook is drawn a second time, for a narrow page.

An extension of the kernel in which `book._ext.notebooks` runs a chapter. When a figure
is displayed, the kernel draws it as it is, and once more as wide as a phone, with
letters of the same size: what stands too close there is turned, wrapped or left out.
"""

from __future__ import annotations

import textwrap
from itertools import pairwise
from typing import Any

from IPython.core.formatters import BaseFormatter
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.pylabtools import print_figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.text import Text
from traitlets import Unicode

from book._ext.figures import NARROW, small_svg

WIDTH = 3.5  # inches; the margin around it makes 350 pixels, all that a phone has
SMALLEST = 8.5  # points, 11 pixels
NAMES = 0.42  # of the width may be names of rows
CELL, ABOVE = 0.25, 0.9  # inches: a map's cell at most, and the names above a map


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Let the kernel store the second drawing beside the first."""
    formatter = NarrowFormatter(parent=shell.display_formatter)
    shell.display_formatter.formatters[NARROW] = formatter  # comes after the first


class NarrowFormatter(BaseFormatter):
    """Draws what is displayed for a narrow page."""

    format_type = Unicode(NARROW)

    def __call__(self, shown: Any) -> str | None:
        """Draw a figure, unless it is narrow already."""
        if not isinstance(shown, Figure) or shown.get_figwidth() <= WIDTH:
            return None
        make_narrow(shown)
        return small_svg(print_figure(shown, "svg"))


def make_narrow(figure: Figure) -> None:
    """Lay a figure out for a narrow page; it is not meant for a wide one afterwards."""
    figure.set_figwidth(WIDTH)
    for text in figure.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), SMALLEST))
    for axes in figure.axes[:]:
        move_color_bar(axes)
    figure.draw_without_rendering()
    stack_maps([axes for axes in figure.axes if axes.images])
    for axes in figure.axes:
        wrap_names(axes)
        move_legend(axes)
        figure.draw_without_rendering()
        turn_crowded(axes)
    figure.draw_without_rendering()
    for axes in figure.axes:
        for label, side in ((axes.xaxis.label, 0), (axes.yaxis.label, 1)):
            wrap(label, figure.bbox.size[side] * (0.75 if side else 0.9), side)
        wrap(axes.title, 0.9 * figure.bbox.width, 0)


def move_color_bar(axes: Axes) -> None:
    """Put the color bar of a map below it, or nowhere if its cells have numbers."""
    for image in axes.images:
        if not image.colorbar:
            continue
        label, maps = image.colorbar.ax.get_ylabel(), image.colorbar.ax._colorbar_info
        image.colorbar.remove()
        if not axes.texts:
            bar = axes.figure.colorbar(
                image, ax=maps["parents"], location="bottom", aspect=30, pad=0.03
            )
            bar.set_label(label)


def stack_maps(maps: list[Axes]) -> None:
    """Put maps that stand side by side below each other, where their names meet."""
    if len(maps) < 2 or not meet(maps[0].get_yticklabels(), along=1):
        return
    figure, first = maps[0].figure, maps[0]
    n_rows, n_columns = first.images[0].get_array().shape
    cell = min(CELL, (1 - NAMES) * WIDTH / n_columns)
    figure.set_figheight(len(maps) * (n_rows * cell + ABOVE) + ABOVE)
    grid = GridSpec(len(maps), 1, figure)
    for axes, place in zip(maps, grid, strict=True):
        axes.set_subplotspec(place)
        axes.tick_params(labelleft=True)
        axes.set_ylabel(first.get_ylabel(), color=first.yaxis.label.get_color())
        axes.yaxis.label.set_weight(first.yaxis.label.get_weight())


def move_legend(axes: Axes) -> None:
    """Put the legend above what it could hide on a narrow plot."""
    if legend := axes.get_legend():
        names = [text.get_text() for text in legend.get_texts()]
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "frameon": False}
        axes.legend(legend.legend_handles, names, **place, fontsize=9)


def wrap_names(axes: Axes) -> None:
    """Wrap the names of rows where they would take too much of the width."""
    names = [label.get_text() for label in axes.get_yticklabels()]
    letters = int(NAMES * axes.figure.bbox.width / 6.5)  # pixels a letter, about
    if max(map(len, names), default=0) > letters and not axes.images:
        axes.set_yticks(axes.get_yticks(), [textwrap.fill(n, letters) for n in names])


def turn_crowded(axes: Axes) -> None:
    """Turn the names below the bars, and the numbers above them, where they meet."""
    labels = [label for label in axes.get_xticklabels() if not label.get_rotation()]
    if meet(labels):
        for label in labels:
            label.set(rotation=45, ha="right", rotation_mode="anchor")
    if axes.containers and meet(axes.texts):
        for text in axes.texts:
            text.set_rotation(90)
        axes.margins(y=0.25)


def meet(texts: list[Text], along: int = 0) -> bool:
    """Whether two of some texts stand too close, along the x axis (0) or the y axis."""
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    spans = sorted((box.min[along], box.max[along]) for box in boxes)
    return any(end > start - 1 for (_, end), (start, _) in pairwise(spans))


def wrap(text: Text, room: float, side: int) -> None:
    """Break a line that is longer than the room for it."""
    words = text.get_text()
    length = text.get_window_extent().size[side]
    if words and length > room:
        text.set_text(textwrap.fill(words, int(len(words) * room / length)))
