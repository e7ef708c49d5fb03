"""The one seam for speed: what `transformer_fast` offers, or nothing without it.

All that the library knows of it is here. Without it everything works as before, only
slower. It is imported when it is first wanted, since it imports the library's model.
"""

from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

HAS_FAST = find_spec("transformer_fast") is not None


def for_training(model: nn.Module, dtype: torch.dtype = torch.float32) -> nn.Module:
    """Prepare a model for training, in place; or return it as it is."""
    if not HAS_FAST:
        return model
    from transformer_fast import training

    return training.for_training(model, dtype)


def keep_freed_memory() -> bool:
    """Let this process keep freed memory; or leave it to the C library."""
    if not HAS_FAST:
        return False
    from transformer_fast import allocator

    return allocator.keep_freed_memory()


def make_engine(model: nn.Module) -> Any:
    """Prepare a model's decoding; None if it is not known in every detail."""
    if not HAS_FAST:
        return None
    from transformer_fast import engine

    return engine.make_engine(model)


def real_positions(model: nn.Module, real: Tensor) -> AbstractContextManager[bool]:
    """Score real target positions only, inside the block; or all of them."""
    if not HAS_FAST:
        return nullcontext(False)
    from transformer_fast import training

    return training.real_positions(model, real)


def settle(children: list[Any]) -> list[Any]:
    """Let new beams stay in the rows of their parents; or leave them, best first."""
    if not HAS_FAST:
        return children
    from transformer_fast import search

    return search.settle(children)


def top_tokens(scores: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Find the n highest scores and their tokens."""
    if not HAS_FAST:
        best, tokens = scores.topk(n, dim=-1)
        return best, tokens
    from transformer_fast import search

    return search.top_tokens(scores, n)
