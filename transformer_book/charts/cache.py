"""What a decoder's cache holds while it writes: step through time, layers and heads.

Every number comes from a real model that decodes a real sentence, one token a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair
import torch
from torch import Tensor

from transformer_book.charts import parts
from transformer_lib import Transformer, record_attention
from transformer_lib.generation import IncrementalDecoder, without_dropout

WIDTH, ROW, BARS, LABEL = 176, 15, 44, 62  # pixels
BLOCKS = {"self_attn": "self-attention", "cross_attn": "cross-attention"}


@dataclass(frozen=True)
class Entries:
    """What one attention block has kept when all tokens are read.

    Attributes:
        layer: number of the decoder layer, from 0.
        block: "self_attn" or "cross_attn".
        keys_values: (2, n_heads, k_len, d_head)
        weights: (n_heads, n_steps, k_len), what each step's query gave to each entry;
            0 for entries that were not there yet.
    """

    layer: int
    block: str
    keys_values: Tensor
    weights: Tensor


def record_cache(model: Transformer, src: Tensor, tgt_in: Tensor) -> list[Entries]:
    """Decode with a cache, one token a step, and copy what is in it.

    Args:
        model: decodes without dropout.
        src: (1, src_len), ids.
        tgt_in: (1, n_steps), ids of the tokens that are read.

    Returns:
        Two entries for each layer: self-attention, then cross-attention.
    """
    maps: dict[str, list[Tensor]] = {}
    decoder = IncrementalDecoder(model)
    with torch.no_grad(), without_dropout(model):
        decoder.prefill(src)
        for token in tgt_in.split(1, dim=1):
            with record_attention(model.decoder) as weights:
                decoder.read(token)
            for name, row in weights.items():  # (1, n_heads, 1, k_len)
                maps.setdefault(name, []).append(row[0, :, 0])
    found = []
    for number, layer in enumerate(model.decoder.layers):
        for block in BLOCKS:
            attention = getattr(layer, block)
            cache = decoder.cache if block == "self_attn" else decoder.cache.source
            stored = cache[attention][:, 0]  # (2, n_heads, k_len, d_head)
            rows = maps[f"layers.{number}.{block}"]
            weights = torch.zeros(attention.n_heads, len(rows), stored.size(2))
            for step, row in enumerate(rows):
                weights[:, step, : row.size(-1)] = row
            found.append(Entries(number, block, stored, weights))
    return found


def tokens_of_keys(decoder: IncrementalDecoder) -> Tensor:
    """Say which tokens a decoder has read, from the keys of its first layer.

    There a key depends on its token and position alone. So every token is projected
    at every position, and the nearest key tells.

    Args:
        decoder: that has read at least 1 token.

    Returns:
        (n_rows, length), ids.

    Raises:
        ValueError: a key belongs to no token at its position.
    """
    model, layer = decoder.model, decoder.model.decoder.layers[0]
    every = torch.arange(model.config.tgt_vocab_size)[:, None]
    x = model.tgt_embeddings(every.expand(-1, decoder.length))
    if layer.self_attn_connection.norm_first:
        x = layer.self_attn_connection.norm(x)
    keys = layer.self_attn.split_heads(layer.self_attn.k_proj(x))
    kept = decoder.cache[layer.self_attn][0]  # (n_rows, n_heads, length, d_head)
    kept, keys = (each.permute(2, 0, 1, 3).flatten(2) for each in (kept, keys))
    gaps, tokens = torch.cdist(kept, keys).min(dim=-1)  # (length, n_rows)
    if (gaps > 1e-3 * keys.norm(dim=-1).max()).any():
        raise ValueError("a key in the cache belongs to no token at its position")
    return tokens.T


def cache_explorer(
    model: Transformer,
    src: Tensor,
    tgt_in: Tensor,
    tokens: tuple[Sequence[str], Sequence[str]],
) -> parts.VConcatChart:
    """Step through decoding: what is kept, what is new, and what the query reads.

    Args:
        model: decodes without dropout.
        src: (1, src_len), ids.
        tgt_in: (1, n_steps), ids of the tokens that are read.
        tokens: src_len and n_steps names.

    Raises:
        ValueError: another count of names.
    """
    parts.require_names((src.size(1), tgt_in.size(1)), *tokens)
    rows, limit = [], 0.0
    for entries in record_cache(model, src, tgt_in):
        limit = max(limit, entries.keys_values.abs().max().item())
        names = tokens[1] if entries.block == "self_attn" else tokens[0]
        for head, (keys, values) in enumerate(entries.keys_values.transpose(0, 1)):
            for position, name in enumerate(names):
                row = {"layer": f"{entries.layer}", "block": BLOCKS[entries.block]}
                row |= {"head": head, "position": position, "token": name}
                row["keys"] = parts.join_numbers(keys[position])
                row["values"] = parts.join_numbers(values[position])
                row["weights"] = parts.join_numbers(entries.weights[head, :, position])
                rows.append(row)

    n_steps = tgt_in.size(1)
    params = [
        parts.fixed("read", list(tokens[1])),
        parts.fixed("source", list(tokens[0])),
        parts.slider("step", "step", 1, n_steps, min(4, n_steps)),
        parts.select("layer", [*map(str, range(len(model.decoder.layers)))]),
        parts.slider("head", "head", 0, model.config.n_heads - 1),
        parts.select("part", ["keys", "values"]),
    ]
    upper = (
        "['step ' + step + ' reads ' + read[step - 1] + ' at position ' + (step - 1), "
        "'self-attention: ' + (step - 1) + ' kept, 1 new, ' + "
        f"({n_steps} - step) + ' free']"
    )
    lower = (
        f"['cross-attention: ' + (step > 1 ? '{len(tokens[0])} kept, none new' : "
        f"'0 kept, {len(tokens[0])} new')]"
    )
    panels = [
        _panel("self-attention", n_steps, limit, upper),
        _panel("cross-attention", len(tokens[0]), limit, lower),
    ]
    chart = parts.VConcatChart(vconcat=panels, spacing=18)
    columns = ["layer", "block", "head", "position", "token", ("keys", "key")]
    columns += [("values", "value"), ("weights", "weight it gets, step by step")]
    return parts.finish(chart, rows, params, columns)


def _panel(block: str, length: int, limit: float, title: str) -> altair.HConcatChart:
    """One block's entries as a heat map, and the weights they get as bars."""
    shown, newest = f"datum.block == '{block}'", "false"
    names, free, side = "source[datum.value]", "false", "source"
    if block == "self-attention":
        shown += " && datum.position < step"
        newest = "datum.position == step - 1"
        names, free, side = "read[datum.value]", "datum.value >= step", "target"
    kept = (
        altair.Chart(height=ROW * length)
        .transform_filter(f"datum.layer == layer && datum.head == head && {shown}")
        .transform_calculate(
            numbers="part == 'keys' ? datum.keys : datum.values",
            weight="toNumber(split(datum.weights, ' ')[step - 1])",
        )
    )
    axis = altair.Axis(
        labelExpr=f"{free} ? '(free)' : {names}",
        ticks=False,
        minExtent=LABEL,
        labelLimit=LABEL,
        style=side,
    )
    positions = altair.Y("position:O", title=side, axis=axis)
    positions = positions.scale(domain=list(range(length)))
    cells = parts.split_numbers(kept.properties(width=WIDTH), "numbers", "value")
    cells = cells.encode(
        x=altair.X("k:O", title="feature").axis(labels=False, ticks=False), y=positions
    )
    heat = cells.mark_rect(style="tile").encode(
        color=parts.signed_shade("key or value", -limit, limit, format=".1f"),
        tooltip=parts.tooltip("token", k=("feature", ""), value=".3~f"),
    )
    bars = (
        kept.properties(width=BARS)
        .mark_bar()
        .encode(
            x=altair.X("weight:Q").scale(domain=[0, 1]).axis(values=[0, 1], grid=False),
            y=positions.axis(None),
            tooltip=parts.tooltip("token", weight=".3~f"),
        )
    )
    heading = altair.Title(altair.ExprRef(title), anchor="start", offset=8)
    frames = cells.transform_filter(newest).mark_rect(filled=False, style="frame")
    return altair.hconcat(altair.layer(heat, frames), bars, spacing=6, title=heading)
