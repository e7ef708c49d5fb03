"""Charts that a reader can change, drawn from numbers computed in the chapter.

Each function returns an Altair chart, and `show` displays it. A chart carries all its
numbers, so it works in a web page without a kernel or a network. Each map is stored
as text ("0.25 0.75", row after row), which keeps a notebook small; the chart splits it.
"""

import base64
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import altair
import torch
from matplotlib import get_data_path
from numpy.typing import ArrayLike

from transformer_lib.heatmaps import as_array, check_tokens, check_weights
from transformer_lib.masks import causal_mask, padding_mask

MAX_ALT = 150  # characters
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


def theme_config(dark: bool = False) -> dict[str, Any]:
    """Return Vega-Lite's settings for the light or the dark page."""
    ink, line = ("#CED6DD", "#48566A") if dark else ("#1F2933", "#CBD2D9")
    weights = ["#FFFFFF", "#CFE3F3", "#7DB4DC", "#2878B5", "#08306B"]
    if dark:
        weights = ["#1A2028", "#1F3F5F", "#2F75AE", "#7DBBEA", "#EAF5FF"]
    text = {"labelColor": ink, "titleColor": ink, "titleFontWeight": "normal"}
    sizes = {"labelFontSize": 11, "titleFontSize": 11, "labelLimit": 90}
    return {
        "background": "transparent" if dark else "white",
        "font": "DejaVu Sans, sans-serif",
        "axis": {**text, **sizes, "domainColor": line, "gridColor": line},
        "legend": {**text, **sizes},
        "range": {
            "category": ["#2F7FB5", "#2A323D"] if dark else ["#56B4E9", "#ECEFF1"],
            "heatmap": weights,
        },
        "rule": {"color": ink},
        "text": {"color": ink},
        "title": {"color": ink, "subtitleColor": ink, "fontSize": 13},
        "view": {"stroke": None},
    }


def show(chart: altair.TopLevelMixin, alt: str) -> None:
    """Display a chart: live where charts can be drawn, else its picture or its alt.

    Args:
        chart: what one of the functions below returns.
        alt: kind of chart, what is compared, what to see; at most 150 characters.

    Raises:
        ValueError: alt is empty or too long.
    """
    from IPython.display import display

    if not 0 < len(alt.strip()) <= MAX_ALT:
        raise ValueError(f"alt must have 1 to {MAX_ALT} characters, not {len(alt)}")
    if "google.colab" in sys.modules:
        with altair.renderers.enable("colab"):
            display(chart)
        return
    display(mime_bundle(chart, alt), raw=True)


def mime_bundle(chart: altair.TopLevelMixin, alt: str) -> dict[str, Any]:
    """Return the chart as a Vega-Lite specification, a PNG, and its alt text."""
    spec = {**chart.to_dict(), "description": alt}
    major = altair.SCHEMA_VERSION.lstrip("v").split(".")[0]
    bundle = {f"application/vnd.vegalite.v{major}+json": spec, "text/plain": alt}
    try:
        import vl_convert
    except ImportError:  # drawn live only
        return bundle
    vl_convert.register_font_directory(f"{get_data_path()}/fonts/ttf")
    png = vl_convert.vegalite_to_png(spec, scale=1.5)
    return {**bundle, "image/png": base64.b64encode(png).decode()}


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
        rows.append({**row, "weights": _join(arrays[name][head, q])})

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
        _fixed("q_tokens", list(q_tokens)),
        _fixed("k_tokens", list(k_tokens)),
        _select("layer", list(arrays)),
        _slider("head", "head", 0, n_heads - 1),
        row,
    ]
    chart = altair.Chart(altair.Data(values=rows), name="attention")
    chart = chart.transform_filter("datum.layer == layer && datum.head == head")
    chart = _split(chart, "weights", " ", "k").transform_calculate(
        key="k_tokens[datum.k]", weight="toNumber(datum.weights)"
    )
    chart = chart.mark_rect(**CELL).encode(
        x=_keys("k_tokens[datum.value]"),
        y=_queries("q_tokens[datum.value]"),
        color=altair.Color("weight:Q", title="attention weight")
        .scale(domain=[0, 1])
        .legend(orient="bottom", gradientLength=160),
        opacity=altair.condition(row, altair.value(1), altair.value(0.2)),
        tooltip=[
            altair.Tooltip("query:N"),
            altair.Tooltip("key:N"),
            altair.Tooltip("weight:Q", format=".3f"),
        ],
    )
    keys = "weights of the keys " + ", ".join(k_tokens)
    return _finish(chart, params, _step(k_tokens), {"weights": keys})


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
        _fixed("sentences", sentences),
        _fixed("sides", BLOCKS),
        _fixed("reasons", REASONS),
        _select("block", list(BLOCKS), "decoder self-attention"),
        _checkbox("padding", "padding mask"),
        _checkbox("causal", "causal mask (decoder self-attention only)"),
        _slider("source", "source tokens", 0, n_src, max(n_src - 2, 1)),
        _slider("target", "target tokens", 0, n_tgt, max(n_tgt - 2, 1)),
        altair.param(name="q_side", expr="sides[block][0]"),
        altair.param(name="k_side", expr="sides[block][1]"),
    ]
    cells = altair.Chart().encode(
        x=_keys(token("k_side", "datum.value")),
        y=_queries(token("q_side", "datum.value")),
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
        "datum.block == block && datum['padding mask'] == padding"
        " && (datum['causal mask'] === null || datum['causal mask'] == causal)"
        " && datum['real keys'] == (k_side == 'source' ? source : target)"
    )
    chart = _split(_split(chart, "cells", " ", "q"), "cells", "", "k")
    chart = chart.transform_calculate(
        query=token("q_side", "datum.q"),
        key=token("k_side", "datum.k"),
        reason="reasons[datum.cells]",
        state="datum.cells == 'a' ? 'may attend' : 'hidden'",
        sign="datum.cells == 'a' ? '\N{CHECK MARK}' : '\N{MULTIPLICATION SIGN}'",
    )
    chart.title = altair.Title(
        altair.ExprRef("'queries: ' + q_side + ', keys: ' + k_side")
    )
    letters = ", ".join(f"{letter} = {reason}" for letter, reason in REASONS.items())
    step = _step(max(src_tokens, tgt_tokens, key=len))
    return _finish(chart, params, step, {"cells": f"cells, row by row ({letters})"})


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


