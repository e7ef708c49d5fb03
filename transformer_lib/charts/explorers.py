"""Charts that a reader can change, drawn from numbers computed in the chapter.

Each function returns an Altair chart, and `show` displays it. A chart carries all its
numbers, so it works in a web page without a kernel or a network. Each map is stored
as text ("0.25 0.75"), which keeps a notebook small; the chart splits it.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import product

import altair
import torch
from numpy.typing import ArrayLike

from transformer_lib.charts.parts import (
    checkbox,
    finish,
    fixed,
    join_numbers,
    key_columns,
    query_rows,
    select,
    show,
    slider,
    split_field,
    step_size,
)
from transformer_lib.charts.positions import position_explorer
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.plots.heatmaps import as_array, check_tokens, check_weights

__all__ = ["attention_explorer", "mask_explorer", "position_explorer", "show"]

CELL = {"stroke": "#8896A5", "strokeWidth": 0.4}
BLOCKS = {  # attention block -> where its queries and its keys come from
    "encoder self-attention": ("source", "source"),
    "decoder self-attention": ("target", "target"),
    "cross-attention": ("target", "source"),
}
REASONS = {  # how mask_explorer stores a cell -> what the cell says
    "a": "may attend",
    "p": "hidden: padding key",
    "f": "hidden: future",
    "b": "hidden: padding key, future",
}


def attention_explorer(
    maps: ArrayLike | Mapping[str, ArrayLike],
    q_tokens: Sequence[str],
    k_tokens: Sequence[str],
) -> altair.Chart:
    """Browse attention maps by layer and head; hover for a weight, pick a query.

    Args:
        maps: (n_heads, q_len, k_len), each weight in 0..1; or name -> such maps, one
            name a layer.
        q_tokens: q_len names for the rows.
        k_tokens: k_len names for the columns.

    Raises:
        ValueError: wrong rank, other counts of heads or tokens, or a weight outside
            0..1.
    """
    layers = maps if isinstance(maps, Mapping) else {"attention": maps}
    arrays = {name: as_array(m, 3, f"maps {name!r}") for name, m in layers.items()}
    n_heads = len(next(iter(arrays.values())))
    for name, array in arrays.items():
        check_tokens(array.shape, q_tokens, k_tokens)
        check_weights(array)
        if len(array) != n_heads:
            raise ValueError(f"{n_heads} heads, but maps {name!r} has {len(array)}")
    rows = []
    for name, head, q in product(arrays, range(n_heads), range(len(q_tokens))):
        row = {"layer": name, "head": head, "q": q, "query": q_tokens[q]}
        rows.append({**row, "weights": join_numbers(arrays[name][head, q])})

    row = altair.selection_point(
        name="row",
        fields=["q"],
        on="click",
        bind=altair.binding_select(
            options=[None, *range(len(q_tokens))],
            labels=["all", *(f"{q}: {token}" for q, token in enumerate(q_tokens))],
            name="query",
        ),
    )
    params = [
        fixed("q_tokens", list(q_tokens)),
        fixed("k_tokens", list(k_tokens)),
        select("layer", list(arrays)),
        slider("head", "head", 0, n_heads - 1),
        row,
    ]
    chart = altair.Chart(altair.Data(values=rows), name="attention")
    chart = chart.transform_filter("datum.layer == layer && datum.head == head")
    chart = split_field(chart, "weights", " ", "number", "k").transform_calculate(
        key="k_tokens[datum.k]", weight="toNumber(datum.number)"
    )
    chart = chart.mark_rect(**CELL).encode(
        x=key_columns("k_tokens[datum.value]"),
        y=query_rows("q_tokens[datum.value]"),
        color=altair.Color("weight:Q", title="attention weight")
        .scale(domain=[0, 1], interpolate="rgb")
        .legend(orient="bottom", gradientLength=160),
        opacity=altair.condition(row, altair.value(1), altair.value(0.2)),
        tooltip=[
            altair.Tooltip("query:N"),
            altair.Tooltip("key:N"),
            altair.Tooltip("weight:Q", format=".3f"),
        ],
    )
    headings = {
        "layer": "layer",
        "head": "head",
        "query": "query",
        "weights": "weights of the keys " + ", ".join(k_tokens),
    }
    return finish(chart, params, headings, step_size(k_tokens))


def mask_explorer(
    src_tokens: Sequence[str], tgt_tokens: Sequence[str], pad_token: str = "<pad>"
) -> altair.LayerChart:
    """Choose an attention block, its masks and the lengths; see who attends to whom.

    Every combination is computed here by `padding_mask` and `causal_mask`; the chart
    only picks one. The causal mask applies to the decoder's self-attention alone.

    Args:
        src_tokens: the source sentence at its full length.
        tgt_tokens: the target sentence at its full length.
        pad_token: takes the place of the tokens beyond the chosen length.

    Raises:
        ValueError: a sentence is empty.
    """
    sentences = {"source": list(src_tokens), "target": list(tgt_tokens)}
    n_src, n_tgt = len(src_tokens), len(tgt_tokens)
    if not n_src or not n_tgt:
        raise ValueError(f"{n_src} source and {n_tgt} target tokens: at least 1 each")
    rows = []
    for block, (q_side, k_side) in BLOCKS.items():
        q_len, k_len = len(sentences[q_side]), len(sentences[k_side])
        causal_choices = [False, True] if block.startswith("decoder") else [None]
        choices = product([False, True], causal_choices, range(k_len + 1))
        for padding, causal, n_real in choices:
            cells = mask_cells(q_len, k_len, n_real if padding else k_len, bool(causal))
            row = {"block": block, "padding mask": padding, "causal mask": causal}
            rows.append({**row, "real keys": n_real, "cells": " ".join(cells)})

    def token(side: str, index: str) -> str:
        real = f"({side} == 'source' ? source : target)"
        pad = json.dumps(pad_token)
        return f"{index} < {real} ? sentences[{side}][{index}] : {pad}"

    params = [
        fixed("sentences", sentences),
        fixed("sides", BLOCKS),
        fixed("reasons", REASONS),
        select("block", list(BLOCKS), "decoder self-attention"),
        checkbox("hide_padding", "padding mask"),
        checkbox("hide_future", "causal mask (decoder only)"),
        slider("source", "source tokens", 0, n_src, max(n_src - 2, 1)),
        slider("target", "target tokens", 0, n_tgt, max(n_tgt - 2, 1)),
        altair.param(name="q_side", expr="sides[block][0]"),
        altair.param(name="k_side", expr="sides[block][1]"),
    ]
    cells = altair.Chart().encode(
        x=key_columns(token("k_side", "datum.value")),
        y=query_rows(token("q_side", "datum.value")),
    )
    colors = altair.Color("state:N", title=None).scale(domain=["may attend", "hidden"])
    tooltip = [altair.Tooltip(f"{name}:N") for name in ("query", "key", "reason")]
    chart = altair.layer(
        cells.mark_rect(**CELL).encode(
            color=colors.legend(orient="bottom"), tooltip=tooltip
        ),
        cells.mark_text(fontSize=12).encode(text="sign:N", tooltip=tooltip),
        data=altair.Data(values=rows),
        name="masks",
    ).transform_filter(
        "datum.block == block && datum['padding mask'] == hide_padding"
        " && (datum['causal mask'] === null || datum['causal mask'] == hide_future)"
        " && datum['real keys'] == (k_side == 'source' ? source : target)"
    )
    chart = split_field(chart, "cells", " ", "row", "q")
    chart = split_field(chart, "row", "", "cell", "k")
    chart = chart.transform_calculate(
        query=token("q_side", "datum.q"),
        key=token("k_side", "datum.k"),
        reason="reasons[datum.cell]",
        state="datum.cell == 'a' ? 'may attend' : 'hidden'",
        sign="datum.cell == 'a' ? '\N{CHECK MARK}' : '\N{MULTIPLICATION SIGN}'",
    )
    chart.title = altair.Title(
        altair.ExprRef("'queries: ' + q_side + ', keys: ' + k_side")
    )
    letters = ", ".join(f"{letter} = {reason}" for letter, reason in REASONS.items())
    headings = {name: name for name in rows[0]}
    headings["cells"] = f"cells, query by query ({letters})"
    step = step_size(max(src_tokens, tgt_tokens, key=len))
    return finish(chart, params, headings, step)


def mask_cells(q_len: int, k_len: int, n_real: int, causal: bool) -> list[str]:
    """Return q_len strings of k_len letters (see REASONS) for one combination.

    Args:
        q_len: number of queries.
        k_len: number of keys, of which the first n_real are tokens, the rest padding.
        n_real: number of keys that are not padding.
        causal: hide the future too; needs q_len == k_len.
    """
    ids = (torch.arange(k_len) < n_real).long()[None]  # 1 = a token, 0 = padding
    real = padding_mask(ids, pad_id=0)[0, 0]  # (1, k_len)
    past = causal_mask(k_len) if causal else torch.ones(1, 1, dtype=torch.bool)
    code = (real.long() + 2 * past.long()).expand(q_len, k_len)
    return ["".join("bfpa"[cell] for cell in row) for row in code.tolist()]
