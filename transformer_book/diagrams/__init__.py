"""Drawn diagrams in one visual language: the map of the model, and each chapter's own.

    from transformer_book.diagrams import draw_map

    draw_map("encoder self-attention", "cross-attention")

Source, target, memory, query, key and value have the same colors everywhere.
"""

from transformer_book.diagrams.attention import all_queries, lookups, one_query
from transformer_book.diagrams.batches import (
    batch_tensors,
    component_split,
    filled,
    pipeline,
)
from transformer_book.diagrams.caching import (
    one_step,
    repeated_rows,
    reserved_buffer,
    two_caches,
)
from transformer_book.diagrams.canvas import Canvas
from transformer_book.diagrams.classifier import pipeline_diagram, pooling_diagram
from transformer_book.diagrams.decoder import (
    decoder_layer,
    look_across,
    one_memory,
    shifted,
)
from transformer_book.diagrams.embeddings import clocks, lookup, token_plus_position
from transformer_book.diagrams.encoder import detour_diagram
from transformer_book.diagrams.full_model import one_matrix, shape_flow
from transformer_book.diagrams.generation import Candidate, beam_tree, rows_diagram
from transformer_book.diagrams.masks import broadcast, three_masks
from transformer_book.diagrams.model_map import draw_map, model_map
from transformer_book.diagrams.multi_head import head_split, multi_head_layer
from transformer_book.diagrams.other_code import carry_diagram
from transformer_book.diagrams.quality import (
    clipping_diagram,
    comparison_diagram,
    pairing_diagram,
)
from transformer_book.diagrams.reading import links_diagram
from transformer_book.diagrams.residual import (
    layer_and_batch_norm,
    layer_diagram,
    residual_stream,
    two_orders,
)
from transformer_book.diagrams.training import training_cycle
