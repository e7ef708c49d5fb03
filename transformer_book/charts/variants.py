"""A chart of how much a model's answers change under each variant of a part."""

import math
from collections.abc import Mapping

import altair

from transformer_book.charts import parts

SMALLEST = 1e-15  # below this, double precision sees only its own rounding


def difference_explorer(
    differences: Mapping[int, Mapping[str, float]], limit: float
) -> parts.LayerChart:
    """Draw how far each change moves the output, for a width to choose.

    Args:
        differences: d_model -> name of a change -> how far it moved the output, as a
            fraction of the output's own size.
        limit: differences below it count as none; a line marks it.
    """
    rows = [
        {"d_model": str(width), "change": name, "power": round(_power(value), 1)}
        for width, values in differences.items()
        for name, value in values.items()
    ]
    widths = [str(width) for width in differences]
    names = list(next(iter(differences.values())))
    lowest = _power(0)
    axis = altair.Axis(
        labelExpr="datum.value ? '1e' + datum.value : '1'",
        values=list(range(math.ceil(lowest), 1, 5)),
        grid=False,
    )
    scale = altair.Scale(domain=[lowest, 0.5])
    x = altair.X("power:Q", title="change of the logits", axis=axis, scale=scale)
    y = altair.Y("change:N", title=None, sort=names).axis(labelLimit=150, grid=True)
    dots = altair.Chart().transform_filter("datum.d_model == d_model")
    dots = dots.mark_point(filled=True, size=90, opacity=1).encode(x, y)
    line = altair.Chart(altair.Data(values=[{"power": math.log10(limit)}]))
    line = line.mark_rule(strokeDash=[4, 4]).encode(x=altair.X("power:Q"))
    params = [parts.select("d_model", widths, widths[-1])]
    columns = ["d_model", "change", ("power", "power of ten")]
    chart = parts.LayerChart(layer=[line, dots], width=160, height=24 * len(names))
    return parts.finish(chart, rows, params, columns)


def _power(value: float) -> float:
    return math.log10(max(value, SMALLEST))
