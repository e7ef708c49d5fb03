"""Fonts, sizes and colors of every still picture."""

import sys

import matplotlib.pyplot as plt
from matplotlib import cycler

from transformer_lib.plots.palette import LIGHT

_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1)), (0, (3, 1)))


def use_book_theme() -> None:
    """Set the fonts, sizes and colors of every later figure, once a notebook."""
    plt.rcParams.update(
        {
            "figure.dpi": 100,
            "figure.figsize": (6.0, 3.6),
            "figure.constrained_layout.use": True,
            "font.family": "DejaVu Sans",  # comes with matplotlib: same everywhere
            "font.size": 10,
            "axes.titlesize": 11,
            "text.color": LIGHT.ink,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.prop_cycle": cycler(color=LIGHT.series) + cycler(linestyle=_DASHES),
            "grid.color": LIGHT.band,
            "hatch.color": "white",
            "legend.edgecolor": "none",
            "lines.linewidth": 1.8,
        }
    )
    if getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)():
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        # Without a version stamp, the same picture is the same file.
        kept = {"metadata": {"Software": None}, "pil_kwargs": {"optimize": True}}
        set_matplotlib_formats("png", **kept)
