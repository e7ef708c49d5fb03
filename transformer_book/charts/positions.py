"""A chart of positional encodings: their waves, and how similar positions are."""

import altair
from numpy.typing import ArrayLike

from transformer_book.charts import parts


def position_explorer(table: ArrayLike) -> parts.VConcatChart:
    """See positional encodings as curves, and compare a position with all others.

    Args:
        table: (n_positions, d_model), d_model even.
    """
    array = parts.as_tensor(table)
    n_positions, d_model = array.shape
    dots = array @ array.T  # (n_positions, n_positions)
    join = parts.join_numbers
    rows = [
        {"position": position, "values": join(values), "dots": join(products)}
        for position, (values, products) in enumerate(zip(array, dots, strict=True))
    ]
    params = [
        parts.slider("pair", "pair of dimensions", 0, d_model // 2 - 1),
        parts.slider("chosen", "position", 0, n_positions - 1, n_positions // 2),
    ]
    across = altair.Scale(domain=[-0.5, n_positions - 0.5], nice=False)
    x = altair.X("position:Q", scale=across).axis(grid=False)
    view = altair.Chart(width=parts.WIDTH, height=parts.HEIGHT)
    at_chosen = view.transform_filter("datum.position == chosen")

    bound = array.abs().max().item()
    label = "'dimension ' + (2 * pair + (datum.value == 'odd' ? 1 : 0))"
    style = {"orient": "top", "symbolType": "stroke", "labelExpr": label}
    legend = altair.Legend(title=None, **style)
    curves = view.transform_calculate(
        even="toNumber(split(datum.values, ' ')[2 * pair])",
        odd="toNumber(split(datum.values, ' ')[2 * pair + 1])",
    ).transform_fold(["even", "odd"], as_=["dimension", "value"])
    curves = curves.mark_line().encode(
        x=x,
        y=altair.Y("value:Q").scale(domain=[-bound, bound]),
        color=altair.Color("dimension:N", legend=legend),
        strokeDash=altair.StrokeDash("dimension:N", legend=legend),
    )
    marker = at_chosen.mark_rule(strokeWidth=1.5).encode(x=x)
    told = altair.Tooltip("dot:Q", title="dot product")
    heights = [min(0.0, dots.min().item()), dots.max().item()]
    bars = parts.split_numbers(at_chosen, "dots", "dot")
    bars = bars.mark_bar(width=max(1, 200 // n_positions)).encode(
        x=altair.X("k:Q", title="other position", scale=across).axis(grid=False),
        y=altair.Y("dot:Q", title="dot product").scale(domain=heights),
        tooltip=[altair.Tooltip("k:Q", title="position"), told],
    )
    columns = [
        "position",
        ("values", "values of dimensions 0, 1, …"),
        ("dots", "dot products with positions 0, 1, …"),
    ]
    panels = [altair.layer(curves, marker), bars]
    return parts.finish(parts.VConcatChart(vconcat=panels), rows, params, columns)
