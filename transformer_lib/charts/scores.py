"""A chart of scores by group: by length, say, or by overlap with training sentences."""

from collections.abc import Mapping, Sequence

import altair

from transformer_lib.charts.parts import finish, select
from transformer_lib.evaluation.scores import Score

WIDTH, HEIGHT = 230, 200  # pixels; fits a phone


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
    rows, names = [], None
    for grouping, groups in tables.items():
        for place, (group, scores) in enumerate(groups.items()):
            own = [score.name for score in scores]
            names = names or own
            if own != names:
                raise ValueError(f"group {group!r} has the scores {own}, not {names}")
            rows += [_row(grouping, place, group, score) for score in scores]
    if not names:
        raise ValueError("at least 1 group with 1 score is needed")
    params = [select("grouped_by", list(tables)), select("score", names)]
    x = altair.X("group:N", title=None).sort(altair.SortField("place"))
    x = x.axis(labelAngle=-30, grid=False)
    scale = altair.Scale(domain=[0, 100])
    tooltip = [
        altair.Tooltip("group:N"),
        altair.Tooltip("value:Q", title="score", format=".1f"),
        altair.Tooltip("low:Q", title="from", format=".1f"),
        altair.Tooltip("high:Q", title="to", format=".1f"),
        altair.Tooltip("sentences:Q"),
    ]
    base = altair.Chart(
        altair.Data(values=rows), width=WIDTH, height=HEIGHT
    ).transform_filter("datum.by == grouped_by && datum.name == score")
    interval = base.mark_rule(strokeWidth=3).encode(
        x=x,
        y=altair.Y("low:Q", title="score, with its 95 % interval", scale=scale),
        y2="high:Q",
        color=altair.value("#2E86C1"),
        tooltip=tooltip,
    )
    point = base.mark_point(filled=True, size=70).encode(
        x=x, y=altair.Y("value:Q", scale=scale), tooltip=tooltip,
        color=altair.value("#D55E00"),
    )  # fmt: skip
    number = base.mark_text(dx=18, fontSize=11).encode(
        x=x,
        y=altair.Y("value:Q", scale=scale),
        text=altair.Text("value:Q", format=".0f"),
    )
    headings = {
        "by": "grouped by",
        "group": "group",
        "sentences": "sentences",
        "name": "score",
        "value": "value",
        "low": "from",
        "high": "to",
    }
    return finish(altair.layer(interval, point, number), params, headings)


def _row(grouping: str, place: int, group: str, score: Score) -> dict:
    """Return what the chart knows of one group's score, rounded to stay the same."""
    bounds = {"value": score.value, "low": score.low, "high": score.high}
    return {
        "by": grouping,
        "place": place,
        "group": group,
        "sentences": score.n_sentences,
        "name": score.name,
        **{
            name: round(min(max(bound, 0.0), 100.0), 1)
            for name, bound in bounds.items()
        },
    }
