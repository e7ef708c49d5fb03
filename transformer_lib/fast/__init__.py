"""What exists only for speed, for anyone who asks for it: nothing uses it unasked.

    load("multi30k-de-en").fast().translate([...])     an engine that decodes
    with fast_training(model): ...                     layers that train faster

Both compute what the model's own modules compute, and prove it first.
"""

from transformer_lib.fast.allocator import keep_freed_memory
from transformer_lib.fast.engine import Engine, make_engine
from transformer_lib.fast.training import batch_loss, fast_training, require_same_step
