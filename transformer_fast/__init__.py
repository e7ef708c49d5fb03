"""Everything that exists for speed, and nothing else: without it all works, slower."""

import transformer_lib  # first, since it imports these modules, and they its model
from transformer_fast.allocator import keep_freed_memory
from transformer_fast.engine import make_engine
from transformer_fast.search import settle, top_tokens
from transformer_fast.training import for_training, real_positions

__all__ = [
    "for_training",
    "keep_freed_memory",
    "make_engine",
    "real_positions",
    "settle",
    "top_tokens",
]
