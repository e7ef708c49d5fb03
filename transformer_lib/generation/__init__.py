"""From a source sentence to the target: searches, sampling, and their cache."""

from transformer_lib.generation.beam_search import require_options
from transformer_lib.generation.constraints import LogitsProcessor, without_dropout
from transformer_lib.generation.incremental import (
    IncrementalDecoder,
    RecomputingDecoder,
    at_least_float32,
    make_decoder,
    row_numbers,
)
