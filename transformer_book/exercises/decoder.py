"""Graders of the chapter on the decoder and cross-attention."""

from functools import partial
from types import MappingProxyType

import torch
from torch import nn

from transformer_book.exercises.grading import Mistake, Seen, grader, is_missing
from transformer_lib import (
    DecoderLayer,
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    SublayerConnection,
    causal_mask,
    scaled_dot_product_attention,
)


@grader(
    # 2 is <eos>, 0 is padding.
    cases=lambda: [(torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]]), 1)],
    right="Every position reads the token before the one it must predict.",
    mistakes=lambda solve: {
        "the shape has changed: put one token in front and drop the last one.":
            [lambda target, bos_id: target[:, :-1],
             lambda target, bos_id: torch.cat([target[:, :1], target], dim=1)],
        "nothing is shifted: every position reads its own answer.":
            lambda target, bos_id: target.clone(),
        "the last column was moved to the front, as roll does, so the padded row "
        "starts with <pad>. Put bos_id there.":
            lambda target, bos_id: target.roll(1, dims=1),
        "this is shifted left: every position reads the token after its answer.":
            lambda target, bos_id: target.roll(-1, dims=1),
        "the first word is overwritten, but nothing is shifted.":
            lambda target, bos_id: target.index_fill(1, torch.tensor(0), bos_id),
        "every row must start with bos_id.":
            Seen(lambda result, target, bos_id: not (result[:, 0] == bos_id).all(),
                 [lambda target, bos_id: solve(target, 7)]),
    },
)  # fmt: skip
def check_shift(target, bos_id):
    """What the decoder reads.

    target (batch, length), each row ended by <eos> and perhaps padded, and bos_id ->
    (batch, length).
    """
    return target.roll(1, dims=1).index_fill(1, torch.tensor(0), bos_id)


@grader(
    cases=lambda: [([*(3 * torch.randn(3, 2, 4, 5, 7)).softmax(dim=-1)], 1, 3)],
    right="One layer, its first heads, one source position per target position.",
    mistakes=lambda solve: {
        "these are weights; return the index of the largest one.":
            lambda maps, layer, n: maps[layer][:, :n].mean(dim=1),
        "the heads are still separate; average over dim 1.":
            lambda maps, layer, n: maps[layer].argmax(dim=-1),
        "the maximum was taken over the target; take it over the last axis.":
            {"axis": 1},
        "all heads were averaged; average only the first n_heads.":
            lambda maps, layer, n: solve(maps, layer, None),
        "the last n_heads heads were averaged; average the first.": {"start": -3},
        "only the head with index n_heads was used; average the ones before it.":
            lambda maps, layer, n: solve(maps, layer, n + 1, start=n),
        "only head 0 was used; average the first n_heads.":
            lambda maps, layer, n: solve(maps, layer, 1),
        "this is the last layer; use the one asked for.":
            lambda maps, layer, n: solve(maps, -1, n),
        "all layers were averaged; use one.":
            lambda maps, layer, n: solve([sum(maps)], 0, n),
    },
)  # fmt: skip
def check_alignment(maps, layer, n_heads, start=0, axis=-1):
    """The source position that gets the most weight from each target position.

    A list with one tensor (batch, n_heads, tgt_len, src_len) per layer, the index of a
    layer, and how many of its first heads to average -> (batch, tgt_len).
    """
    stop = n_heads if start >= 0 else None
    return maps[layer][:, start:stop].mean(dim=1).argmax(dim=axis)


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
    layer = answer(*blocks, 0.0, norm_first)
    if is_missing(layer):
        return None
    if not isinstance(layer, nn.Module):
        raise Mistake(f"expected a module, but got {type(layer).__name__}.")
    n_norms = sum(isinstance(part, LayerNorm) for part in layer.modules())
    return layer(*given), n_norms


