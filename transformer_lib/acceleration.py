"""The one seam for speed: what `transformer_fast` offers, or nothing without it.

All that the library knows of it is here. Each function may do nothing;
then everything works as before, only slower.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor, nn

try:
    from transformer_fast import (
        for_training,
        keep_freed_memory,
        make_engine,
        real_positions,
        settle,
        top_tokens,
    )
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("transformer_fast"):
        raise

    def for_training(model: nn.Module, *_: Any) -> nn.Module:
        """Return the model as it is."""
        return model

    def keep_freed_memory() -> bool:
        """Leave memory to the C library."""
        return False

    def make_engine(model: nn.Module, weights: str | None = None) -> None:
        """Know no model."""

    def real_positions(*_: Any) -> AbstractContextManager[bool]:
        """Let all positions be scored."""
        return nullcontext(False)

    def settle(children: list[Any]) -> list[Any]:
        """Leave new beams in their order, the best first."""
        return children

    def top_tokens(scores: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Find the n highest scores and their tokens."""
        best, tokens = scores.topk(n, dim=-1)
        return best, tokens


__all__ = [
    "for_training",
    "keep_freed_memory",
    "make_engine",
    "real_positions",
    "settle",
    "top_tokens",
]
