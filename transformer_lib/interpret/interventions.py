"""Reach into attention while a model runs: watch its weights, change them.

All works from outside: inside a `with` block, attentions of the model use another
kernel. Afterwards the model is itself again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.model.attention import (
    eager_attention,
    fused_attention,
    scaled_dot_product_attention,
)

# Given the weights and what the mask allows, (batch, n_heads, q_len, k_len) each,
# returns the weights to use. Given the weights and the values, looks at them.
Edit = Callable[[Tensor, Tensor], Tensor]
Watch = Callable[[Tensor, Tensor], None]
# Given an attention, its weights and its values, returns what is to be kept of them.
Look = Callable[[nn.Module, Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class OpenKernel:
    """A value for an attention's `kernel` that shows its weights.

    A copy of the model has the edits, but nobody watches it.

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

    def __deepcopy__(self, _memo: dict) -> OpenKernel:
        return OpenKernel(self.edits)


@contextmanager
def opened(changes: Mapping[nn.Module, OpenKernel]) -> Iterator[None]:
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


def named_attentions(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the attentions of a model with their names, in the order of its parts.

    An attention is what has a `kernel`: `MultiHeadAttention`, `GroupedQueryAttention`,
    and what others build like them.

    Raises:
        ValueError: there is none, so that there would be nothing to look at.
    """
    attentions = [pair for pair in model.named_modules() if hasattr(pair[1], "kernel")]
    if not attentions:
        raise ValueError(f"{type(model).__name__} holds no attention")
    return attentions


@contextmanager
def watched(model: nn.Module, look: Look) -> Iterator[dict[str, Tensor]]:
    """Keep something of every attention's latest pass inside the `with` block.

    Args:
        model: any module that holds attentions.
        look: says what is kept, of the weights that are used and of the values.

    Yields:
        A dictionary, filled while the model runs: for each attention, by its name in
        the model ("" if it is the model itself), what was kept, detached.

    Raises:
        ValueError: the model holds no attention.
    """
    kept: dict[str, Tensor] = {}

    def keep(name: str, attention: nn.Module, weights: Tensor, values: Tensor) -> None:
        kept[name] = look(attention, weights, values).detach()

    changes = {
        attention: OpenKernel(watches=(partial(keep, name, attention),))
        for name, attention in named_attentions(model)
    }
    with opened(changes):
        yield kept


@contextmanager
def edit_weights(model: nn.Module, edits: Mapping[str, Edit]) -> Iterator[None]:
    """Let attention average with other weights than its own inside the `with` block.

    ```python
    with edit_weights(model, {"encoder.layers.0.self_attn": without_head(3)}):
        logits = model(src, tgt_in)
    ```

    `record_attention` inside the block records the weights that are used.

    Args:
        model: any module that holds attentions.
        edits: for each attention, by its name in the model, a function of its weights
            and of what its mask allows, both (batch, n_heads, q_len, k_len), that
            returns the weights to use. Rows need not sum to 1. It may change the
            weights in place: they are a copy.

    Raises:
        KeyError: there is no attention of this name; `named_attentions` has them.
        ValueError: an edit returns another shape.
    """
    attentions = dict(named_attentions(model))
    with opened(
        {attentions[name]: OpenKernel((edit,)) for name, edit in edits.items()}
    ):
        yield


def without_head(*heads: int) -> Edit:
    """Prune heads: with all their weights at 0 they add nothing to the output."""

    def edit(weights: Tensor, allowed: Tensor) -> Tensor:
        weights[:, list(heads)] = 0.0
        return weights

    return edit


def equal_weights(*heads: int) -> Edit:
    """Let heads give every key they may attend to the same weight."""

    def edit(weights: Tensor, allowed: Tensor) -> Tensor:
        n_keys = allowed.sum(dim=-1, keepdim=True).clamp(min=1)
        weights[:, list(heads)] = (allowed / n_keys)[:, list(heads)].to(weights)
        return weights

    return edit


def shuffled_weights(*heads: int, seed: int = 0) -> Edit:
    """Give each query of some heads its own weights in a random order.

    The keys that the mask hides stay hidden.
    """

    def edit(weights: Tensor, allowed: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        chance = torch.rand(weights.shape, generator=generator).to(weights.device)
        # Ranks among the allowed keys: one by place, one by chance.
        by_chance = chance.masked_fill(~allowed, 2.0).argsort(dim=-1)
        by_place = (~allowed).long().argsort(dim=-1, stable=True)
        mixed = weights.scatter(-1, by_place, weights.gather(-1, by_chance))
        weights[:, list(heads)] = mixed[:, list(heads)]
        return weights

    return edit


def record_value_norms(model: nn.Module) -> AbstractContextManager[dict[str, Tensor]]:
    """Collect how long a vector each key would add, were its weight 1.

    A head's output is a sum over keys: weight times W^O_h (W^V_h x + b^V_h). The norm
    of what the weight multiplies tells how much there is to be had (Kobayashi and
    others 2020, "Attention is Not Only a Weight", section 2.2).

    Args:
        model: any module that holds attentions.

    Returns:
        For a `with` block: a dictionary, filled while the model runs. It has for each
        attention, by its name, the norms of its latest pass, (batch, n_heads, k_len).
    """

    def norms(attention: nn.Module, weights: Tensor, values: Tensor) -> Tensor:
        shape = attention.n_heads, attention.d_head
        columns = attention.out_proj.weight.unflatten(1, shape)  # of each head
        added = torch.einsum("bhkd,ohd->bhko", values, columns)
        return added.norm(dim=-1)

    return watched(model, norms)
