"""Graders of the chapter on the decoder and cross-attention."""

from functools import partial

import torch
from torch import nn

from transformer_book.exercises.grading import Grader, Mistake, Seen
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


def _shift(target, bos_id):
    return torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], dim=1)


check_shift = Grader(
    "target (batch, length), each row ended by <eos> and perhaps padded, and bos_id "
    "-> what the decoder reads, (batch, length)",
    # 2 is <eos>, 0 is padding.
    cases=lambda: [(torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]]), 1)],
    solution=_shift,
    right="Every position reads the token before the one it must predict.",
    mistakes={
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
            lambda target, bos_id: (
                torch.cat([_shift(target, 1)[:, :1], target[:, 1:]], 1)),
        "every row must start with bos_id.":
            Seen(lambda result, target, bos_id: not (result[:, 0] == bos_id).all(),
                 lambda target, bos_id: _shift(target, 7)),
    },
)  # fmt: skip


class _TwoSources(nn.Module):
    """A decoder layer with two memories, or one with a mistake."""

    def __init__(
        self,
        self_attn,
        first_attn,
        second_attn,
        feed_forward,
        dropout=0.1,
        norm_first=False,
        connect=None,
        change=None,
        order=(0, 1, 2, 3),
        n_norms=4,
    ):
        super().__init__()
        blocks = self_attn, first_attn, second_attn, feed_forward
        self.blocks = nn.ModuleList(blocks)
        links = [
            SublayerConnection(self_attn.d_model, dropout, norm_first)
            for _ in range(n_norms)
        ]
        self.connections = nn.ModuleList(links)
        self.norm_first = norm_first
        self.connect, self.change, self.order = connect, change, order

    def forward(
        self, x, first, second, first_mask=None, second_mask=None, tgt_mask=None
    ):
        looks = [(0, None, tgt_mask), (1, first, first_mask), (2, second, second_mask)]
        looks = self.change(looks) if self.change else looks
        steps = [partial(self._look, *look) for look in looks]
        steps.append(self.blocks[3])
        for number in self.order:
            link = self.connections[min(number, len(self.connections) - 1)]
            if self.connect:
                x = self.connect(x, steps[number], link.norm)
            else:
                x = link(x, steps[number])
        return x

    def _look(self, block, memory, mask, x):
        keys = x if memory is None else memory
        return self.blocks[block](x, keys, keys, mask)


def _at(index, **parts):
    """A change of one look: its block, its memory or its mask."""

    def change(looks):
        look = dict(zip(("block", "memory", "mask"), looks[index], strict=True))
        look |= {name: make(looks) for name, make in parts.items()}
        return [*looks[:index], tuple(look.values()), *looks[index + 1 :]]

    return change


def _draw_two_sources():
    # One length for all, so that exchanged memories and masks can be named.
    x, first, second = torch.randn(3, 2, 5, 12)
    masks = [
        (torch.arange(5) < torch.tensor(lengths)[:, None])[:, None, None]
        for lengths in ([5, 3], [2, 4])
    ]
    blocks = *(MultiHeadAttention(12, 3) for _ in range(3)), FeedForward(12, 20)
    for block in blocks:
        block.requires_grad_(False)
    given = x, first + 1, second - 1, *masks, causal_mask(5)
    return [(blocks, norm_first, given) for norm_first in (False, True)]


def _run_two_sources(answer, blocks, norm_first, given):
    layer = answer(*blocks, 0.0, norm_first)
    if layer is None or layer is ...:
        return None
    if not isinstance(layer, nn.Module):
        raise Mistake(f"expected a module, but got {type(layer).__name__}.")
    n_norms = sum(isinstance(part, LayerNorm) for part in layer.modules())
    return layer(*given), n_norms


check_two_sources = Grader(
    "a class: (self_attn, first_attn, second_attn, feed_forward, dropout, norm_first) "
    "-> a layer whose forward takes x, two memories, their masks, and tgt_mask",
    cases=_draw_two_sources,
    run=_run_two_sources,
    view=lambda result, *case: result[0],
    solution=_TwoSources,
    right="Back, across, across again, and think, each with its own add & norm.",
    mistakes={
        "the second memory isn't read.": {"order": (0, 1, 3)},
        "the first memory isn't read.": {"order": (0, 2, 3)},
        "the second memory is read before the first.": {"order": (0, 2, 1, 3)},
        "self-attention must come first.": {"order": (1, 2, 0, 3)},
        "self-attention is missing.": {"order": (1, 2, 3)},
        "the feed-forward network is missing.": {"order": (0, 1, 2)},
        "both cross-attention blocks read the first memory.":
            [{"change": _at(2, memory=lambda looks: looks[1][1])},
             {"change": _at(2, memory=lambda looks: looks[1][1],
                            mask=lambda looks: looks[1][2])}],
        "both memories get the first one's mask.":
            {"change": _at(2, mask=lambda looks: looks[1][2])},
        "both memories are read by the first cross-attention block.":
            {"change": _at(2, block=lambda looks: 1)},
        "the causal mask is missing in self-attention.":
            {"change": _at(0, mask=lambda looks: None)},
        "the masks of the memories are missing.":
            {"change": lambda looks: [looks[0], *((*look[:2], None)
                                                  for look in looks[1:])]},
        "keys and values must come from the memories, not from x.":
            {"change": lambda looks: [looks[0], *((look[0], None, look[2])
                                                  for look in looks[1:])]},
        "the residuals are missing: add each sub-layer's input to its output.":
            {"connect": lambda x, step, norm: norm(step(x))},
        "no norm is used; each sub-layer needs one.":
            {"connect": lambda x, step, norm: x + step(x)},
        "this is always post-norm: pass norm_first on.":
            {"connect": lambda x, step, norm: norm(x + step(x))},
        "this is always pre-norm: pass norm_first on.":
            {"connect": lambda x, step, norm: x + step(norm(x))},
        "there are {} layer norms, but each of the four sub-layers needs its own.":
            Seen(lambda result, *case: result[1] != 4 and result[1],
                 partial(_TwoSources, n_norms=3)),
    },
)  # fmt: skip


