"""Graders of the chapter on the decoder and cross-attention."""

from functools import partial

import torch
from torch import nn

from transformer_book.exercises.grading import fill, grader, is_missing
from transformer_lib.model.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from transformer_lib.model.layers import (
    DecoderLayer,
    FeedForward,
    LayerNorm,
    SublayerConnection,
)
from transformer_lib.model.masks import causal_mask


@grader(
    cases=lambda: [(torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]]), 1)],
    right="Every position reads the token before the one it must predict.",
)
def check_shift(target, bos_id):
    """What the decoder reads.

    target (batch, length), each row ended by <eos> and perhaps padded, and bos_id ->
    (batch, length).
    """
    return torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], dim=1)


check_shift.mistake(
    "nothing is shifted: every position reads its own answer.",
    lambda target, bos_id: target.clone(),
)
check_shift.mistake(
    "this is shifted left: every position reads the token after its answer.",
    lambda target, bos_id: target.roll(-1, dims=1),
)
check_shift.mistake(
    "every row must start with bos_id; roll puts its last token there.",
    lambda target, bos_id: target.roll(1, dims=1),
)


@grader(
    cases=lambda: [([*(3 * torch.randn(3, 2, 4, 5, 7)).softmax(dim=-1)], 1, 3)],
    right="One layer, its first heads, one source position per target position.",
)
def check_alignment(maps, layer, n_heads):
    """The source position that gets the most weight from each target position.

    A list with one tensor (batch, n_heads, tgt_len, src_len) per layer, the index of a
    layer, and how many of its first heads to average -> (batch, tgt_len).
    """
    return maps[layer][:, :n_heads].mean(dim=1).argmax(dim=-1)


check_alignment.mistake(
    "the maximum was taken over the target; take it over the last axis.",
    lambda maps, layer, n_heads: maps[layer][:, :n_heads].mean(dim=1).argmax(dim=1),
)
check_alignment.mistake(
    "average the first n_heads heads, and no others.",
    lambda maps, layer, n_heads: check_alignment.solve(maps, layer, None),
)
check_alignment.mistake(
    "use the layer that is asked for.",
    lambda maps, layer, n_heads: check_alignment.solve(maps, -1, n_heads),
)


def _draw_two_sources():
    # One length for all, so that exchanged memories and masks can be named.
    x, first, second = torch.randn(3, 2, 5, 12)
    lengths = torch.tensor([[5, 3], [2, 4]])
    masks = (torch.arange(5) < lengths[..., None])[:, :, None, None]
    blocks = *(MultiHeadAttention(12, 3) for _ in range(3)), FeedForward(12, 20)
    inputs = x, first + 1, second - 1, *masks, causal_mask(5)
    return [(blocks, norm_first, inputs) for norm_first in (False, True)]


@torch.no_grad()
def _run_two_sources(answer, blocks, norm_first, inputs):
    """What the layer returns, and how many norms it has."""
    if is_missing(layer := answer(*blocks, 0.0, norm_first)):
        return None
    return layer(*inputs), sum(isinstance(part, LayerNorm) for part in layer.modules())


@grader(
    cases=_draw_two_sources,
    right="Back, across, across again, and think, each with its own add & norm.",
    run=_run_two_sources,
)
class check_two_sources(nn.Module):
    """A class: a decoder layer with two memories.

    (self_attn, first_attn, second_attn, feed_forward, dropout, norm_first) -> a layer
    whose forward takes x, two memories, their masks, and tgt_mask.
    """

    def __init__(
        self, self_attn, first_attn, second_attn, feed_forward, dropout, norm_first
    ):
        super().__init__()
        self.self_attn, self.feed_forward = self_attn, feed_forward
        self.first_attn, self.second_attn = first_attn, second_attn
        self.connections = nn.ModuleList(
            SublayerConnection(self_attn.d_model, dropout, norm_first) for _ in range(4)
        )

    def forward(self, x, first, second, first_mask, second_mask, tgt_mask):
        """(batch, tgt_len, d_model) and what is looked at -> the shape of x."""
        back, across, across_again, think = self.connections
        x = back(x, lambda x: self.self_attn(x, x, x, tgt_mask))
        x = across(x, lambda x: self.first_attn(x, first, first, first_mask))
        x = across_again(x, lambda x: self.second_attn(x, second, second, second_mask))
        return think(x, self.feed_forward)


class _SecondMemoryFirst(check_two_sources.solve):
    def forward(self, x, first, second, first_mask, second_mask, tgt_mask):
        back, across, across_again, think = self.connections
        x = back(x, lambda x: self.self_attn(x, x, x, tgt_mask))
        x = across_again(x, lambda x: self.second_attn(x, second, second, second_mask))
        x = across(x, lambda x: self.first_attn(x, first, first, first_mask))
        return think(x, self.feed_forward)


