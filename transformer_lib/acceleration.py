"""The one seam for speed: what `transformer_fast` offers, or nothing without it.

All that the library knows of it is here. Without it everything works as before, only
slower.
"""

from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

if find_spec("transformer_fast"):
    # From its modules, not from the package: that may have begun to be imported.
    from transformer_fast.allocator import keep_freed_memory
    from transformer_fast.engine import make_engine
    from transformer_fast.search import settle, top_tokens
    from transformer_fast.training import for_training, real_positions
else:

    def for_training(model: nn.Module, dtype: torch.dtype = torch.float32) -> nn.Module:
        """Return a model that is to be trained as it is."""
        return model

    def keep_freed_memory() -> bool:
        """Leave freed memory to the C library."""
        return False

    def make_engine(model: nn.Module) -> None:
        """Prepare no engine."""

    def real_positions(model: nn.Module, real: Tensor) -> AbstractContextManager[bool]:
        """Score all target positions inside the block."""
        return nullcontext(False)

    def settle(children: list[Any]) -> list[Any]:
        """Leave new beams as they are, best first."""
        return children

    def top_tokens(scores: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Find the n highest scores and their tokens."""
        return scores.topk(n, dim=-1)
