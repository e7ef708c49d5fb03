"""A chart of masks: who may attend to whom, and why not."""

from itertools import product

import altair
import torch

from transformer_book.charts import parts
from transformer_book.charts.parts import LayerChart, Words
from transformer_lib import causal_mask, padding_mask

BLOCKS = {  # attention block -> where its queries and its keys come from
    "encoder self-attention": ("source", "source"),
    "decoder self-attention": ("target", "target"),
    "cross-attention": ("target", "source"),
}
REASONS = {  # how a cell is stored -> what it says
    "a": "may attend",
    "p": "hidden: padding key",
    "f": "hidden: future",
    "b": "hidden: padding key, future",
}


def mask_explorer(src_tokens: Words, tgt_tokens: Words) -> LayerChart:
    """Choose an attention block, its masks and the lengths; see who attends to whom.

    Every combination is computed here by `padding_mask` and `causal_mask`; the chart
    only picks one. The causal mask applies to the decoder's self-attention alone.

    Args:
        src_tokens: the source sentence at its full length.
        tgt_tokens: the target sentence at its full length.
    """
    sentences = {"source": list(src_tokens), "target": list(tgt_tokens)}
    n_src, n_tgt = len(src_tokens), len(tgt_tokens)
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
        return f'{index} < {real} ? sentences[{side}][{index}] : "<pad>"'

    def checkbox(name: str, label: str) -> altair.Parameter:
        bind = altair.binding_checkbox(name=label)
        return altair.param(name=name, value=True, bind=bind)

    params = [
        parts.fixed("sentences", sentences),
        parts.fixed("sides", BLOCKS),
        parts.fixed("reasons", REASONS),
        parts.select("block", list(BLOCKS), "decoder self-attention"),
        checkbox("hide_padding", "padding mask"),
        checkbox("hide_future", "causal mask (decoder only)"),
        parts.slider("source", "source tokens", 0, n_src, max(n_src - 2, 1)),
        parts.slider("target", "target tokens", 0, n_tgt, max(n_tgt - 2, 1)),
        altair.param(name="q_side", expr="sides[block][0]"),
        altair.param(name="k_side", expr="sides[block][1]"),
    ]
    cells = altair.Chart().encode(
        x=parts.key_columns(token("k_side", "datum.value")),
        y=parts.query_rows(token("q_side", "datum.value")),
        tooltip=parts.tooltip("query", "key", "reason"),
    )
    color = altair.Color("state:O", title=None).scale(domain=["may attend", "hidden"])
    tiles = cells.mark_rect(style="tile").encode(color=color.legend(orient="bottom"))
    layer = [tiles, cells.mark_text(fontSize=12).encode(text="sign:N")]
    step = parts.step_size(max(src_tokens, tgt_tokens, key=len))
    title = altair.Title(altair.ExprRef("'queries: ' + q_side + ', keys: ' + k_side"))
    chart = LayerChart(layer=layer, name="masks", title=title, width=step, height=step)
    chart = chart.transform_filter(
        "datum.block == block && datum['padding mask'] == hide_padding"
        " && (datum['causal mask'] === null || datum['causal mask'] == hide_future)"
        " && datum['real keys'] == (k_side == 'source' ? source : target)"
    )
    chart = parts.split_field(chart, "cells", " ", "row", "q")
    chart = parts.split_field(chart, "row", "", "cell", "k")
    chart = chart.transform_calculate(
        query=token("q_side", "datum.q"),
        key=token("k_side", "datum.k"),
        reason="reasons[datum.cell]",
        state="datum.cell == 'a' ? 'may attend' : 'hidden'",
        sign="datum.cell == 'a' ? '\N{CHECK MARK}' : '\N{MULTIPLICATION SIGN}'",
    )
    letters = ", ".join(f"{letter} = {reason}" for letter, reason in REASONS.items())
    columns = ["block", "padding mask", "causal mask", "real keys"]
    cell_column = ("cells", f"cells, query by query ({letters})")
    return parts.finish(chart, rows, params, [*columns, cell_column])


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
