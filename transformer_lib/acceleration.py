"""The one seam for speed: what `fast` offers, or nothing where `fast` is not there.

All that the rest of the library knows of `fast` is here. Each function may do nothing;
then everything works as before, only slower.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn

try:
    from transformer_lib.fast import (
        for_training,
        keep_freed_memory,
        make_engine,
        real_positions,
    )
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("transformer_lib.fast"):
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


__all__ = ["for_training", "keep_freed_memory", "make_engine", "real_positions"]
