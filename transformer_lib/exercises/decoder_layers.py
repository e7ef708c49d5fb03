"""Graders of the decoder layers that a reader writes out."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from transformer_lib.exercises.feedback import (
    Feedback,
    call,
    check_tensor,
    right,
    wrong,
)
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import DecoderLayer, FeedForward
from transformer_lib.model.masks import causal_mask


def check_pre_norm_layer(answer: Callable[..., Tensor]) -> Feedback:
    """Grade a pre-norm decoder layer written from its parts.

    Args:
        answer: takes a DecoderLayer, x (batch, tgt_len, d_model), memory (batch,
            src_len, d_model), src_mask and tgt_mask; returns x's shape.
    """
    # One length for both sides, so that exchanged masks and sequences can be named.
    layer, x, memory = _layer(norm_first=True), *_sequences(tgt_len=5, src_len=5)
    src_mask = (torch.arange(5) < torch.tensor([[5], [3]]))[:, None, None]
    masks = src_mask, causal_mask(5)
    with torch.no_grad():
        result = call(answer, layer, x.clone(), memory.clone(), *masks)
        if problem := check_tensor(result, tuple(x.shape)):
            return problem
        expected = _run(layer, x, memory, *masks)
        if same(result, expected):
            return right("Only the query passes the norm; the memory had its own.")
        exchanged = {"src_mask": masks[1], "tgt_mask": masks[0]}
        again = {"memory": layer.cross_attn_connection.norm(memory)}
        wrong_runs = {
            "this is post-norm: the norm must come before each sub-layer.": "after",
            "the residual sums are missing: x + sub-layer(norm(x)).": "alone",
            "no norm is used; each sub-layer has one.": "none",
            "self-attention comes before cross-attention.": (1, 0, 2),
            "the feed-forward network is missing.": (0, 1),
            "cross-attention is missing.": (0, 2),
            "the two masks are exchanged: src_mask is for cross-attention.": exchanged,
            "the memory was normalized again; only the query passes the norm.": again,
            "the causal mask is missing in self-attention.": {"tgt_mask": None},
            "the padding mask is missing in cross-attention.": {"src_mask": None},
            "keys and values must come from the memory, not from x.": {"memory": None},
        }
        mistakes = {
            message: _run(layer, x, memory, *masks, change)
            for message, change in wrong_runs.items()
        }
    if problem := named(result, mistakes):
        return problem
    return wrong(
        f"the result differs from the layer's by up to "
        f"{(result - expected).abs().max().item():.2g}; compare after each sub-layer."
    )


def check_incremental(
    answer: Callable[[DecoderLayer, Tensor, Tensor], Tensor],
) -> Feedback:
    """Grade a layer run one position at a time, with every projection done once.

    Args:
        answer: takes a post-norm DecoderLayer, x (batch, tgt_len, d_model) and memory
            (batch, src_len, d_model); returns x's shape.
    """
    layer, x, memory = _layer(norm_first=False), *_sequences(tgt_len=5, src_len=7)
    with torch.no_grad():
        with _count_rows(layer) as seen:
            result = call(answer, layer, x.clone(), memory.clone())
        if problem := check_tensor(result, tuple(x.shape)):
            return problem
        expected = layer(x, memory, tgt_mask=causal_mask(5))
        uncausal = layer(x, memory)
        alone = torch.cat([layer(y, memory) for y in x.split(1, dim=1)], dim=1)
    if same(result, uncausal):
        return wrong("earlier positions have seen later ones; look back only.")
    if same(result, alone):
        return wrong("every position saw itself only; keep the keys of earlier ones.")
    if not same(result, expected):
        off = (result - expected).abs().amax(dim=(0, 2))
        first = (off > 1e-5).nonzero()[0].item()
        return wrong(f"position {first} is the first that differs from the full pass.")
    for name, lengths in seen.items():
        from_memory = name in ("cross_attn.k_proj", "cross_attn.v_proj")
        if not from_memory and max(lengths, default=1) > 1:
            return wrong(
                f"the result is right, but {name} saw {max(lengths)} positions at "
                "once; pass one at a time."
            )
        enough = 7 if from_memory else 5
        if sum(lengths) != enough:
            return wrong(
                f"the result is right, but {sum(lengths)} positions went through "
                f"{name}, and {enough} are enough; keep what was projected."
            )
    return right("One position a step, and nothing is projected twice.")


@contextmanager
def _count_rows(layer: DecoderLayer) -> Iterator[dict[str, list[int]]]:
    """Record how many positions each call of an input projection gets."""
    lengths: dict[str, list[int]] = {}
    handles = []
    for name, module in layer.named_modules():
        if name.endswith(("q_proj", "k_proj", "v_proj")):
            calls = lengths.setdefault(name, [])
            handles.append(
                module.register_forward_pre_hook(
                    lambda _, inputs, calls=calls: calls.append(inputs[0].size(1))
                )
            )
    try:
        yield lengths
    finally:
        for handle in handles:
            handle.remove()


def _layer(norm_first: bool) -> DecoderLayer:
    """Make a small layer whose norms have gains and biases that can be seen."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        blocks = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3)
        layer = DecoderLayer(*blocks, FeedForward(12, 20), norm_first=norm_first)
        for connection in _connections(layer):
            nn.init.normal_(connection.norm.gain, mean=1.0, std=0.3)
            nn.init.normal_(connection.norm.bias, std=0.3)
    return layer.eval()


def _connections(layer: DecoderLayer) -> tuple[nn.Module, nn.Module, nn.Module]:
    return (
        layer.self_attn_connection,
        layer.cross_attn_connection,
        layer.feed_forward_connection,
    )


def _sequences(tgt_len: int, src_len: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    x = 2 * torch.randn(2, tgt_len, 12, generator=generator)
    return x, 2 * torch.randn(2, src_len, 12, generator=generator) + 1


def _run(
    layer: DecoderLayer,
    x: Tensor,
    memory: Tensor,
    src_mask: Tensor,
    tgt_mask: Tensor,
    change: str | tuple[int, ...] | Mapping[str, Tensor | None] = "before",
) -> Tensor:
    """Run the layer in pre-norm, or with one change.

    The change is another place of the norms, another order of the sub-layers, or
    another input. With None for a memory, cross-attention looks at the target.
    """
    given = {"memory": memory, "src_mask": src_mask, "tgt_mask": tgt_mask}
    given |= change if isinstance(change, Mapping) else {}

    def cross(y: Tensor) -> Tensor:
        source = y if given["memory"] is None else given["memory"]
        return layer.cross_attn(y, source, source, given["src_mask"])

    def look_back(y: Tensor) -> Tensor:
        return layer.self_attn(y, y, y, given["tgt_mask"])

    for place in change if isinstance(change, tuple) else (0, 1, 2):
        f = (look_back, cross, layer.feed_forward)[place]
        norm = _connections(layer)[place].norm
        if change == "after":
            x = norm(x + f(x))
        else:
            part = f(x if change == "none" else norm(x))
            x = part if change == "alone" else x + part
    return x


def named(result: Tensor, mistakes: Mapping[str, Tensor]) -> Feedback | None:
    """Name the mistake whose result this is; None if it is another."""
    for message, mistake in mistakes.items():
        if same(result, mistake):
            return wrong(message)
    return None


def same(result: Tensor, expected: Tensor) -> bool:
    """Whether both are equal up to rounding, whatever their types."""
    return torch.allclose(result.double(), expected.double(), rtol=0, atol=1e-5)
