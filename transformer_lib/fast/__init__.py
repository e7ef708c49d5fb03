"""Everything that exists for speed, and nothing else: without it all works, slower."""

from transformer_lib.fast.allocator import keep_freed_memory
from transformer_lib.fast.engine import make_engine
from transformer_lib.fast.search import settle, top_tokens
from transformer_lib.fast.training import for_training, real_positions

__all__ = [
    "for_training",
    "keep_freed_memory",
    "make_engine",
    "real_positions",
    "settle",
    "top_tokens",
]
