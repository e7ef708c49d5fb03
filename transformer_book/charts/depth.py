"""A chart of what happens layer by layer in stacks of several depths."""

from collections.abc import Mapping

import altair
from numpy.typing import ArrayLike

from transformer_book.charts import parts

Curves = Mapping[str, ArrayLike]  # name of a stack -> (n_layers,)


def depth_explorer(
    measures: Mapping[str, Mapping[int, Curves]],
) -> parts.VConcatChart:
    """Choose how deep the stacks are; compare them layer by layer, a panel a measure.

    Args:
        measures: what is measured -> number of layers -> name of a stack -> its
            values (n_layers,), from the first layer to the last. The vertical axis of
            a panel stays the same for all depths, so that they can be compared.
    """
    rows, tops = [], {}
    for measure, stacks in measures.items():
        for n_layers, curves in stacks.items():
            for name, values in curves.items():
                array = parts.as_tensor(values)
                tops[measure] = max(tops.get(measure, 0.0), array.max().item())
                row = {"measure": measure, "layers": f"{n_layers}", "stack": name}
                rows.append({**row, "values": parts.join_numbers(array)})

    stacks = list(dict.fromkeys(row["stack"] for row in rows))
    depths = list(dict.fromkeys(row["layers"] for row in rows))
    panels = [_panel(measure, top, stacks) for measure, top in tops.items()]
    chart = parts.VConcatChart(vconcat=panels)
    params = [parts.select("layers", depths, depths[-1])]
    values = ("values", "values of layers 1, 2, …")
    return parts.finish(chart, rows, params, ["measure", "layers", "stack", values])


def _panel(measure: str, top: float, stacks: list[str]) -> altair.Chart:
    """Draw one measure of all stacks of the chosen depth, on an axis from 0 to top."""
    chart = altair.Chart(width=parts.WIDTH, height=parts.HEIGHT).transform_filter(
        f"datum.measure == {parts.quoted(measure)} && datum.layers == layers"
    )
    chart = parts.split_numbers(chart, "values", "value")
    chart = chart.transform_calculate(layer="datum.k + 1")
    kind = {"title": None, "scale": altair.Scale(domain=stacks)}
    legend = altair.Legend(orient="top")
    return chart.mark_line(point=True).encode(
        x=altair.X("layer:Q")
        .axis(tickMinStep=1, grid=False)
        .scale(zero=False, nice=False),
        y=altair.Y("value:Q", title=measure).scale(domain=[0, top]),
        color=altair.Color("stack:N", legend=legend, **kind),
        strokeDash=altair.StrokeDash("stack:N", legend=legend, **kind),
        tooltip=parts.tooltip("stack", layer="", value=(measure, ".3f")),
    )
