"""A chart of beam search as a tree that grows step by step."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import altair

from transformer_book.charts import parts
from transformer_lib.model.checks import (
    check_finite,
    check_kind,
    check_texts,
)
from transformer_lib.plots.palette import BLUE, GRAY, HIGHLIGHT

LEGEND = altair.Legend(orient="top", title=None)
# Each fate has a sign of its own too, for readers who cannot tell the colors apart.
FATES = {"kept": (BLUE, "circle"), "finished": (HIGHLIGHT, "square"),
         "pruned": (GRAY, "cross")}  # fmt: skip
COLUMN, ROW = 46, 58  # pixels; six columns fit a phone
MARGIN = 0.3  # of a row, between a token and the lines to and from it


class Branch(NamedTuple):
    """A continuation that a step of beam search has looked at.

    Attributes:
        target: its tokens, the new one last.
        log_prob: of the whole target, in nats.
        fate: what became of it: it goes on, it has ended, or it was dropped.
    """

    target: tuple[str, ...]
    log_prob: float
    fate: Literal["kept", "finished", "pruned"]


def beam_tree(
    steps: Sequence[Sequence[Branch]], root: str = "<bos>"
) -> altair.LayerChart:
    """Step through a search; see which branches are kept, finished, and pruned.

    A row is a step. Its branches are ordered from left to right, the most likely first,
    each with its new token and with the log-probability of the whole target.

    Args:
        steps: the branches of each step, best first.
        root: the token that every target starts with.

    Raises:
        ValueError: there is no step, branches are not in order, a fate is unknown, or
            a branch grows from one that was not kept.
    """
    check_kind((list, tuple), steps=steps)
    for number, branches in enumerate(steps, start=1):
        check_kind((list, tuple), **{f"step {number}": branches})
        for branch in branches:
            check_kind(Branch, **{f"a branch of step {number}": branch})
            check_texts("target", branch.target)
            if not branch.target:
                raise ValueError(f"step {number} has a branch without a token")
            check_finite(-math.inf, 0.0, log_prob=branch.log_prob)
    check_kind(str, root=root)
    n_columns = max(map(len, steps), default=0)
    rows = _rows(steps, root, (n_columns + 1) / 2)
    across = altair.Scale(domain=[0.5, n_columns + 0.5], nice=False)
    down = altair.Scale(domain=[len(steps) + 0.5, -0.5], nice=False)
    base = altair.Chart(
        width=COLUMN * n_columns, height=ROW * (len(steps) + 1)
    ).transform_filter("datum.step <= step")
    x = altair.X("rank:Q", title="rank, most likely first", scale=across).axis(
        orient="top", values=list(range(1, n_columns + 1)), grid=False, format="d"
    )
    y = altair.Y("step:Q", title="step", scale=down).axis(
        values=list(range(len(steps) + 1)), grid=False, format="d"
    )
    chart = altair.layer(
        _lines(base, across, down), *_marks(base.encode(x=x, y=y)), name="beam"
    )
    params = [parts.slider("step", "step", 0, len(steps), len(steps))]
    columns = ["step", "rank", "target", "fate", ("log_prob", "log-probability (nats)")]
    return parts.finish(chart, rows, params, columns)


def _rows(steps: Sequence[Sequence[Branch]], root: str, middle: float) -> list[dict]:
    """Check the steps; return a row for each branch, with the rank of its parent."""
    if not steps:
        raise ValueError("at least 1 step is needed, but got 0")
    rows = [{"step": 0, "rank": middle, "token": root, "target": root}]
    rows[0] |= {"fate": "start", "log_prob": 0.0}
    kept = {(): middle}
    for number, branches in enumerate(steps, start=1):
        for before, after in pairwise(branches):
            if after.log_prob > before.log_prob:
                raise ValueError(
                    f"step {number}: {after.log_prob} stands after {before.log_prob}, "
                    "but branches must be given best first"
                )
        ranks = {}
        for rank, (target, log_prob, fate) in enumerate(branches, start=1):
            if fate not in FATES:
                raise ValueError(f"fate must be one of {', '.join(FATES)}, not {fate}")
            if target[:-1] not in kept:
                raise ValueError(
                    f"step {number}: {target} grows from a branch that was not kept"
                )
            row = {"step": number, "rank": rank, "parent": kept[target[:-1]]}
            row |= {"token": target[-1], "target": " ".join(target), "fate": fate}
            rows.append({**row, "log_prob": round(log_prob, 2)})
            if fate == "kept":
                ranks[target] = rank
        kept = ranks
    return rows


def _lines(
    base: altair.Chart, across: altair.Scale, down: altair.Scale
) -> altair.Chart:
    """Draw a line from every branch's parent; dashed to those that were dropped."""
    pruned = altair.when("datum.fate == 'pruned'")
    return (
        base.transform_filter("datum.step > 0")
        .transform_calculate(
            top=f"datum.step - 1 + {MARGIN}", bottom=f"datum.step - {MARGIN}"
        )
        .mark_rule()
        .encode(
            x=altair.X("parent:Q", scale=across),
            x2="rank:Q",
            y=altair.Y("top:Q", scale=down),
            y2="bottom:Q",
            color=_by_fate(),
            strokeWidth=pruned.then(altair.value(1)).otherwise(altair.value(2)),
            strokeDash=pruned.then(altair.value([3, 3])).otherwise(
                altair.value([1, 0])
            ),
        )
    )


def _marks(base: altair.Chart) -> list[altair.Chart]:
    """Draw each branch: its token above, its sign, its log-probability below."""
    branches = base.transform_filter("datum.step > 0")
    signs = branches.mark_point(filled=True, size=45, opacity=1).encode(
        color=_by_fate(),
        shape=altair.Shape("fate:N", legend=LEGEND).scale(
            domain=list(FATES), range=[sign for _, sign in FATES.values()]
        ),
        tooltip=[
            altair.Tooltip("target:N"),
            altair.Tooltip("log_prob:Q", title="log-probability", format=".3f"),
            altair.Tooltip("fate:N"),
        ],
    )
    tokens = base.mark_text(dy=-11, fontSize=10, limit=COLUMN).encode(text="token:N")
    numbers = branches.mark_text(dy=11, fontSize=9).encode(
        text=altair.Text("log_prob:Q", format=".2f")
    )
    return [signs, tokens, numbers]


def _by_fate() -> altair.Color:
    colors = [color for color, _ in FATES.values()]
    return altair.Color("fate:N", legend=LEGEND).scale(domain=list(FATES), range=colors)
