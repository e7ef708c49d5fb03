"""Attention in the open: a kernel whose weights can be watched and changed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.model.attention import (
    MultiHeadAttention,
    eager_attention,
    fused_attention,
    scaled_dot_product_attention,
)

# Given the weights and what the mask allows, (batch, n_heads, q_len, k_len) each,
# returns the weights to use. Given the weights and the values, looks at them.
Edit = Callable[[Tensor, Tensor], Tensor]
Watch = Callable[[Tensor, Tensor], None]
# Given an attention, its weights and its values, returns what is to be kept of them.
Look = Callable[[MultiHeadAttention, Tensor, Tensor], Tensor]


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
            if weights.shape != allowed.shape:  # one head's would count for all
                raise ValueError(
                    f"weights have shape {tuple(allowed.shape)}, but the edit returned "
                    f"{tuple(weights.shape)}"
                )
        if self.edits:
            output = F.dropout(weights, dropout) @ v if dropout else weights @ v
        for watch in self.watches:
            watch(weights, v)
        return output


@contextmanager
def opened(changes: Mapping[MultiHeadAttention, OpenKernel]) -> Iterator[None]:
    """Let attentions use open kernels inside the `with` block.

    Args:
        changes: for each attention what is edited and watched, beside what is already.

    Raises:
        ValueError: an attention has a kernel that shows no weights.
    """
    before = {attention: attention.kernel for attention in changes}
    try:
        for attention, kernel in before.items():
            new = changes[attention]
            if isinstance(kernel, OpenKernel):
                new = OpenKernel(kernel.edits + new.edits, kernel.watches + new.watches)
            elif kernel not in (eager_attention, fused_attention):
                raise ValueError(f"the kernel {kernel!r} shows no weights to look at")
            attention.kernel = new
        yield
    finally:
        for attention, kernel in before.items():
            attention.kernel = kernel


def named_attentions(model: nn.Module) -> Iterator[tuple[str, MultiHeadAttention]]:
    """Yield the attentions of a model with their names, in the order of its parts."""
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            yield name, module


@contextmanager
def watched(model: nn.Module, look: Look) -> Iterator[dict[str, Tensor]]:
    """Keep something of every attention's latest pass inside the `with` block.

    Args:
        model: any module that holds MultiHeadAttention.
        look: says what is kept, of the weights that are used and of the values.

    Yields:
        A dictionary, filled while the model runs: for each attention, by its name in
        the model ("" if it is the model itself), what was kept, detached.
    """
    kept: dict[str, Tensor] = {}

    def keep(
        name: str, attention: MultiHeadAttention, weights: Tensor, values: Tensor
    ) -> None:
        kept[name] = look(attention, weights, values).detach()

    found = named_attentions(model)
    with opened({a: OpenKernel(watches=(partial(keep, n, a),)) for n, a in found}):
        yield kept
