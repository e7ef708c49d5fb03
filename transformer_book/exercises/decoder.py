"""Graders of the chapter on the decoder and cross-attention."""

from functools import partial

import torch
from torch import nn

from transformer_book.exercises.grading import fill, grader, is_missing
from transformer_lib import FeedForward, LayerNorm, MultiHeadAttention, causal_mask
from transformer_lib.model.attention import scaled_dot_product_attention
from transformer_lib.model.layers import DecoderLayer, SublayerConnection


@grader(
    lambda: [(torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]]), 1)],
    "Every position reads the token before the one it must predict.",
    ("nothing is shifted: every position reads its own answer.",
     lambda target, bos_id: target.clone()),
    ("this is shifted left: every position reads the token after its answer.",
     lambda target, bos_id: target.roll(-1, dims=1)),
    ("every row must start with bos_id; roll puts its last token there.",
     lambda target, bos_id: target.roll(1, dims=1)),
)  # fmt: skip
def check_shift(target, bos_id):
    """What the decoder reads.

    target (batch, length), each row ended by <eos> and perhaps padded, and bos_id ->
    (batch, length).
    """
    return target.roll(1, dims=1).index_fill(1, torch.tensor(0), bos_id)


@grader(
    lambda: [([*(3 * torch.randn(3, 2, 4, 5, 7)).softmax(dim=-1)], 1, 3)],
    "One layer, its first heads, one source position per target position.",
    ("the maximum was taken over the target; take it over the last axis.",
     lambda maps, layer, n: maps[layer][:, :n].mean(dim=1).argmax(dim=1)),
    ("average the first n_heads heads, and no others.",
     lambda maps, layer, n: check_alignment.solve(maps, layer, None)),
    ("use the layer that is asked for.",
     lambda maps, layer, n: check_alignment.solve(maps, -1, n)),
)  # fmt: skip
def check_alignment(maps, layer, n_heads):
    """The source position that gets the most weight from each target position.

    A list with one tensor (batch, n_heads, tgt_len, src_len) per layer, the index of a
    layer, and how many of its first heads to average -> (batch, tgt_len).
    """
    return maps[layer][:, :n_heads].mean(dim=1).argmax(dim=-1)


def _draw_two_sources():
    # One length for all, so that exchanged memories and masks can be named.
    x, first, second = torch.randn(3, 2, 5, 12)
    lengths = torch.tensor([[5, 3], [2, 4]])
    masks = (torch.arange(5) < lengths[..., None])[:, :, None, None]
    blocks = *(MultiHeadAttention(12, 3) for _ in range(3)), FeedForward(12, 20)
    given = x, first + 1, second - 1, *masks, causal_mask(5)
    return [(blocks, norm_first, given) for norm_first in (False, True)]


@torch.no_grad()
def _run_two_sources(answer, blocks, norm_first, given):
    """What the layer returns, and how many norms it has."""
    if is_missing(layer := answer(*blocks, 0.0, norm_first)):
        return None
    return layer(*given), sum(isinstance(part, LayerNorm) for part in layer.modules())


def _with_masks(x, first, second, first_mask, second_mask, causal):
    """What each attention looks at: keys and mask."""
    return (x, causal), (first, first_mask), (second, second_mask)


@grader(
    _draw_two_sources,
    "Back, across, across again, and think, each with its own add & norm.",
    ("the order is self-attention, first memory, second memory, feed-forward.",
     {"order": (0, 2, 1, 3)}, {"order": (1, 2, 0, 3)}),
    ("the second cross-attention must read the second memory, with its own mask.",
     {"looks": lambda x, a, b, *m: _with_masks(x, a, a, m[0], m[0], m[2])},
     {"looks": lambda x, a, b, *m: _with_masks(x, a, b, m[0], m[0], m[2])}),
    ("the causal mask is missing in self-attention.",
     {"looks": lambda *given: _with_masks(*given[:5], None)}),
    ("norm_first must be passed on to the four connections.",
     {"options": (0.0, False)}),
    ("each of the four sub-layers needs a layer norm of its own.", {"n_norms": 3}),
    run=_run_two_sources,
)  # fmt: skip
class check_two_sources(nn.Module):
    """A class: a decoder layer with two memories.

    (self_attn, first_attn, second_attn, feed_forward, dropout, norm_first) -> a layer
    whose forward takes x, two memories, their masks, and tgt_mask.
    """

    n_norms, order, options, looks = 4, range(4), None, staticmethod(_with_masks)

    def __init__(self, back, first, second, feed_forward, *options):
        super().__init__()
        self.blocks = nn.ModuleList([back, first, second, feed_forward])
        self.links = nn.ModuleList(
            SublayerConnection(back.d_model, *self.options or options)
            for _ in range(self.n_norms)
        )

    def forward(self, x, *given):
        """(batch, tgt_len, d_model) and what is looked at -> the shape of x."""
        for number in self.order:
            step = self.blocks[3] if number == 3 else partial(self.look, number, given)
            x = self.links[min(number, self.n_norms - 1)](x, step)
        return x

    def look(self, number, given, x):
        """One of the three attentions."""
        memory, mask = self.looks(x, *given)[number]
        return self.blocks[number](x, memory, memory, mask)


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
                lambda _, given, calls=calls: calls.append(given[0].size(1))
            )
    output = answer(layer, x, memory)
    source = [lengths.pop(f"cross_attn.{name}_proj") for name in "kv"]
    once = all(calls == [memory.size(1)] for calls in source)
    return output, once and all(calls == [1] * 5 for calls in lengths.values())


@grader(
    _draw_layer,
    "One position per step, and nothing is projected twice.",
    ("earlier positions saw later ones; each may only look back.",
     lambda layer, x, memory: layer(x, memory)),
    ("every position saw only itself; keep the keys and values of earlier ones.",
     lambda layer, x, memory: (
         torch.cat([layer(y, memory) for y in x.split(1, dim=1)], dim=1))),
    ("project every position once, when it comes, and keep what was projected.",
     lambda layer, x, memory: layer(x, memory, None, causal_mask(5)),
     lambda layer, x, memory: torch.cat(
         [layer(x[:, :t], memory)[:, -1:] for t in range(1, 6)], dim=1)),
    run=_count_positions,
)  # fmt: skip
def check_incremental(layer, x, memory):
    """Compute one position at a time, with every projection done once.

    A post-norm DecoderLayer, x (batch, tgt_len, d_model), memory (batch, src_len,
    d_model) -> what the layer returns with a causal mask.
    """

    def look(block, k, v, y):
        q, k, v = map(block.split_heads, (block.q_proj(y), k, v))
        z, _ = scaled_dot_product_attention(q, k, v)
        return block.out_proj(block.join_heads(z))

    back, across = layer.self_attn, layer.cross_attn
    source = across.k_proj(memory), across.v_proj(memory)
    keys, values, outputs = [], [], []
    for y in x.split(1, dim=1):
        keys.append(back.k_proj(y))
        values.append(back.v_proj(y))
        past = torch.cat(keys, dim=1), torch.cat(values, dim=1)
        y = layer.self_attn_connection(y, partial(look, back, *past))
        y = layer.cross_attn_connection(y, partial(look, across, *source))
        outputs.append(layer.feed_forward_connection(y, layer.feed_forward))
    return torch.cat(outputs, dim=1)
