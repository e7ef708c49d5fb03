"""From a source sentence to the target: searches, sampling, and their cache."""

from transformer_lib.generation.beam_search import require_options, settle
from transformer_lib.generation.constraints import LogitsProcessor, without_dropout
from transformer_lib.generation.incremental import (
    IncrementalDecoder,
    RecomputingDecoder,
    make_decoder,
    row_numbers,
)
from transformer_lib.generation.top import top_tokens
from transformer_lib.precision import at_least_float32
