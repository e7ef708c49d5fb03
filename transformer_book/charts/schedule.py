"""A chart of the paper's learning rate for every width and length of warm-up."""

import altair

from transformer_book.charts import parts

N_POINTS, STRIDE = 80, 250  # steps that are drawn, and from one to the next


def schedule_explorer() -> parts.LayerChart:
    """Choose a width and a warm-up; see the learning rate of each step (equation 3)."""
    rows = [{"step": number * STRIDE or 1} for number in range(N_POINTS + 1)]
    formula = (
        "pow(toNumber(d_model), -0.5) * "
        "min(pow(datum.step, -0.5), datum.step * pow(warmup, -1.5))"
    )
    points = altair.Chart(width=parts.WIDTH, height=180)
    points = points.transform_calculate(rate=formula)
    x = altair.X("step:Q").axis(
        tickCount=4, grid=False, labelExpr="format(datum.value, '~s')"
    )
    y = altair.Y("rate:Q", title="learning rate").axis(format=".1e", tickCount=5)
    tooltip = parts.tooltip(step=",", rate=("learning rate", ".2e"))
    line = points.mark_line(point=True).encode(x=x, y=y, tooltip=tooltip)
    peak = points.transform_filter(f"abs(datum.step - warmup) <= {STRIDE} / 2")
    rule = peak.mark_rule(strokeDash=[4, 4]).encode(x=x)
    params = [
        parts.select("d_model", ["256", "512", "1024"], "512"),
        parts.slider("warmup", "warm-up steps", 500, 10_000, 4_000),
    ]
    chart = parts.LayerChart(layer=[rule, line])
    return parts.finish(chart, rows, params, ["step"])
