"""Reach into attention while a model runs: change weights, measure values.

Both work from outside: inside the `with` block, single attentions of the model average
in another way. Afterwards the model is itself again.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn

from transformer_lib.interpret.kernels import (
    Edit,
    OpenKernel,
    named_attentions,
    opened,
    watched,
)
from transformer_lib.model.attention import MultiHeadAttention


@contextmanager
def edit_weights(model: nn.Module, edits: Mapping[str, Edit]) -> Iterator[None]:
    """Let attention average with other weights than its own inside the `with` block.

    ```python
    with edit_weights(model, {"encoder.layers.0.self_attn": without_head(3)}):
        logits = model(src, tgt_in)
    ```

    `record_attention` inside the block records the weights that are used.

    Args:
        model: any module that holds MultiHeadAttention.
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
        model: any module that holds MultiHeadAttention.

    Returns:
        For a `with` block: a dictionary, filled while the model runs. It has for each
        attention, by its name, the norms of its latest pass, (batch, n_heads, k_len).
    """

    def norms(attention: MultiHeadAttention, weights: Tensor, values: Tensor) -> Tensor:
        shape = attention.n_heads, attention.d_head
        columns = attention.out_proj.weight.unflatten(1, shape)  # of each head
        added = torch.einsum("bhkd,ohd->bhko", values, columns)
        return added.norm(dim=-1)

    return watched(model, norms)
