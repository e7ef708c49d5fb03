"""Heat maps of a sentence's words against words, and what the divisor does."""

from collections.abc import Mapping

import altair
from numpy.typing import ArrayLike
from torch import Tensor

from transformer_book.charts import parts
from transformer_book.charts.parts import Chart, Words

POWERS = range(-4, 10)  # of 2; divisor_explorer divides by one of them


def attention_explorer(maps: ArrayLike, q_tokens: Words, k_tokens: Words) -> Chart:
    """Browse the attention maps of several heads; see `_heat_map`.

    Args:
        maps: (n_heads, q_len, k_len), each weight in 0..1.
        q_tokens: q_len names for the rows.
        k_tokens: k_len names for the columns.

    Raises:
        ValueError: other counts of tokens, or a weight outside 0..1, which would get
            the color of 0 or 1.
    """
    weights = parts.as_tensor(maps)
    low, high = weights.min().item(), weights.max().item()
    if low < -1e-6 or high > 1 + 1e-6:
        raise ValueError(f"weights must lie in 0..1, but go from {low:g} to {high:g}")
    heads = {f"{head}": each for head, each in enumerate(weights, start=1)}
    tokens = {"query": q_tokens, "key": k_tokens}
    return _heat_map("head", heads, tokens, "weight", "attention weight")


def similarity_explorer(states: Mapping[str, ArrayLike], tokens: Words) -> Chart:
    """Compare all positions of a sentence by the cosine of their vectors.

    Args:
        states: name -> (length, d_model), the vectors of the positions.
        tokens: length names, one for each position.

    Raises:
        ValueError: another count of tokens, or a vector of zeros has no direction.
    """
    cosines = {}
    for name, vectors in states.items():
        array = parts.as_tensor(vectors)
        units = parts.as_tensor(array / array.norm(dim=1, keepdim=True))
        cosines[name] = units @ units.T  # (length, length)
    both = {"position": tokens, "other position": tokens}
    title = "cosine similarity (negative values shown as 0)"
    return _heat_map("vectors", cosines, both, "cosine", title)


def _heat_map(
    kind: str, maps: dict[str, Tensor], tokens: dict[str, Words], value: str, title: str
) -> Chart:
    """Choose one of several maps; hover for a number, click or choose a row.

    Args:
        kind: what the maps are.
        maps: name -> (n_rows, n_columns), numbers from 0 to 1.
        tokens: what the rows are -> their names; then the columns, likewise.
        value: what the numbers are, in a word.
        title: of the color bar.
    """
    (row, q_tokens), (column, k_tokens) = tokens.items()
    rows = []
    for name, array in maps.items():
        parts.require_names(array.shape, q_tokens, k_tokens)
        for q, line in enumerate(array):
            cells = {"q": q, row: q_tokens[q], "values": parts.join_numbers(line)}
            rows.append({kind: name, **cells})
    bind = parts.token_list(row, q_tokens, "all")
    chosen = altair.selection_point(name="row", fields=["q"], on="click", bind=bind)
    params = [
        parts.fixed("q_tokens", list(q_tokens)),
        parts.fixed("k_tokens", list(k_tokens)),
        parts.select(kind, list(maps)),
        chosen,
    ]
    step = parts.step_size(k_tokens)
    chart = Chart(width=step, height=step)
    chart = chart.transform_filter(f"datum.{kind} == {kind}")
    chart = parts.split_numbers(chart, "values", value)
    chart = chart.transform_calculate(**{column: "k_tokens[datum.k]"})
    color = altair.Color(f"{value}:Q", title=title)
    color = color.scale(domain=[0, 1], clamp=True, interpolate="rgb")
    chart = chart.mark_rect(style="tile").encode(
        x=parts.key_columns("k_tokens[datum.value]", column),
        y=parts.query_rows("q_tokens[datum.value]", row),
        color=color.legend(orient="bottom", gradientLength=160, titleLimit=300),
        opacity=altair.condition(chosen, altair.value(1), altair.value(0.2)),
        tooltip=parts.tooltip(row, column, **{value: ".3f"}),
    )
    numbers = ("values", f"{value} of {', '.join(k_tokens)}")
    return parts.finish(chart, rows, params, [kind, row, numbers])


def divisor_explorer(
    query: Tensor, key: Tensor, tokens: Words, start: int = 0
) -> Chart:
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
    chart = Chart(title=title, width=parts.WIDTH, height=parts.HEIGHT)
    chart = chart.transform_filter("datum.power == power && datum.q == q")
    chart = parts.split_numbers(chart, "weights", "weight")
    chart = chart.transform_calculate(key="tokens[datum.k]").mark_bar()
    chart = chart.encode(
        x=parts.key_columns("tokens[datum.value]", orient="bottom"),
        y=altair.Y("weight:Q").scale(domain=[0, 1]),
        tooltip=parts.tooltip("key", weight=".3f"),
    )
    weights = ("weights", "weights of the keys " + ", ".join(tokens))
    columns = [("power", "divisor: 2 to the power"), "query", weights]
    return parts.finish(chart, rows, params, columns)
