"""A chart of how much the positions of a sentence resemble each other."""

from collections.abc import Mapping, Sequence

import altair
import numpy as np
from numpy.typing import ArrayLike

from transformer_lib.charts.parts import (
    finish,
    fixed,
    join_numbers,
    select,
    split_field,
    step_size,
)
from transformer_lib.plots.heatmaps import as_array


def similarity_explorer(
    states: Mapping[str, ArrayLike], tokens: Sequence[str]
) -> altair.Chart:
    """Compare all positions of a sentence by the cosine of their vectors.

    Args:
        states: name of a layer -> (length, d_model), the vectors of the positions.
        tokens: length names, one for each position.

    Raises:
        ValueError: no layer, wrong rank, other counts of tokens, or a vector of zeros.
    """
    if not states:
        raise ValueError("at least 1 layer is needed, but got 0")
    rows = []
    for name, vectors in states.items():
        array = as_array(vectors, 2, f"states {name!r}")
        if len(array) != len(tokens):
            raise ValueError(
                f"{len(tokens)} tokens, but states {name!r} has {len(array)}"
            )
        for p, cosines in enumerate(cosine_similarity(array)):
            row = {"layer": name, "p": p, "token": tokens[p]}
            rows.append({**row, "cosines": join_numbers(cosines)})

    params = [fixed("tokens", list(tokens)), select("layer", list(states))]
    chart = altair.Chart(altair.Data(values=rows), name="similarity")
    chart = chart.transform_filter("datum.layer == layer")
    chart = split_field(chart, "cosines", " ", "number", "k").transform_calculate(
        other="tokens[datum.k]", cosine="toNumber(datum.number)"
    )
    axis = altair.Axis(labelExpr="tokens[datum.value]", ticks=False)
    across = altair.Axis(
        labelExpr="tokens[datum.value]", ticks=False, orient="top", labelAngle=-45
    )
    chart = chart.mark_rect(stroke="#8896A5", strokeWidth=0.4).encode(
        x=altair.X("k:O", title="other position", axis=across),
        y=altair.Y("p:O", title="position", axis=axis),
        color=altair.Color("cosine:Q", title="cosine similarity (0: 0 or less)")
        .scale(domain=[0, 1], clamp=True, interpolate="rgb")
        .legend(orient="bottom", gradientLength=160, titleLimit=230),
        tooltip=[
            altair.Tooltip("token:N"),
            altair.Tooltip("other:N"),
            altair.Tooltip("cosine:Q", format=".3f"),
        ],
    )
    headings = {
        "layer": "layer",
        "token": "token",
        "cosines": "cosine similarity with " + ", ".join(tokens),
    }
    return finish(chart, params, headings, step_size(tokens))


def cosine_similarity(vectors: np.ndarray) -> np.ndarray:
    """Return the cosine of every pair of rows: (length, d) -> (length, length).

    Raises:
        ValueError: a row is zero and so has no direction.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    for position in np.flatnonzero(lengths == 0):
        raise ValueError(f"position {position} is zero: it has no direction")
    directions = vectors / lengths
    return directions @ directions.T
