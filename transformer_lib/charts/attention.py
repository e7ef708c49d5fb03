"""Charts of all the attention of a model: every map, and what every head looks at."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import altair
from numpy.typing import ArrayLike

from transformer_lib.charts.explorers import BLOCKS, CELL
from transformer_lib.charts.parts import (
    finish,
    fixed,
    join_numbers,
    key_columns,
    query_rows,
    select,
    slider,
    split_field,
    step_size,
)
from transformer_lib.plots.heatmaps import as_array, check_tokens, check_weights

ORANGE = "#D55E00"
PARTS = {  # how the library names an attention -> how the chart does
    "encoder self_attn": "encoder self-attention",
    "decoder self_attn": "decoder self-attention",
    "decoder cross_attn": "cross-attention",
}


@dataclass(frozen=True)
class SentenceMaps:
    """Every attention map of one sentence pair.

    Attributes:
        source: names of the source tokens.
        read: names of the tokens that the decoder reads, `<bos>` first.
        produced: names of the tokens that it predicts there, as many.
        maps: as `record_attention` returns them for this pair alone, or for a batch
            of which the first is this pair: name -> (1, n_heads, q_len, k_len).
        links: gold links (source word, target word), counted from 0; drawn as frames
            in cross-attention, in the row that produces the target word.
    """

    source: Sequence[str]
    read: Sequence[str]
    produced: Sequence[str]
    maps: Mapping[str, ArrayLike]
    links: Collection[tuple[int, int]] = ()


def sentence_explorer(models: Mapping[str, Sequence[SentenceMaps]]) -> altair.Chart:
    """Browse every attention map: by model, sentence, block, layer and head.

    Args:
        models: name of a model -> its maps of the same sentences in the same order.
            All models have the same numbers of layers and heads.

    Raises:
        ValueError: no model or sentence, models differ in their sentences, layers or
            heads, an attention's name is unknown, or tokens or weights do not fit.
    """
    counts = {name: len(sentences) for name, sentences in models.items()}
    if not models or len(set(counts.values())) > 1 or 0 in counts.values():
        raise ValueError(f"each model needs the same sentences, not {counts}")
    first = next(iter(models.values()))
    rows, sizes = [], {}
    for model, sentences in models.items():
        for number, sentence in enumerate(sentences):
            if list(sentence.source) != list(first[number].source):
                raise ValueError(f"model {model!r} has another sentence {number}")
            for name, maps in sentence.maps.items():
                block, layer = _block(name)
                heads = as_array(maps, 4, name)[0]
                q_side, k_side = BLOCKS[block]
                tokens = {"source": sentence.source, "target": sentence.read}
                check_tokens(heads.shape, tokens[q_side], tokens[k_side])
                check_weights(heads)
                sizes.setdefault(name, len(heads))
                if len(heads) != sizes[name]:
                    raise ValueError(
                        f"{sizes[name]} heads, but {name} has {len(heads)}"
                    )
                row = {"model": model, "sentence": number + 1, "block": block}
                for head, weights in enumerate(heads):
                    text = ";".join(join_numbers(line) for line in weights)
                    rows.append({**row, "layer": layer, "head": head, "maps": text})
    return _draw(list(models), first, rows)


def _block(name: str) -> tuple[str, int]:
    """("decoder.layers.1.cross_attn") -> ("cross-attention", 1)."""
    side, _, rest = name.partition(".layers.")
    layer, _, part = rest.partition(".")
    if f"{side} {part}" not in PARTS or not layer.isdecimal():
        raise ValueError(f"{name!r} is no attention of an encoder or decoder layer")
    return PARTS[f"{side} {part}"], int(layer)


def _draw(models: list, sentences: Sequence[SentenceMaps], rows: list) -> altair.Chart:
    # Short names: a list as wide as a sentence would not fit a phone.
    options = {
        f"{number}: {' '.join(s.produced[:3])} …": number
        for number, s in enumerate(sentences, start=1)
    }
    labels = [
        {"source": list(s.source), "read": list(s.read), "produced": list(s.produced)}
        for s in sentences
    ]
    links = [{f"{j} {i}": 1 for i, j in s.links} for s in sentences]
    numbers = altair.binding_select(
        options=list(options.values()), labels=list(options), name="sentence"
    )
    # Rows of the decoder are named by what they read or by what they produce.
    q_names = "names[sentence - 1][q_side == 'source' ? 'source' : rows]"
    k_names = "names[sentence - 1][k_side == 'source' ? 'source' : 'read']"
    params = [
        fixed("names", labels),
        fixed("links", links),
        fixed("sides", BLOCKS),
        fixed("last", {row["block"]: row["layer"] for row in rows}),
        select("model", models),
        altair.param(name="sentence", value=1, bind=numbers),
        select("block", list(BLOCKS), "cross-attention"),
        slider("layer", "layer", 0, max(row["layer"] for row in rows)),
        slider("head", "head", 0, max(row["head"] for row in rows)),
        select("rows", ["produced", "read"]),
        altair.param(name="q_side", expr="sides[block][0]"),
        altair.param(name="k_side", expr="sides[block][1]"),
    ]
    chart = altair.Chart().transform_filter(
        "datum.model == model && datum.sentence == sentence && datum.block == block"
        " && datum.layer == min(layer, last[block]) && datum.head == head"
    )
    chart = split_field(chart, "maps", ";", "line", "q")
    chart = split_field(chart, "line", " ", "number", "k").transform_calculate(
        query=f"{q_names}[datum.q]",
        key=f"{k_names}[datum.k]",
        weight="toNumber(datum.number)",
        gold="block == 'cross-attention'"
        " && links[sentence - 1][datum.q + ' ' + datum.k] ? 'yes' : 'no'",
    )
    chart = chart.encode(
        x=key_columns(f"{k_names}[datum.value]"),
        y=query_rows(f"{q_names}[datum.value]"),
        tooltip=[
            altair.Tooltip("query:N"),
            altair.Tooltip("key:N"),
            altair.Tooltip("weight:Q", format=".3f"),
            altair.Tooltip("gold:N", title="gold link"),
        ],
    )
    cells = _framed_cells(chart, "attention weight", "datum.gold == 'yes'")
    layered = altair.layer(*cells, data=altair.Data(values=rows), name="attention")
    layered.title = altair.Title(
        altair.ExprRef("'queries: ' + q_side + ', keys: ' + k_side")
    )
    headings = {name: name for name in rows[0]}
    headings["maps"] = "weights, query by query"
    longest = max((s.source for s in sentences), key=len)
    return finish(layered, params, headings, step_size(longest))


def head_type_explorer(
    scores: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> altair.LayerChart:
    """See what every head looks at, and which have a type at the chosen threshold.

    Args:
        scores: model -> relation -> head -> mean weight on that relation. A head may
            be missing where a relation has no meaning for it.

    Raises:
        ValueError: there is no weight, or one lies outside 0..1.
    """
    rows = [
        {"model": model, "relation": relation, "head": head, "weight": round(value, 3)}
        for model, relations in scores.items()
        for relation, heads in relations.items()
        for head, value in heads.items()
    ]
    if not rows:
        raise ValueError("at least 1 weight is needed, but got 0")
    for row in rows:
        if not 0 <= row["weight"] <= 1:
            raise ValueError(f"a weight lies in 0..1, but {row['head']} has {row}")
    relations = list(dict.fromkeys(row["relation"] for row in rows))
    heads = list(dict.fromkeys(row["head"] for row in rows))
    bind = altair.binding_range(min=0.1, max=0.9, step=0.05, name="threshold")
    params = [
        select("model", list(scores)),
        altair.param(name="threshold", value=0.5, bind=bind),
    ]
    chart = altair.Chart().transform_filter("datum.model == model")
    chart = chart.transform_joinaggregate(most="max(weight)", groupby=["head"])
    chart = chart.transform_calculate(
        typed="datum.weight == datum.most && datum.weight >= threshold ? 'yes' : 'no'"
    ).encode(
        x=altair.X("relation:N", sort=relations, title="what the head looks at").axis(
            orient="top", labelAngle=-60, ticks=False
        ),
        y=altair.Y("head:N", sort=heads, title=None).axis(ticks=False, labelLimit=140),
        tooltip=[
            altair.Tooltip("head:N"),
            altair.Tooltip("relation:N"),
            altair.Tooltip("weight:Q", format=".3f"),
            altair.Tooltip("typed:N", title="type of the head"),
        ],
    )
    cells = _framed_cells(chart, "mean weight", "datum.typed == 'yes'", offset=30)
    count = (
        altair.Chart()
        .transform_filter("datum.model == model")
        .transform_aggregate(most="max(weight)", groupby=["head"])
        .transform_calculate(over="datum.most >= threshold ? 1 : 0")
        .transform_aggregate(n="sum(over)", heads="count()")
        .transform_calculate(text="datum.n + ' of ' + datum.heads + ' heads'")
        .mark_text(align="left", baseline="top", fontSize=12)
        .encode(x=altair.value(0), y=altair.value(18 * len(heads) + 6), text="text:N")
    )
    layered = altair.layer(
        *cells, count, data=altair.Data(values=rows), name="types"
    ).properties(width=altair.Step(20), height=altair.Step(18))
    headings = {name: name for name in rows[0]}
    return finish(layered, params, {**headings, "weight": "mean weight"})


def _framed_cells(
    chart: altair.Chart, title: str, framed: str, **legend: int
) -> list[altair.Chart]:
    """Draw weights as cells, and frames around those that the expression picks."""
    color = altair.Color("weight:Q", title=title)
    color = color.scale(domain=[0, 1], interpolate="rgb")
    color = color.legend(orient="bottom", gradientLength=160, **legend)
    frames = chart.transform_filter(framed)
    return [
        chart.mark_rect(**CELL).encode(color=color),
        frames.mark_rect(filled=False, stroke=ORANGE, strokeWidth=2),
    ]