class _SelfAttentionLast(check_two_sources.solve):
    def forward(self, x, first, second, first_mask, second_mask, tgt_mask):
        back, across, across_again, think = self.connections
        x = across(x, lambda x: self.first_attn(x, first, first, first_mask))
        x = across_again(x, lambda x: self.second_attn(x, second, second, second_mask))
        x = back(x, lambda x: self.self_attn(x, x, x, tgt_mask))
        return think(x, self.feed_forward)


class _FirstMemoryTwice(check_two_sources.solve):
    def forward(self, x, first, second, first_mask, second_mask, tgt_mask):
        return super().forward(x, first, first, first_mask, first_mask, tgt_mask)


class _FirstMaskTwice(check_two_sources.solve):
    def forward(self, x, first, second, first_mask, second_mask, tgt_mask):
        return super().forward(x, first, second, first_mask, first_mask, tgt_mask)


class _WithoutCausalMask(check_two_sources.solve):
    def forward(self, x, first, second, first_mask, second_mask, tgt_mask):
        return super().forward(x, first, second, first_mask, second_mask, None)


class _ThreeNorms(check_two_sources.solve):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.connections[3] = self.connections[2]


check_two_sources.mistake(
    "the order is self-attention, first memory, second memory, feed-forward.",
    _SecondMemoryFirst,
    _SelfAttentionLast,
)
check_two_sources.mistake(
    "the second cross-attention must read the second memory, with its own mask.",
    _FirstMemoryTwice,
    _FirstMaskTwice,
)
check_two_sources.mistake(
    "the causal mask is missing in self-attention.", _WithoutCausalMask
)
check_two_sources.mistake(
    "norm_first must be passed on to the four connections.",
    lambda *arguments: check_two_sources.solve(*arguments[:-1], norm_first=False),
)
check_two_sources.mistake(
    "each of the four sub-layers needs a layer norm of its own.", _ThreeNorms
)


def _draw_layer():
    """A small post-norm layer whose norms have gains and biases that can be seen."""
    blocks = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3), FeedForward(12, 20)
    layer = fill(DecoderLayer(*blocks)).eval()
    return [(layer, torch.randn(2, 5, 12), torch.randn(2, 7, 12))]


def _count_positions(answer, layer, x, memory):
    """The result, and whether each position was projected once, one at a time."""
    lengths = {}
    for name, module in layer.named_modules():
        if name.endswith(("q_proj", "k_proj", "v_proj")):
            calls = lengths[name] = []
            module.register_forward_pre_hook(
                lambda _, inputs, calls=calls: calls.append(inputs[0].size(1))
            )
    output = answer(layer, x, memory)
    source = [lengths.pop(f"cross_attn.{name}_proj") for name in "kv"]
    once = all(calls == [memory.size(1)] for calls in source)
    return output, once and all(calls == [1] * 5 for calls in lengths.values())


@grader(
    cases=_draw_layer,
    right="One position per step, and nothing is projected twice.",
    run=_count_positions,
)
def check_incremental(layer, x, memory):
    """Compute one position at a time, with every projection done once.

    A post-norm DecoderLayer, x (batch, tgt_len, d_model), memory (batch, src_len,
    d_model) -> what the layer returns with a causal mask.
    """

    def attend(block, keys, values, y):
        q, k, v = map(block.split_heads, (block.q_proj(y), keys, values))
        z, _ = scaled_dot_product_attention(q, k, v)
        return block.out_proj(block.join_heads(z))

    back, across = layer.self_attn, layer.cross_attn
    source = across.k_proj(memory), across.v_proj(memory)
    keys, values, outputs = [], [], []
    for y in x.split(1, dim=1):
        keys.append(back.k_proj(y))
        values.append(back.v_proj(y))
        past = torch.cat(keys, dim=1), torch.cat(values, dim=1)
        y = layer.self_attn_connection(y, partial(attend, back, *past))
        y = layer.cross_attn_connection(y, partial(attend, across, *source))
        outputs.append(layer.feed_forward_connection(y, layer.feed_forward))
    return torch.cat(outputs, dim=1)


def _position_by_position(layer, x, memory):
    return torch.cat([layer(y, memory) for y in x.split(1, dim=1)], dim=1)


def _prefix_by_prefix(layer, x, memory):
    last = [layer(x[:, :t], memory)[:, -1:] for t in range(1, 6)]
    return torch.cat(last, dim=1)


check_incremental.mistake(
    "earlier positions saw later ones; each may only look back.",
    lambda layer, x, memory: layer(x, memory),
)
check_incremental.mistake(
    "every position saw only itself; keep the keys and values of earlier ones.",
    _position_by_position,
)
check_incremental.mistake(
    "project every position once, when it comes, and keep what was projected.",
    lambda layer, x, memory: layer(x, memory, None, causal_mask(5)),
    _prefix_by_prefix,
)
