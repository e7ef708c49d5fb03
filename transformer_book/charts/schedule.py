"""A chart of the paper's learning rate for every width and length of warm-up."""

import altair

from transformer_book.charts import parts
from transformer_lib.model.checks import check_integers

N_POINTS = 80


def schedule_explorer(n_steps: int = 20_000) -> altair.LayerChart:
    """Choose a width and a warm-up; see the learning rate of every step (equation 3).

    Args:
        n_steps: where the horizontal axis ends; at least 80.

    Raises:
        ValueError: n_steps is below 80.
    """
    check_integers(n_steps=n_steps)
    if n_steps < N_POINTS:
        raise ValueError(f"n_steps must be at least {N_POINTS}, not {n_steps}")
    stride = n_steps // N_POINTS
    rows = [{"step": number * stride or 1} for number in range(N_POINTS + 1)]
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
    tooltip = [
        altair.Tooltip("step:Q", format=","),
        altair.Tooltip("rate:Q", title="learning rate", format=".2e"),
    ]
    line = points.mark_line(point=True).encode(x=x, y=y, tooltip=tooltip)
    peak = points.transform_filter(f"abs(datum.step - warmup) <= {stride} / 2")
    rule = peak.mark_rule(strokeDash=[4, 4]).encode(x=x)
    params = [
        parts.select("d_model", ["256", "512", "1024"], "512"),
        parts.slider("warmup", "warm-up steps", 500, 10_000, 4_000),
    ]
    return parts.finish(altair.layer(rule, line), rows, params, ["step"])
