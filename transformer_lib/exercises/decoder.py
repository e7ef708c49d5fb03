"""Graders of the chapter on the decoder and cross-attention."""

import torch
from torch import nn

from transformer_lib.exercises.grading import Grader, Seen
from transformer_lib.model.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from transformer_lib.model.layers import DecoderLayer, FeedForward
from transformer_lib.model.masks import causal_mask


def _shift(target, bos_id):
    return torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], dim=1)


check_shift = Grader(
    "target (batch, length), which ends with the end token and padding, bos_id -> the "
    "decoder's input (batch, length)",
    # 2 ends a sentence, 0 is padding.
    cases=lambda: [(torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]]), 1)],
    solution=_shift,
    right="Every position reads the token before the one it must predict.",
    mistakes={
        "the shape must stay: a token comes in front, and the last one leaves.":
            [lambda target, bos_id: target[:, :-1],
             lambda target, bos_id: torch.cat([target[:, :1], target], dim=1)],
        "nothing is shifted: every position would read its own answer.":
            lambda target, bos_id: target.clone(),
        "the last column came to the front, as roll does: the padded row now begins "
        "with <pad>. Put bos_id there.": lambda target, bos_id: target.roll(1, dims=1),
        "this is shifted left: every position would read a token after its answer.":
            lambda target, bos_id: target.roll(-1, dims=1),
        "the first word is overwritten, but nothing moved.":
            lambda target, bos_id: (
                torch.cat([_shift(target, 1)[:, :1], target[:, 1:]], 1)),
        "every row must begin with bos_id.":
            Seen(lambda result, target, bos_id: not (result[:, 0] == bos_id).all(),
                 lambda target, bos_id: _shift(target, 7)),
    },
)  # fmt: skip

SUBLAYERS = ("self_attn", "cross_attn", "feed_forward")


def _pre_norm(
    layer, x, memory, src_mask, tgt_mask, order=SUBLAYERS, connect=None, keys="memory"
):
    """The layer from its parts, in another order, or with other connections."""
    connect = connect or (lambda x, f, norm: x + f(norm(x)))
    parts = {
        "self_attn": lambda y: layer.self_attn(y, y, y, tgt_mask),
        "cross_attn": lambda y: layer.cross_attn(
            y, *(2 * [memory] if keys == "memory" else [y, y]), src_mask
        ),
        "feed_forward": layer.feed_forward,
    }
    for name in order:
        norm = layer.get_submodule(f"{name}_connection").norm
        x = connect(x, parts[name], norm)
    return x


def _draw_layer(norm_first):
    """A small layer whose norms have gains and biases that can be seen."""
    blocks = MultiHeadAttention(12, 3), MultiHeadAttention(12, 3)
    layer = DecoderLayer(*blocks, FeedForward(12, 20), norm_first=norm_first)
    for name in SUBLAYERS:
        norm = layer.get_submodule(f"{name}_connection").norm
        nn.init.normal_(norm.gain, mean=1.0, std=0.3)
        nn.init.normal_(norm.bias, std=0.3)
    return layer.eval().requires_grad_(False)


def _draw_pre_norm():
    # One length for both sides, so that swapped masks and sequences can be named.
    x, memory = 2 * torch.randn(2, 2, 5, 12)
    real = torch.arange(5) < torch.tensor([[5], [3]])
    masks = real[:, None, None], causal_mask(5)
    return [(_draw_layer(norm_first=True), x, memory + 1, *masks)]


check_pre_norm_layer = Grader(
    "a DecoderLayer, x (batch, tgt_len, d_model), memory (batch, src_len, d_model), "
    "src_mask, tgt_mask -> what the layer returns, written from its parts",
    cases=_draw_pre_norm,
    solution=_pre_norm,
    right="Only the query passes the norm; the memory had its own.",
    mistakes={
        "this is post-norm: the norm must come before each sub-layer.":
            {"connect": lambda x, f, norm: norm(x + f(x))},
        "the residual sums are missing: x + sub-layer(norm(x)).":
            {"connect": lambda x, f, norm: f(norm(x))},
        "no norm is used; each sub-layer has one.":
            {"connect": lambda x, f, norm: x + f(x)},
        "self-attention comes before cross-attention.":
            {"order": ("cross_attn", "self_attn", "feed_forward")},
        "the feed-forward network is missing.": {"order": SUBLAYERS[:2]},
        "cross-attention is missing.": {"order": SUBLAYERS[::2]},
        "the two masks are swapped: src_mask is for cross-attention.":
            lambda layer, x, memory, src, tgt: layer(x, memory, tgt, src),
        "the memory was normalized again; only the query passes the norm.":
            lambda layer, x, z, *masks: (
                layer(x, layer.cross_attn_connection.norm(z), *masks)),
        "the causal mask is missing in self-attention.":
            lambda layer, x, memory, src, tgt: layer(x, memory, src, None),
        "the padding mask is missing in cross-attention.":
            lambda layer, x, memory, src, tgt: layer(x, memory, None, tgt),
        "keys and values must come from the memory, not from x.": {"keys": "x"},
    },
)  # fmt: skip


def _look(maps, layer, n_heads, heads=slice):
    return maps[layer][:, heads(n_heads)].mean(dim=1).argmax(dim=-1)


check_alignment = Grader(
    "one tensor (batch, n_heads, tgt_len, src_len) a layer, the number of a layer, how "
    "many of its first heads to average -> the source position that each target "
    "position looks at most, (batch, tgt_len)",
    cases=lambda: [([*(3 * torch.randn(3, 2, 4, 5, 7)).softmax(dim=-1)], 1, 3)],
    solution=_look,
    right="One layer, its first heads, one source word for each position.",
    mistakes={
        "these are weights; return the index of the largest.":
            lambda maps, layer, n: maps[layer][:, :n].mean(dim=1),
        "the heads are still apart; average over dim 1.":
            lambda maps, layer, n: maps[layer].argmax(dim=-1),
        "the source is kept; take argmax over the last axis.":
            lambda maps, layer, n: maps[layer][:, :n].mean(dim=1).argmax(dim=1),
        "all heads were averaged; take the first n_heads only.":
            {"heads": lambda n: slice(None)},
        "the last heads were taken; fairseq keeps the first.":
            {"heads": lambda n: slice(-n, None)},
        "only the head with the number n_heads was taken; average those before it.":
            {"heads": lambda n: [n]},
        "only head 0 was taken; average the first n_heads.": {"heads": lambda n: [0]},
        "this is the last layer; take the one asked for.":
            lambda maps, layer, n: _look(maps, -1, n),
        "all layers were averaged; take one.":
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
        (_draw_layer(norm_first=False), torch.randn(2, 5, 12), torch.randn(2, 7, 12))
    ],
    run=_count_positions,
    view=lambda result, layer, x, memory: result[0],
    solution=_incremental,
    right="One position a step, and nothing is projected twice.",
    mistakes={
        "earlier positions have seen later ones; look back only.":
            lambda layer, x, memory: layer(x, memory),
        "every position saw itself only; keep the keys of earlier ones.":
            lambda layer, x, memory: (
                torch.cat([layer(y, memory) for y in x.split(1, dim=1)], dim=1)),
        "{} saw {} positions at once; pass one at a time.":
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