def _draw_layer():
    """A small post-norm layer whose norms have gains and biases that can be seen."""
    blocks = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3)
    layer = DecoderLayer(*blocks, FeedForward(12, 20))
    for part in layer.modules():
        if isinstance(part, LayerNorm):
            nn.init.normal_(part.gain, mean=1.0, std=0.3)
            nn.init.normal_(part.bias, std=0.3)
    return layer.eval().requires_grad_(False)


def _look(maps, layer, n_heads, heads=slice):
    return maps[layer][:, heads(n_heads)].mean(dim=1).argmax(dim=-1)


check_alignment = Grader(
    "a list with one tensor (batch, n_heads, tgt_len, src_len) per layer, the index of "
    "a layer, and how many of its first heads to average -> the source position that "
    "gets the most weight from each target position, (batch, tgt_len)",
    cases=lambda: [([*(3 * torch.randn(3, 2, 4, 5, 7)).softmax(dim=-1)], 1, 3)],
    solution=_look,
    right="One layer, its first heads, one source position per target position.",
    mistakes={
        "these are weights; return the index of the largest one.":
            lambda maps, layer, n: maps[layer][:, :n].mean(dim=1),
        "the heads are still separate; average over dim 1.":
            lambda maps, layer, n: maps[layer].argmax(dim=-1),
        "the maximum was taken over the target; take it over the last axis.":
            lambda maps, layer, n: maps[layer][:, :n].mean(dim=1).argmax(dim=1),
        "all heads were averaged; average only the first n_heads.":
            {"heads": lambda n: slice(None)},
        "the last n_heads heads were averaged; average the first.":
            {"heads": lambda n: slice(-n, None)},
        "only the head with index n_heads was used; average the ones before it.":
            {"heads": lambda n: [n]},
        "only head 0 was used; average the first n_heads.": {"heads": lambda n: [0]},
        "this is the last layer; use the one asked for.":
            lambda maps, layer, n: _look(maps, -1, n),
        "all layers were averaged; use one.":
            lambda maps, layer, n: _look([sum(maps)], 0, n),
    },
)  # fmt: skip


def _incremental(layer, x, memory):
    """Keep what was projected, for both attention blocks."""

    def look(block, connection, y, k, v):
        q, k, v = map(block.split_heads, (block.q_proj(y), k, v))
        z, _ = scaled_dot_product_attention(q, k, v)
        return connection.norm(y + block.out_proj(block.join_heads(z)))

    back, across = layer.self_attn, layer.cross_attn
    source = across.k_proj(memory), across.v_proj(memory)
    keys, values, outputs = [], [], []
    for y in x.split(1, dim=1):
        keys.append(back.k_proj(y))
        values.append(back.v_proj(y))
        past = torch.cat(keys, dim=1), torch.cat(values, dim=1)
        y = look(back, layer.self_attn_connection, y, *past)
        y = look(across, layer.cross_attn_connection, y, *source)
        outputs.append(layer.feed_forward_connection(y, layer.feed_forward))
    return torch.cat(outputs, dim=1)


def _project_again(layer, x, memory):
    """One position at a time, but what was projected is not kept."""
    for t in range(x.size(1)):
        layer.self_attn.k_proj(x[:, t : t + 1])
    return _incremental(layer, x, memory)


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


def _at_once(result, layer, x, memory):
    """Name a projection that got several positions of x at once, and how many."""
    most = {name: max(calls, default=0) for name, calls in result[1].items()}
    wide = ((name, n) for name, n in most.items() if n > 1 and name not in _OF_MEMORY)
    return next(wide, None)


def _too_many(result, layer, x, memory):
    """How many positions went through which projection, and how many are enough."""
    for name, calls in result[1].items():
        enough = (memory if name in _OF_MEMORY else x).size(1)
        if sum(calls) != enough:
            return sum(calls), name, enough
    return None


check_incremental = Grader(
    "a post-norm DecoderLayer, x (batch, tgt_len, d_model), memory (batch, src_len, "
    "d_model) -> what the layer returns with a causal mask, computed one position at a "
    "time, with every projection done once",
    cases=lambda: [
        (_draw_layer(), torch.randn(2, 5, 12), torch.randn(2, 7, 12))
    ],
    run=_count_positions,
    view=lambda result, layer, x, memory: result[0],
    solution=_incremental,
    right="One position per step, and nothing is projected twice.",
    mistakes={
        "earlier positions saw later ones; each may only look back.":
            lambda layer, x, memory: layer(x, memory),
        "every position saw only itself; keep the keys and values of earlier ones.":
            lambda layer, x, memory: (
                torch.cat([layer(y, memory) for y in x.split(1, dim=1)], dim=1)),
        "{} got {} positions at once; pass one at a time.":
            Seen(_at_once,
                 [lambda layer, x, z: layer(x, z, None, causal_mask(5)),
                  lambda layer, x, z: torch.cat(
                      [layer(x[:, : t + 1], z)[:, -1:] for t in range(5)], dim=1)]),
        "{} positions went through {}; {} are enough. Keep what was projected.":
            Seen(_too_many,
                 [_project_again,
                  lambda layer, x, z: (
                      _incremental(layer, x, z + 0 * layer.cross_attn.v_proj(z)))]),
    },
)  # fmt: skip
