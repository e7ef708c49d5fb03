"""Drawn diagrams in one visual language: the map of the model, and each chapter's own.

    from transformer_book.diagrams import draw_map
    from transformer_book.diagrams.decoder import decoder_layer

    draw_map("encoder self-attention", "cross-attention")
    decoder_layer().show("A decoder layer: three sub-layers ...")

Source, target, memory, query, key and value have the same colors everywhere.
"""

from transformer_book.diagrams.canvas import Canvas
from transformer_book.diagrams.model_map import draw_map, model_map
