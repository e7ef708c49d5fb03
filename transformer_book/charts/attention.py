"""Charts of attention: every head of some maps, and what the divisor does."""

from collections.abc import Mapping, Sequence

import altair
from numpy.typing import ArrayLike
from torch import Tensor

from transformer_book.charts import parts

POWERS = range(-4, 10)  # of 2; divisor_explorer divides by one of them


def attention_explorer(
    maps: ArrayLike | Mapping[str, ArrayLike],
    q_tokens: Sequence[str],
    k_tokens: Sequence[str],
    head: int = 0,
) -> parts.Chart:
    """Browse attention maps by layer and head; hover for a weight, pick a query.

    Args:
        maps: (n_heads, q_len, k_len), each weight in 0..1; or name -> such maps, one
            name a layer.
        q_tokens: q_len names for the rows.
        k_tokens: k_len names for the columns.
        head: number of the head that is shown first.

    Raises:
        ValueError: other counts of tokens, or a weight outside 0..1, which would get
            the color of 0 or 1.
    """
    layers = maps if isinstance(maps, Mapping) else {"attention": maps}
    arrays = {name: parts.as_tensor(each) for name, each in layers.items()}
    rows = []
    for name, array in arrays.items():
        parts.require_names(array.shape, q_tokens, k_tokens)
        low, high = array.min().item(), array.max().item()
        if low < -1e-6 or high > 1 + 1e-6:
            raise ValueError(
                f"weights must lie in 0..1, but go from {low:g} to {high:g}"
            )
        for number, lines in enumerate(array):
            for q, line in enumerate(lines):
                row = {"layer": name, "head": number, "q": q, "query": q_tokens[q]}
                rows.append({**row, "weights": parts.join_numbers(line)})

    bind = parts.token_list("query", q_tokens, "all")
    chosen = altair.selection_point(name="row", fields=["q"], on="click", bind=bind)
    n_heads = len(next(iter(arrays.values())))
    params = [
        parts.fixed("q_tokens", list(q_tokens)),
        parts.fixed("k_tokens", list(k_tokens)),
        parts.select("layer", list(arrays)),
        parts.slider("head", "head", 0, n_heads - 1, head),
        chosen,
    ]
    step = parts.step_size(k_tokens)
    chart = parts.Chart(name="attention", width=step, height=step)
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
) -> parts.Chart:
    """Choose a query and what its scores are divided by; see its attention weights.

    Args:
        query: (length, d_head)
        key: (length, d_head)
        tokens: length names.
        start: number of the query that is shown first.

    Raises:
        ValueError: another count of tokens than of queries or keys.
    """
    scores = parts.as_tensor(query @ key.T)  # (length, length)
    parts.require_names(scores.shape, tokens, tokens)
    rows = []
    for power in POWERS:
        for q, weights in enumerate((scores / 2.0**power).softmax(dim=-1)):
            row = {"power": power, "q": q, "query": tokens[q]}
            rows.append({**row, "weights": parts.join_numbers(weights)})
    params = [
        parts.fixed("tokens", list(tokens)),
        altair.param(name="q", value=start, bind=parts.token_list("query", tokens)),
        parts.slider("power", "divisor: 2 to the power", POWERS[0], POWERS[-1], 1),
    ]
    title = altair.Title(altair.ExprRef("'scores divided by ' + pow(2, power)"))
    chart = parts.Chart(title=title, width=parts.WIDTH, height=parts.HEIGHT)
    chart = chart.transform_filter("datum.power == power && datum.q == q")
    chart = parts.split_numbers(chart, "weights", "weight")
    chart = chart.transform_calculate(key="tokens[datum.k]").mark_bar()
    chart = chart.encode(
        x=parts.key_columns("tokens[datum.value]", orient="bottom"),
        y=altair.Y("weight:Q").scale(domain=[0, 1]),
        tooltip=parts.tooltip("key", weight=".3f"),
    )
    columns = [("power", "divisor: 2 to the power"), "query"]
    weights = ("weights", "weights of the keys " + ", ".join(tokens))
    return parts.finish(chart, rows, params, [*columns, weights])
