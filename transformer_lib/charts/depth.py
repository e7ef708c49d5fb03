"""A chart of what happens layer by layer in stacks of several depths."""

from collections.abc import Mapping

import altair
from numpy.typing import ArrayLike

from transformer_lib.charts.parts import finish, join_numbers, select, split_field
from transformer_lib.plots.heatmaps import as_array

BLUE, ORANGE = "#2E86C1", "#D2691E"  # both stand out from white and from black

Curves = Mapping[str, ArrayLike]  # name of a stack -> (n_layers,)


def depth_explorer(
    measures: Mapping[str, Mapping[int, Curves]],
) -> altair.VConcatChart:
    """Choose how deep the stacks are; compare them layer by layer, a panel a measure.

    Args:
        measures: what is measured -> number of layers -> name of a stack -> its
            values (n_layers,), from the first layer to the last. The vertical axis of
            a panel stays the same for all depths, so that they can be compared.

    Raises:
        ValueError: a curve has another number of values than layers.
    """
    rows, tops, names, depths = [], {}, {}, {}
    for measure, stacks in measures.items():
        for n_layers, curves in stacks.items():
            depths[f"{n_layers}"] = None
            for name, values in curves.items():
                array = as_array(values, 1, f"{measure} of {name!r}")
                if len(array) != n_layers:
                    raise ValueError(
                        f"{n_layers} layers, but {measure} of {name!r} has "
                        f"{len(array)} values"
                    )
                names[name] = None
                tops[measure] = max(tops.get(measure, 0.0), float(array.max()))
                row = {"measure": measure, "layers": f"{n_layers}", "stack": name}
                rows.append({**row, "values": join_numbers(array)})

    panels = [_panel(measure, top, list(names)) for measure, top in tops.items()]
    chart = altair.vconcat(*panels, data=altair.Data(values=rows))
    params = [select("layers", list(depths), list(depths)[-1])]
    headings = {name: name for name in ("measure", "layers", "stack")}
    return finish(chart, params, {**headings, "values": "values of layers 1, 2, …"})


def _panel(measure: str, top: float, names: list[str]) -> altair.Chart:
    """Draw one measure of all stacks of the chosen depth, on an axis from 0 to top."""
    chart = altair.Chart(width=240, height=130).transform_filter(
        f"datum.measure == '{measure}' && datum.layers == layers"
    )
    chart = split_field(chart, "values", " ", "number", "k").transform_calculate(
        layer="datum.k + 1", value="toNumber(datum.number)"
    )
    legend = altair.Legend(orient="top")
    return chart.mark_line(point=True).encode(
        x=altair.X("layer:Q", title="layer")
        .axis(tickMinStep=1, grid=False)
        .scale(zero=False, nice=False),
        y=altair.Y("value:Q", title=measure).scale(domain=[0, top]),
        color=altair.Color("stack:N", title=None, legend=legend).scale(
            domain=names, range=[BLUE, ORANGE]
        ),
        strokeDash=altair.StrokeDash("stack:N", title=None, legend=legend).scale(
            domain=names
        ),
        tooltip=[
            altair.Tooltip("stack:N"),
            altair.Tooltip("layer:Q"),
            altair.Tooltip("value:Q", title=measure, format=".3f"),
        ],
    )
