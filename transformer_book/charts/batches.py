"""A chart of batches as rectangles: how much of them is tokens, how much is padding."""

from collections.abc import Mapping, Sequence

import altair

from transformer_book.charts import parts

WIDTH, HEIGHT = 230, 170  # pixels of a panel; fits a phone

Plan = Sequence[Sequence[int]]


def batch_explorer(
    plans: Mapping[str, Plan],
    lengths: Sequence[tuple[int, int]],
    n_batches: int = 8,
) -> parts.VConcatChart:
    """Choose a side and a batch; see its rows and the padding behind them.

    Each plan has a panel. The axes are the same for all, so areas can be compared.

    Args:
        plans: name -> row numbers of each batch, as `batches.batch_plan` returns them.
        lengths: source and target length of each pair, in tokens.
        n_batches: so many batches of each plan can be chosen, evenly spread over it.
    """
    rows = []
    for name, plan in plans.items():
        for number in range(n_batches):
            index = (2 * number + 1) * len(plan) // (2 * n_batches)
            for side, pair in enumerate(("source", "target")):
                sizes = [lengths[row][side] for row in plan[index]]
                filled = len(sizes) * max(sizes)
                row = {"plan": name, "side": pair, "batch": number + 1}
                row |= {"number": index + 1, "lengths": " ".join(map(str, sizes))}
                padding = round(1 - sum(sizes) / filled, 4)
                rows.append({**row, "longest": max(sizes), "padding": padding})
    n_columns = max(row["longest"] for row in rows)
    n_rows = max(len(row["lengths"].split()) for row in rows)
    panels = [_panel(name, n_columns, n_rows) for name in plans]
    chart = parts.VConcatChart(vconcat=panels)
    params = [
        parts.select("side", ["source", "target"]),
        parts.slider("batch", "batch", 1, n_batches, 1 + n_batches // 2),
    ]
    columns = ["plan", "side", ("number", "batch of the plan")]
    columns += [("lengths", "lengths of its rows"), ("padding", "padding, a fraction")]
    return parts.finish(chart, rows, params, columns)


def _panel(name: str, n_columns: int, n_rows: int) -> altair.LayerChart:
    """Draw the chosen batch of one plan; above it, which share of it is padding."""
    base = altair.Chart(width=WIDTH, height=HEIGHT).transform_filter(
        f"datum.plan == {parts.quoted(name)} && datum.side == side"
        " && datum.batch == batch"
    )
    heading = "datum.plan + ': ' + format(datum.padding, '.0%') + ' padding'"
    title = (
        base.transform_calculate(heading=heading)
        .mark_text(align="left", baseline="bottom", fontSize=12)
        .encode(x=altair.value(0), y=altair.value(-6), text="heading:N")
    )
    cells = parts.split_field(base, "lengths", " ", "number", "k").transform_calculate(
        row="datum.k + 1",
        top="datum.k + 0.5",
        bottom="datum.k + 1.5",
        kinds="['token', 'padding']",
    )
    cells = cells.transform_flatten(["kinds"], as_=["kind"]).transform_calculate(
        left="datum.kind == 'token' ? 0 : toNumber(datum.number)",
        right="datum.kind == 'token' ? toNumber(datum.number) : datum.longest",
        count="datum.right - datum.left",
    )
    across = altair.Scale(domain=[0, n_columns], nice=False)
    down = altair.Scale(domain=[n_rows + 0.5, 0.5], nice=False)
    cells = cells.mark_rect(style="tile").encode(
        x=altair.X("left:Q", title="position", scale=across).axis(grid=False),
        x2="right:Q",
        y=altair.Y("top:Q", title="row of the batch", scale=down).axis(grid=False),
        y2="bottom:Q",
        color=altair.Color("kind:O", title=None)
        .scale(domain=["token", "padding"])
        .legend(orient="top"),
        tooltip=parts.tooltip("kind", row="", count=("positions", "")),
    )
    return altair.layer(cells, title)
