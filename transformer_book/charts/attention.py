"""Charts of attention: one set of maps, every map of a model, what each head does."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import altair
from numpy.typing import ArrayLike
from torch import Tensor

from transformer_book.charts import parts
from transformer_lib.model.checks import (
    check_finite,
    check_integers,
    check_kind,
    check_texts,
)
from transformer_lib.plots.checks import (
    as_array,
    check_named,
    check_tokens,
    check_weights,
)

BLOCKS = {  # attention block -> where its queries and its keys come from
    "encoder self-attention": ("source", "source"),
    "decoder self-attention": ("target", "target"),
    "cross-attention": ("target", "source"),
}
PARTS = {  # how the library names an attention -> how the chart does
    "encoder self_attn": "encoder self-attention",
    "decoder self_attn": "decoder self-attention",
    "decoder cross_attn": "cross-attention",
}
SIDES_TITLE = altair.ExprRef("'queries: ' + q_side + ', keys: ' + k_side")
POWERS = range(-4, 10)  # of 2; divisor_explorer divides by one of them


def attention_explorer(
    maps: ArrayLike | Mapping[str, ArrayLike],
    q_tokens: Sequence[str],
    k_tokens: Sequence[str],
    head: int = 0,
) -> altair.Chart:
    """Browse attention maps by layer and head; hover for a weight, pick a query.

    Args:
        maps: (n_heads, q_len, k_len), each weight in 0..1; or name -> such maps, one
            name a layer.
        q_tokens: q_len names for the rows.
        k_tokens: k_len names for the columns.
        head: number of the head that is shown first.

    Raises:
        ValueError: wrong rank, other counts of heads or tokens, a weight outside 0..1,
            or no head of that number.
    """
    layers = maps if isinstance(maps, Mapping) else {"attention": maps}
    check_named("maps", layers)
    check_integers(head=head)
    arrays = {name: as_array(m, 3, f"maps {name!r}") for name, m in layers.items()}
    n_heads = len(next(iter(arrays.values())))
    rows = []
    for name, array in arrays.items():
        check_tokens(array.shape, q_tokens, k_tokens)
        check_weights(array)
        if len(array) != n_heads:
            raise ValueError(f"{n_heads} heads, but maps {name!r} has {len(array)}")
        for number, lines in enumerate(array):
            for q, line in enumerate(lines):
                row = {"layer": name, "head": number, "q": q, "query": q_tokens[q]}
                rows.append({**row, "weights": parts.join_numbers(line)})
    if not 0 <= head < n_heads:
        raise ValueError(f"head must be in 0..{n_heads - 1}, not {head}")

    chosen = altair.selection_point(
        name="row", fields=["q"], on="click", bind=_token_list("query", q_tokens, "all")
    )
    params = [
        parts.fixed("q_tokens", list(q_tokens)),
        parts.fixed("k_tokens", list(k_tokens)),
        parts.select("layer", list(arrays)),
        parts.slider("head", "head", 0, n_heads - 1, head),
        chosen,
    ]
    step = parts.step_size(k_tokens)
    chart = altair.Chart(name="attention", width=step, height=step)
    chart = chart.transform_filter("datum.layer == layer && datum.head == head")
    chart = parts.split_numbers(chart, "weights", "weight")
    chart = chart.transform_calculate(key="k_tokens[datum.k]")
    chart = chart.mark_rect(style="tile").encode(
        x=parts.key_columns("k_tokens[datum.value]"),
        y=parts.query_rows("q_tokens[datum.value]"),
        color=parts.shade("weight", "attention weight"),
        opacity=altair.condition(chosen, altair.value(1), altair.value(0.2)),
        tooltip=parts.tooltip("query", "key", weight=".3f"),
    )
    weights = ("weights", "weights of the keys " + ", ".join(k_tokens))
    return parts.finish(chart, rows, params, ["layer", "head", "query", weights])


def divisor_explorer(
    query: Tensor, key: Tensor, tokens: Sequence[str], start: int = 0
) -> altair.Chart:
    """Choose a query and what its scores are divided by; see its attention weights.

    Args:
        query: (length, d_head)
        key: (length, d_head)
        tokens: length names.
        start: number of the query that is shown first.

    Raises:
        ValueError: another count of tokens than of queries or keys.
    """
    arrays = as_array(query, 2, "query"), as_array(key, 2, "key")
    if arrays[0].shape != arrays[1].shape or query.dtype != key.dtype:
        raise ValueError(
            f"query and key must be of one shape and type, not {arrays[0].shape} "
            f"{query.dtype} and {arrays[1].shape} {key.dtype}"
        )
    check_integers(start=start)
    if not 0 <= start < len(tokens):
        raise ValueError(f"start must be in 0..{len(tokens) - 1}, not {start}")
    scores = (query @ key.T).detach()  # (length, length)
    check_tokens(tuple(scores.shape), tokens, tokens)
    rows = []
    for power in POWERS:
        for q, weights in enumerate((scores / 2.0**power).softmax(dim=-1)):
            row = {"power": power, "q": q, "query": tokens[q]}
            rows.append({**row, "weights": parts.join_numbers(weights)})
    params = [
        parts.fixed("tokens", list(tokens)),
        altair.param(name="q", value=start, bind=_token_list("query", tokens)),
        parts.slider("power", "divisor: 2 to the power", POWERS[0], POWERS[-1], 1),
    ]
    title = altair.Title(altair.ExprRef("'scores divided by ' + pow(2, power)"))
    chart = altair.Chart(title=title, width=parts.WIDTH, height=parts.HEIGHT)
    chart = chart.transform_filter("datum.power == power && datum.q == q")
    chart = parts.split_numbers(chart, "weights", "weight")
    chart = (
        chart.transform_calculate(key="tokens[datum.k]")
        .mark_bar()
        .encode(
            x=parts.key_columns("tokens[datum.value]", orient="bottom"),
            y=altair.Y("weight:Q").scale(domain=[0, 1]),
            tooltip=parts.tooltip("key", weight=".3f"),
        )
    )
    columns = [("power", "divisor: 2 to the power"), "query"]
    weights = ("weights", "weights of the keys " + ", ".join(tokens))
    return parts.finish(chart, rows, params, [*columns, weights])


def _token_list(
    name: str, tokens: Sequence[str], *first: str
) -> altair.BindRadioSelect:
    """A list of numbered tokens; before them, perhaps, a choice of none."""
    return altair.binding_select(
        options=[*[None] * len(first), *range(len(tokens))],
        labels=[*first, *(f"{i}: {token}" for i, token in enumerate(tokens))],
        name=name,
    )


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
    rows = _sentence_rows(models)
    sentences = next(iter(models.values()))
    # Rows of the decoder are named by what they read or by what they produce.
    names = [
        {"source": list(s.source), "read": list(s.read), "produced": list(s.produced)}
        for s in sentences
    ]
    q_names = "names[sentence - 1][q_side == 'source' ? 'source' : rows]"
    k_names = "names[sentence - 1][k_side == 'source' ? 'source' : 'read']"
    numbers = altair.binding_select(
        options=list(range(1, len(sentences) + 1)),
        labels=[  # short: a list as wide as a sentence would not fit a phone
            f"{number}: {' '.join(s.produced[:3])} …"
            for number, s in enumerate(sentences, start=1)
        ],
        name="sentence",
    )
    params = [
        parts.fixed("names", names),
        parts.fixed("links", [{f"{j} {i}": 1 for i, j in s.links} for s in sentences]),
        parts.fixed("sides", BLOCKS),
        parts.fixed("last", {row["block"]: row["layer"] for row in rows}),
        parts.select("model", list(models)),
        altair.param(name="sentence", value=1, bind=numbers),
        parts.select("block", list(BLOCKS), "cross-attention"),
        parts.slider("layer", "layer", 0, max(row["layer"] for row in rows)),
        parts.slider("head", "head", 0, max(row["head"] for row in rows)),
        parts.select("rows", ["produced", "read"]),
        altair.param(name="q_side", expr="sides[block][0]"),
        altair.param(name="k_side", expr="sides[block][1]"),
    ]
    chart = altair.Chart().transform_filter(
        "datum.model == model && datum.sentence == sentence && datum.block == block"
        " && datum.layer == min(layer, last[block]) && datum.head == head"
    )
    chart = parts.split_field(chart, "maps", ";", "line", "q")
    chart = parts.split_numbers(chart, "line", "weight").transform_calculate(
        query=f"{q_names}[datum.q]",
        key=f"{k_names}[datum.k]",
        gold="block == 'cross-attention'"
        " && links[sentence - 1][datum.q + ' ' + datum.k] ? 'yes' : 'no'",
    )
    chart = chart.encode(
        x=parts.key_columns(f"{k_names}[datum.value]"),
        y=parts.query_rows(f"{q_names}[datum.value]"),
        tooltip=[
            *parts.tooltip("query", "key", weight=".3f"),
            altair.Tooltip("gold:N", title="gold link"),
        ],
    )
    step = parts.step_size(max((s.source for s in sentences), key=len))
    layered = altair.layer(
        chart.mark_rect(style="tile").encode(
            color=parts.shade("weight", "attention weight")
        ),
        parts.frames(chart, "datum.gold == 'yes'"),
        name="attention",
        title=altair.Title(SIDES_TITLE),
        width=step,
        height=step,
    )
    columns = ["model", "sentence", "block", "layer", "head"]
    maps = ("maps", "weights, query by query")
    return parts.finish(layered, rows, params, [*columns, maps])


def _sentence_rows(models: Mapping[str, Sequence[SentenceMaps]]) -> list[dict]:
    """Check the maps of all models; return a row for each head's map."""
    check_kind(Mapping, models=models)
    for name, sentences in models.items():
        check_kind((list, tuple), **{f"model {name}": sentences})
        for sentence in sentences:
            check_kind(SentenceMaps, **{f"a sentence of {name}": sentence})
    counts = {name: len(sentences) for name, sentences in models.items()}
    if not models or len(set(counts.values())) > 1 or 0 in counts.values():
        raise ValueError(f"each model needs the same sentences, not {counts}")
    first = next(iter(models.values()))
    rows, n_heads = [], {}
    for model, sentences in models.items():
        for number, sentence in enumerate(sentences):
            check_kind(Mapping, maps=sentence.maps)
            for name in ("source", "read", "produced"):
                check_texts(name, getattr(sentence, name))
            if list(sentence.source) != list(first[number].source):
                raise ValueError(f"model {model!r} has another sentence {number}")
            tokens = {"source": sentence.source, "target": sentence.read}
            for name, maps in sentence.maps.items():
                block, layer = _block(name)
                heads = as_array(maps, 4, name)[0]
                check_tokens(heads.shape, *(tokens[side] for side in BLOCKS[block]))
                check_weights(heads)
                if len(heads) != n_heads.setdefault(name, len(heads)):
                    raise ValueError(
                        f"{n_heads[name]} heads, but {name} has {len(heads)}"
                    )
                row = {"model": model, "sentence": number + 1, "block": block}
                for head, weights in enumerate(heads):
                    text = ";".join(parts.join_numbers(line) for line in weights)
                    rows.append({**row, "layer": layer, "head": head, "maps": text})
    return rows


