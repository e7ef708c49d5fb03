"""Interactive charts, with a still picture of each for everywhere else.

    from transformer_book.charts import attention_explorer, show

    show(attention_explorer(maps, q_tokens, k_tokens), alt="Heat map of …")

Each function returns an Altair chart, and `show` displays it. A chart carries all its
numbers, so it works in a web page without a kernel or a network. The numbers of a map
are stored as text ("0.25 0.75"), which keeps a notebook small; the chart splits it.
"""

from transformer_book.charts.attention import (
    attention_explorer,
    divisor_explorer,
    similarity_explorer,
)
from transformer_book.charts.machine import show_machine
from transformer_book.charts.masks import mask_explorer
from transformer_book.charts.parts import mime_bundle, show
from transformer_book.charts.positions import position_explorer
from transformer_book.charts.trace import trace_translation
