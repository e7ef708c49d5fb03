"""A decoder made ready for its steps, which multiply by few rows at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from transformer_lib.fast.linear import Linear
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import DecoderLayer


@contextmanager
def packed_weights(model: nn.Module) -> Iterator[None]:
    """Pack what every step of a search multiplies by, for as long as this lasts.

    The searches do it by themselves. Who searches many times packs once, around all:

        with torch.inference_mode(), packed_weights(model):
            for src in batches:
                greedy_decode(model, src, rules)

    Weights must not change meanwhile. Where more than a few rows come, a matrix is put
    into another order, which takes as long as a few steps and as much memory again.
    See `linear.FewRows` for the two ways.

    Args:
        model: a `Transformer`, or another one made of decoder layers.
    """
    unpacked = [part for part in _multiplied_each_step(model) if part.packed is None]
    try:
        for part in unpacked:
            part.pack()
        yield
    finally:
        for part in unpacked:
            part.unpack()


def _multiplied_each_step(model: nn.Module) -> list[Linear | MultiHeadAttention]:
    """List all but the keys and values of the source, projected once for all steps."""
    parts = [getattr(model, "lm_head", None)]
    for layer in model.modules():
        if isinstance(layer, DecoderLayer):
            parts += [layer.self_attn, layer.self_attn.out_proj]
            parts += [layer.cross_attn.q_proj, layer.cross_attn.out_proj]
            parts += layer.feed_forward.children()
    return [part for part in parts if isinstance(part, Linear | MultiHeadAttention)]
