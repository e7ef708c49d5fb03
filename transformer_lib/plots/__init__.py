"""Still pictures, in one theme; every function returns its Figure."""

from transformer_lib.plots.heatmaps import (
    plot_attention,
    plot_attention_heads,
    plot_mask,
    plot_matrix,
)
from transformer_lib.plots.lines import plot_bars, plot_histograms, plot_lines
from transformer_lib.plots.rows import plot_intervals, plot_pairs, plot_spread
from transformer_lib.plots.theme import use_book_theme
