"""Drawn diagrams in one visual language: the map of the model, and each chapter's own.

    from transformer_lib.diagrams import draw_map

    draw_map("encoder self-attention", "cross-attention")

Source, target, memory, query, key and value have the same colors everywhere.
"""

from transformer_lib.diagrams.canvas import Canvas
from transformer_lib.diagrams.model_map import draw_map, model_map

__all__ = ["Canvas", "draw_map", "model_map"]
