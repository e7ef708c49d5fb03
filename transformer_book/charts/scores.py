"""A chart of scores by group: by length, say, or by overlap with training sentences."""

from collections.abc import Mapping, Sequence

import altair

from transformer_book.charts import parts
from transformer_lib.evaluation.scores import Score
from transformer_lib.plots.palette import HIGHLIGHT


def score_explorer(
    tables: Mapping[str, Mapping[str, Sequence[Score]]],
) -> parts.LayerChart:
    """Choose a grouping and a score; see every group's score with its interval.

    Args:
        tables: what the sentences are grouped by -> group -> its scores. All groups
            have scores of the same names.
    """
    rows = []
    for grouping, groups in tables.items():
        for group, scores in groups.items():
            for score in scores:
                row = {"by": grouping, "group": group, "sentences": score.n_sentences}
                rows.append({**row, "name": score.name, **_on_scale(score)})
    names = list(dict.fromkeys(row["name"] for row in rows))
    params = [parts.select("grouped_by", list(tables)), parts.select("score", names)]
    base = (
        altair.Chart(width=parts.WIDTH, height=200)
        .transform_filter("datum.by == grouped_by && datum.name == score")
        .encode(
            x=altair.X("group:N", title=None, sort=None).axis(labelAngle=-30),
            tooltip=parts.tooltip(
                "group",
                value=("score", ".1f"),
                low=("from", ".1f"),
                high=("to", ".1f"),
                sentences="",
            ),  # fmt: skip
        )
    )
    scale = altair.Scale(domain=[0, 100])
    low = altair.Y("low:Q", title="score, with its 95 % interval", scale=scale)
    value = altair.Y("value:Q", scale=scale)
    views = [
        base.mark_bar(size=3).encode(y=low, y2="high:Q"),
        base.mark_point(filled=True, size=70, color=HIGHLIGHT, opacity=1).encode(value),
        base.mark_text(dx=18, fontSize=11).encode(
            value, text=altair.Text("value:Q", format=".0f")
        ),
    ]
    columns = [("by", "grouped by"), "group", "sentences", ("name", "score"), "value"]
    columns += [("low", "from"), ("high", "to")]
    return parts.finish(parts.LayerChart(layer=views), rows, params, columns)


def _on_scale(score: Score) -> dict[str, float]:
    """Return a score and its interval, no wider than the scale from 0 to 100."""
    bounds = {"value": score.value, "low": score.low, "high": score.high}
    return {name: round(min(max(b, 0.0), 100.0), 1) for name, b in bounds.items()}