def _block(name: str) -> tuple[str, int]:
    """("decoder.layers.1.cross_attn") -> ("cross-attention", 1)."""
    side, _, rest = name.partition(".layers.")
    layer, _, part = rest.partition(".")
    if f"{side} {part}" not in PARTS or not layer.isdecimal():
        raise ValueError(f"{name!r} is no attention of an encoder or decoder layer")
    return PARTS[f"{side} {part}"], int(layer)


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
    check_kind(Mapping, scores=scores)
    for model, relations in scores.items():
        check_named(f"model {model}", relations)
        for relation, heads in relations.items():
            check_kind(Mapping, **{f"heads of {relation}": heads})
            each = {f"{relation} of {head}": weight for head, weight in heads.items()}
            check_finite(-math.inf, math.inf, **each)
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
    params = [
        parts.select("model", list(scores)),
        parts.slider("threshold", "threshold", 0.1, 0.9, 0.5, step=0.05),
    ]
    base = altair.Chart().transform_filter("datum.model == model")
    chart = base.transform_joinaggregate(most="max(weight)", groupby=["head"])
    chart = chart.transform_calculate(
        typed="datum.weight == datum.most && datum.weight >= threshold ? 'yes' : 'no'"
    ).encode(
        x=altair.X("relation:N", sort=relations, title="what the head looks at").axis(
            orient="top", labelAngle=-60, labelLimit=140, ticks=False
        ),
        y=altair.Y("head:N", sort=heads, title=None).axis(ticks=False, labelLimit=140),
        tooltip=[
            *parts.tooltip("head", "relation", weight=".3f"),
            altair.Tooltip("typed:N", title="type of the head"),
        ],
    )
    count = (
        base.transform_aggregate(most="max(weight)", groupby=["head"])
        .transform_calculate(over="datum.most >= threshold ? 1 : 0")
        .transform_aggregate(n="sum(over)", heads="count()")
        .transform_calculate(text="datum.n + ' of ' + datum.heads + ' heads'")
        .mark_text(align="left", baseline="top", fontSize=12)
        .encode(x=altair.value(0), y=altair.value(18 * len(heads) + 6), text="text:N")
    )
    layered = altair.layer(
        chart.mark_rect(style="tile").encode(
            color=parts.shade("weight", "mean weight", offset=30)
        ),
        parts.frames(chart, "datum.typed == 'yes'"),
        count,
        name="types",
        width=altair.Step(20),
        height=altair.Step(18),
    )
    columns = ["model", "relation", "head", ("weight", "mean weight")]
    return parts.finish(layered, rows, params, columns)
