"""Attention in the open: kernels whose weights can be watched and changed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.model.attention import (
    MultiHeadAttention,
    eager_attention,
    fused_attention,
    scaled_dot_product_attention,
)
from transformer_lib.model.checks import check_kind, check_tensors

# Given the weights and what the mask allows, (batch, n_heads, q_len, k_len) each,
# returns the weights to use. Given the weights and the values, looks at them.
Edit = Callable[[Tensor, Tensor], Tensor]
Watch = Callable[[Tensor, Tensor], None]


@dataclass(frozen=True, eq=False)
class OpenKernel:
    """A value for `MultiHeadAttention.kernel` that shows its weights.

    Attributes:
        edits: change the weights, one after the other.
        watches: see the weights that are used, and the values
            (batch, n_heads, k_len, d_head).
    """

    edits: tuple[Edit, ...] = ()
    watches: tuple[Watch, ...] = ()

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
    ) -> Tensor:
        """Attend as `eager_attention` does, with edited weights."""
        output, weights = scaled_dot_product_attention(q, k, v, mask, dropout)
        allowed = torch.ones_like(weights, dtype=torch.bool)
        allowed = allowed if mask is None else allowed & mask
        for edit in self.edits:
            weights = edit(weights, allowed)
            check_tensors(**{"what an edit returns": weights})
            if weights.shape != allowed.shape:
                raise ValueError(
                    f"weights have shape {tuple(allowed.shape)}, but the edit returned "
                    f"{tuple(weights.shape)}"
                )
            if weights.device.type != "meta" and not weights.isfinite().all():
                raise ValueError("the edit returned weights that are NaN or infinite")
        if self.edits:
            output = F.dropout(weights, dropout) @ v if dropout else weights @ v
        for watch in self.watches:
            watch(weights, v)
        return output


@contextmanager
def opened(changes: Mapping[MultiHeadAttention, dict[str, Any]]) -> Iterator[None]:
    """Let attentions use open kernels inside the `with` block.

    Args:
        changes: for each attention an "edit", a "watch", or both, beside those that it
            has already.

    Raises:
        ValueError: an attention has a kernel that shows no weights.
    """
    before = {attention: attention.kernel for attention in changes}
    try:
        for attention, change in changes.items():
            kernel = _open(attention.kernel)
            attention.kernel = replace(
                kernel,
                edits=kernel.edits + tuple(filter(None, [change.get("edit")])),
                watches=kernel.watches + tuple(filter(None, [change.get("watch")])),
            )
        yield
    finally:
        for attention, kernel in before.items():
            attention.kernel = kernel


def _open(kernel: Any) -> OpenKernel:
    if isinstance(kernel, OpenKernel):
        return kernel
    if kernel in (eager_attention, fused_attention):
        return OpenKernel()
    raise ValueError(f"the kernel {kernel!r} shows no weights to look at")


def named_attentions(model: nn.Module) -> Iterator[tuple[str, MultiHeadAttention]]:
    """Yield the attentions of a model with their names, in the order of its parts."""
    check_kind(nn.Module, model=model)
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            yield name, module