def position_explorer(table: ArrayLike) -> altair.VConcatChart:
    """See positional encodings as curves and as dot products between positions.

    Args:
        table: (n_positions, d_model), d_model even.

    Raises:
        ValueError: wrong rank, or an odd d_model.
    """
    array = as_array(table, 2, "table")
    n_positions, d_model = array.shape
    if d_model % 2:
        raise ValueError(f"d_model must be even, not {d_model}: pairs of dimensions")
    dots = array @ array.T  # (n_positions, n_positions)
    rows = [
        {"position": p, "values": _join(array[p]), "dots": _join(dots[p])}
        for p in range(n_positions)
    ]
    params = [
        _slider("pair", "pair of dimensions", 0, d_model // 2 - 1),
        _slider("chosen", "position", 0, n_positions - 1, n_positions // 2),
    ]
    x = altair.X("position:Q", title="position (tokens)").axis(grid=False)
    bound = float(abs(array).max())
    base = altair.Chart(width=290, height=130)
    curves = (
        base.transform_calculate(
            even="toNumber(split(datum.values, ' ')[2 * pair])",
            odd="toNumber(split(datum.values, ' ')[2 * pair + 1])",
        )
        .transform_fold(["even", "odd"], as_=["dimension", "value"])
        .mark_line()
        .encode(
            x=x,
            y=altair.Y("value:Q").scale(domain=[-bound, bound]),
            color=altair.Color("dimension:N", title=None)
            .scale(range=["#2E86C1", "#D2691E"])  # seen on white and on black
            .legend(
                orient="top",
                labelExpr="'dimension ' + (2 * pair + (datum.value == 'odd'))",
            ),
            strokeDash=altair.StrokeDash("dimension:N", legend=None),
        )
    )
    marker = base.transform_filter("datum.position == chosen").mark_rule().encode(x=x)
    products = _split(
        base.transform_filter("datum.position == chosen"), "dots", " ", "k"
    )
    products = (
        products.transform_calculate(dot="toNumber(datum.dots)")
        .mark_bar(color="#2E86C1", width=3)
        .encode(
            x=altair.X("k:Q", title="other position (tokens)").axis(grid=False),
            y=altair.Y("dot:Q", title="dot product").scale(
                domain=[float(dots.min().clip(max=0)), float(dots.max())]
            ),
            tooltip=[altair.Tooltip("k:Q", title="position"), "dot:Q"],
        )
    )
    chart = altair.vconcat(curves + marker, products, data=altair.Data(values=rows))
    columns = {"values": "values of the dimensions", "dots": "dot products"}
    return _finish(chart, params, None, columns)


def _finish(chart, params, step: int | None, columns: Mapping[str, str]):
    """Add the parameters, the theme, the size of a cell, and names for the columns."""
    if step is not None:
        chart = chart.properties(width=altair.Step(step), height=altair.Step(step))
    usermeta = {"columns": dict(columns)}  # headings of the page's data table
    return chart.add_params(*params).properties(
        config=theme_config(), usermeta=usermeta
    )


def _split(chart, field: str, separator: str, index: str):
    """Make a row of each part of a text field; index counts the parts."""
    return (
        chart.transform_calculate(**{field: f"split(datum.{field}, '{separator}')"})
        .transform_calculate(**{index: f"sequence(length(datum.{field}))"})
        .transform_flatten([field, index])
    )


def _join(values: Sequence[float]) -> str:
    """Write numbers with three decimals at most, so that stored charts repeat."""
    return " ".join(f"{round(float(value), 3) + 0.0:g}" for value in values)


def _keys(label: str) -> altair.X:
    """Columns: one a key, counted, so that repeated tokens stay apart."""
    axis = altair.Axis(orient="top", labelExpr=label, labelAngle=-45, ticks=False)
    return altair.X("k:O", title="key", axis=axis)


def _queries(label: str) -> altair.Y:
    """Rows: one a query, counted, so that repeated tokens stay apart."""
    return altair.Y(
        "q:O", title="query", axis=altair.Axis(labelExpr=label, ticks=False)
    )


def _step(tokens: Sequence[str]) -> int:
    """Return the side of a cell in pixels; a map fits a phone of 390 pixels."""
    return max(12, min(30, 250 // len(tokens)))


def _fixed(name: str, value: Any) -> altair.Parameter:
    return altair.param(name=name, value=value)


def _select(
    name: str, options: list[str], value: str | None = None
) -> altair.Parameter:
    value = options[0] if value is None else value
    if len(options) == 1:
        return _fixed(name, value)
    bind = altair.binding_select(options=options, name=name)
    return altair.param(name=name, value=value, bind=bind)


def _slider(
    name: str, label: str, low: int, high: int, value: int = 0
) -> altair.Parameter:
    bind = altair.binding_range(min=low, max=high, step=1, name=label)
    return altair.param(name=name, value=value, bind=bind)


def _checkbox(name: str, label: str) -> altair.Parameter:
    return altair.param(name=name, value=True, bind=altair.binding_checkbox(name=label))