@grader(
    cases=_draw_two_sources,
    run=_run_two_sources,
    view=lambda result, *case: result[0],
    right="Back, across, across again, and think, each with its own add & norm.",
    mistakes=lambda solve: {
        "the second memory isn't read.": {"order": (0, 1, 3)},
        "the first memory isn't read.": {"order": (0, 2, 3)},
        "the second memory is read before the first.": {"order": (0, 2, 1, 3)},
        "self-attention must come first.": {"order": (1, 2, 0, 3)},
        "self-attention is missing.": {"order": (1, 2, 3)},
        "the feed-forward network is missing.": {"order": (0, 1, 2)},
        "both cross-attention blocks read the first memory.":
            [{"copied": {(2, 1): (1, 1)}},
             {"copied": {(2, 1): (1, 1), (2, 2): (1, 2)}}],
        "both memories get the first one's mask.": {"copied": {(2, 2): (1, 2)}},
        "both memories are read by the first cross-attention block.":
            {"copied": {(2, 0): (1, 0)}},
        "the causal mask is missing in self-attention.": {"copied": {(0, 2): (0, 1)}},
        "the masks of the memories are missing.":
            {"copied": {(1, 2): (0, 1), (2, 2): (0, 1)}},
        "keys and values must come from the memories, not from x.":
            {"copied": {(1, 1): (0, 1), (2, 1): (0, 1)}},
        "the residuals are missing: add each sub-layer's input to its output.":
            {"connect": lambda link, x, step: link.norm(step(x))},
        "no norm is used; each sub-layer needs one.":
            {"connect": lambda link, x, step: x + step(x)},
        "this is always post-norm: pass norm_first on.":
            {"connect": lambda link, x, step: link.norm(x + step(x))},
        "this is always pre-norm: pass norm_first on.":
            {"connect": lambda link, x, step: x + step(link.norm(x))},
        "there are {} layer norms, but each of the four sub-layers needs its own.":
            Seen(lambda result, *case: result[1] != 4 and result[1], [{"n_norms": 3}]),
    },
)  # fmt: skip
class check_two_sources(nn.Module):
    """A class: a decoder layer with two memories.

    (self_attn, first_attn, second_attn, feed_forward, dropout, norm_first) -> a layer
    whose forward takes x, two memories, their masks, and tgt_mask.
    """

    n_norms, order, copied = 4, (0, 1, 2, 3), MappingProxyType({})
    connect = staticmethod(lambda link, x, step: link(x, step))

    def __init__(self, back, first, second, feed_forward, *options):
        super().__init__()
        self.blocks = nn.ModuleList([back, first, second, feed_forward])
        self.links = nn.ModuleList(
            SublayerConnection(back.d_model, *options) for _ in range(self.n_norms)
        )

    def forward(self, x, first, second, first_mask, second_mask, tgt_mask):
        """(batch, tgt_len, d_model) and what is looked at -> the shape of x."""
        memories, masks = (None, first, second), (tgt_mask, first_mask, second_mask)
        looks = [[*look] for look in zip(self.blocks, memories, masks, strict=False)]
        for (look, part), (other, part_of_other) in self.copied.items():
            looks[look][part] = looks[other][part_of_other]
        steps = [*(partial(_look, *look) for look in looks), self.blocks[3]]
        for number in self.order:
            link = self.links[min(number, len(self.links) - 1)]
            x = self.connect(link, x, steps[number])
        return x


def _look(block, memory, mask, x):
    keys = x if memory is None else memory
    return block(x, keys, keys, mask)


def _draw_layer():
    """A small post-norm layer whose norms have gains and biases that can be seen."""
    blocks = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3), FeedForward(12, 20)
    layer = DecoderLayer(*blocks).eval().requires_grad_(False)
    for part in layer.modules():
        if isinstance(part, LayerNorm):
            nn.init.normal_(part.gain, mean=1.0, std=0.3)
            nn.init.normal_(part.bias, std=0.3)
    return [(layer, torch.randn(2, 5, 12), torch.randn(2, 7, 12))]


def _project_again(solve, layer, x, memory):
    """One position at a time, but what was projected is not kept."""
    for y in x.split(1, dim=1):
        layer.self_attn.k_proj(y)
    return solve(layer, x, memory)


def _count_positions(answer, layer, x, memory):
    """The result, and how many positions each call of an input projection got."""
    lengths = {}
    for name, module in layer.named_modules():
        if name.endswith(("q_proj", "k_proj", "v_proj")):
            calls = lengths[name] = []
            module.register_forward_pre_hook(
                lambda _, given, calls=calls: calls.append(given[0].size(1))
            )
    return answer(layer, x, memory), lengths


_OF_MEMORY = ("cross_attn.k_proj", "cross_attn.v_proj")


def _at_once(result, *case):
    """Name a projection that got several positions of x at once, and how many."""
    most = {name: max(calls, default=0) for name, calls in result[1].items()}
    wide = ((name, n) for name, n in most.items() if n > 1 and name not in _OF_MEMORY)
    return next(wide, None)


def _too_many(result, layer, x, memory):
    """How many positions went through which projection, and how many are enough."""
    enough = {n: (memory if n in _OF_MEMORY else x).size(1) for n in result[1]}
    found = ((sum(calls), n, enough[n]) for n, calls in result[1].items())
    return next((each for each in found if each[0] != each[2]), None)


@grader(
    cases=_draw_layer,
    run=_count_positions,
    view=lambda result, *case: result[0],
    right="One position per step, and nothing is projected twice.",
    mistakes=lambda solve: {
        "earlier positions saw later ones; each may only look back.":
            lambda layer, x, memory: layer(x, memory),
        "every position saw only itself; keep the keys and values of earlier ones.":
            lambda layer, x, memory: (
                torch.cat([layer(y, memory) for y in x.split(1, dim=1)], dim=1)),
        "{} got {} positions at once; pass one at a time.":
            Seen(_at_once,
                 [lambda layer, x, memory: layer(x, memory, None, causal_mask(5)),
                  lambda layer, x, memory: torch.cat(
                      [layer(x[:, :t], memory)[:, -1:] for t in range(1, 6)], dim=1)]),
        "{} positions went through {}; {} are enough. Keep what was projected.":
            Seen(_too_many,
                 [partial(_project_again, solve),
                  lambda layer, x, memory: (
                      solve(layer, x, memory + 0 * layer.cross_attn.v_proj(memory)))]),
    },
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
