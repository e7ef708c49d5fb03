"""Fonts, sizes and colors of every still picture."""

import sys

import matplotlib.pyplot as plt
from matplotlib import cycler

from transformer_lib.plots.palette import LIGHT

_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1)), (0, (3, 1)))


def use_book_theme() -> None:
    """Set the fonts, sizes and colors of every later figure, once a notebook."""
    axes = ("axes.edgecolor", "xtick.color", "ytick.color")
    words = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor")
    plt.rcParams.update(
        {
            **dict.fromkeys(axes, LIGHT.line),
            **dict.fromkeys(words, LIGHT.ink),
            "figure.dpi": 100,
            "figure.facecolor": LIGHT.page,
            "figure.figsize": (5.6, 3.4),
            "figure.constrained_layout.use": True,
            "font.family": "DejaVu Sans",  # comes with matplotlib: same everywhere
            "font.size": 10,
            "axes.axisbelow": True,
            "axes.facecolor": "none",
            "axes.prop_cycle": cycler(color=LIGHT.series) + cycler(linestyle=_DASHES),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 10,
            "grid.color": LIGHT.band,
            "hatch.color": LIGHT.page,
            "legend.edgecolor": "none",
            "legend.facecolor": LIGHT.page,
            "lines.linewidth": 1.5,
            "svg.fonttype": "none",  # words, in the font of the page
            "svg.hashsalt": "book",  # the same picture is the same file
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "xtick.major.size": 0,
            "ytick.major.size": 0,
        }
    )
    if getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)():
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", "png")
