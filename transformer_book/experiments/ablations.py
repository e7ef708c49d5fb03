"""Ablations: one choice of the paper undone at a time, and what it costs.

Every variant is the same small model, trained for as many steps on the same generated
sentences; only what its name says is different. `benchmarks/ablations.py` runs all of
them with several seeds and records what came out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer

SIZES = {
    "d_model": 64,
    "n_heads": 4,
    "d_ff": 256,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "max_len": 128,
    "dropout": 0.0,  # hardly a sentence is seen twice: there is nothing to overfit
}


@dataclass(frozen=True)
class Plan:
    """What all variants have in common.

    Attributes:
        steps: number of steps.
        max_tokens: positions of a batch, padding counted.
        warmup: steps until the learning rate peaks.
        rate_scale: factor on the paper's learning rate.
        average: how many copies of the weights are averaged in the end.
        every: steps from one copy to the next.
        n_test: test sentences that are translated, the first of the corpus.
    """

    steps: int = 500
    max_tokens: int = 600
    warmup: int = 100
    rate_scale: float = 0.5
    average: int = 5
    every: int = 10
    n_test: int = 500


@dataclass(frozen=True)
class Variant:
    """A model and its training, described by what differs from the paper's choices.

    Attributes:
        name: what is different, in words.
        model: fields of TransformerConfig.
        smoothing: of the labels.
        warm_up: False starts with the highest learning rate.
        change: done to the model before training; None for nothing.
    """

    name: str
    model: dict[str, Any] = field(default_factory=dict)
    smoothing: float = 0.1
    warm_up: bool = True
    change: Callable[[Transformer], None] | None = None


def without_scale(model: Transformer) -> None:
    """Undo the division by sqrt(d_head): queries are multiplied by it."""
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            factor = math.sqrt(part.d_head)
            part.q_proj.register_forward_hook(
                lambda _, inputs, q, factor=factor: factor * q
            )


def with_small_embeddings(model: Transformer) -> None:
    """Draw the token vectors anew with standard deviation 1 / sqrt(d_model).

    That is what scaled embeddings start from. Without the scale, tokens are then
    much shorter than the position vectors that are added to them.
    """
    weight = model.src_embeddings.tokens.weight  # shared with the target side
    nn.init.normal_(weight, std=weight.size(1) ** -0.5)


def without_positions(
    model: Transformer, *, src: bool = True, tgt: bool = True
) -> None:
    """Replace the position vectors of one side, or of both, by zeros."""
    for side, gone in ((model.src_embeddings, src), (model.tgt_embeddings, tgt)):
        if gone:
            side.positions.register_forward_hook(
                lambda _, inputs, positions: torch.zeros_like(positions)
            )


PAPER = "the paper's choices"
VARIANTS = (
    Variant(PAPER),
    Variant("dot product not scaled", change=without_scale),
    Variant("1 head, not scaled", {"n_heads": 1}, change=without_scale),
    Variant("no warm-up", warm_up=False),
    Variant("pre-norm", {"norm_first": True}),
    Variant("pre-norm, no warm-up", {"norm_first": True}, warm_up=False),
    Variant("nothing tied", {"tie_embeddings": "none"}),
    Variant("only the decoder tied", {"tie_embeddings": "decoder"}),
    Variant("embeddings not scaled, start at 1", {"scale_embeddings": False}),
    Variant(
        "embeddings not scaled, start small",
        {"scale_embeddings": False},
        change=with_small_embeddings,
    ),
    Variant("no label smoothing", smoothing=0.0),
    Variant("1 head", {"n_heads": 1}),
    Variant("2 heads", {"n_heads": 2}),
    Variant("8 heads", {"n_heads": 8}),
    Variant("positions learned", {"learned_positions": True}),
    Variant("no positions", change=without_positions),
    Variant("no positions in the source", change=partial(without_positions, tgt=False)),
    Variant("no positions in the target", change=partial(without_positions, src=False)),
)


def find_variant(name: str) -> Variant:
    """Return the variant of this name."""
    return {variant.name: variant for variant in VARIANTS}[name]


def build(variant: Variant, vocab_size: int, seed: int) -> Transformer:
    """Make the model of a variant with its first weights; draws from a seed of its own.

    Args:
        variant: what differs.
        vocab_size: tokens of both languages together.
        seed: of the weights.
    """
    sizes = {"src_vocab_size": vocab_size, "tgt_vocab_size": vocab_size}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Transformer(TransformerConfig(**sizes, **{**SIZES, **variant.model}))
        if variant.change:
            variant.change(model)
    return model
