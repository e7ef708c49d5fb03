"""A chart of scores by group: by length, say, or by overlap with training sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import altair

from transformer_book.charts import parts
from transformer_lib.model.checks import check_kind
from transformer_lib.plots.checks import check_named
from transformer_lib.plots.palette import HIGHLIGHT

if TYPE_CHECKING:
    from transformer_lib.evaluation.scores import Score


def score_explorer(
    tables: Mapping[str, Mapping[str, Sequence[Score]]],
) -> altair.LayerChart:
    """Choose a grouping and a score; see every group's score with its interval.

    Args:
        tables: what the sentences are grouped by -> group -> its scores. All groups
            have scores of the same names.

    Raises:
        ValueError: there is no table, or groups have other scores than the first.
    """
    check_kind(Mapping, tables=tables)
    rows, names = [], None
    for grouping, groups in tables.items():
        check_named(grouping, groups)
        for group, scores in groups.items():
            own = [score.name for score in scores]
            names = names or own
            if own != names:
                raise ValueError(f"group {group!r} has the scores {own}, not {names}")
            for score in scores:
                row = {"by": grouping, "group": group, "sentences": score.n_sentences}
                rows.append({**row, "name": score.name, **_on_scale(score)})
    if not names:
        raise ValueError("at least 1 group with 1 score is needed")
    params = [parts.select("grouped_by", list(tables)), parts.select("score", names)]
    base = (
        altair.Chart(width=parts.WIDTH, height=200)
        .transform_filter("datum.by == grouped_by && datum.name == score")
        .encode(
            x=altair.X("group:N", title=None, sort=None).axis(labelAngle=-30),
            tooltip=[
                altair.Tooltip("group:N"),
                altair.Tooltip("value:Q", title="score", format=".1f"),
                altair.Tooltip("low:Q", title="from", format=".1f"),
                altair.Tooltip("high:Q", title="to", format=".1f"),
                altair.Tooltip("sentences:Q"),
            ],
        )
    )
    scale = altair.Scale(domain=[0, 100])
    low = altair.Y("low:Q", title="score, with its 95 % interval", scale=scale)
    value = altair.Y("value:Q", scale=scale)
    chart = altair.layer(
        base.mark_bar(size=3).encode(y=low, y2="high:Q"),
        base.mark_point(filled=True, size=70, color=HIGHLIGHT, opacity=1).encode(value),
        base.mark_text(dx=18, fontSize=11).encode(
            value, text=altair.Text("value:Q", format=".0f")
        ),
    )
    columns = [("by", "grouped by"), "group", "sentences", ("name", "score"), "value"]
    columns += [("low", "from"), ("high", "to")]
    return parts.finish(chart, rows, params, columns)


def _on_scale(score: Score) -> dict[str, float]:
    """Return a score and its interval, no wider than the scale from 0 to 100."""
    bounds = {"value": score.value, "low": score.low, "high": score.high}
    return {name: round(min(max(b, 0.0), 100.0), 1) for name, b in bounds.items()}
