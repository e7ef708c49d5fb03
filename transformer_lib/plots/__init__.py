"""Still pictures, in one theme."""

from transformer_lib.plots.heatmaps import (
    plot_attention,
    plot_attention_heads,
    plot_mask,
    plot_masks,
)
from transformer_lib.plots.lines import (
    plot_bars,
    plot_histograms,
    plot_lines,
    plot_matrix,
    plot_scores,
    use_book_theme,
)

__all__ = [
    "plot_attention",
    "plot_attention_heads",
    "plot_bars",
    "plot_histograms",
    "plot_lines",
    "plot_mask",
    "plot_masks",
    "plot_matrix",
    "plot_scores",
    "use_book_theme",
]
