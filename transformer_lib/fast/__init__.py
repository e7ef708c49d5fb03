"""What exists only for speed, for anyone who asks for it, as the shell does.

`load(...).fast()` decodes with an engine, which proves when it is made that it computes
what the model's own modules compute. `fast_training` lets layers train faster, and
`require_same_step` proves that they learn the same.
"""

from transformer_lib.fast.allocator import keep_freed_memory
from transformer_lib.fast.engine import Engine, make_engine
from transformer_lib.fast.training import batch_loss, fast_training, require_same_step
