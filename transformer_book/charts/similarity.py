"""A chart of how similar the positions of a sentence are to each other."""

from collections.abc import Mapping, Sequence

import altair
import numpy as np
from numpy.typing import ArrayLike

from transformer_book.charts import parts
from transformer_lib.model.checks import check_kind, check_texts
from transformer_lib.plots.checks import as_array


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
    check_kind(Mapping, states=states)
    check_texts("tokens", tokens)
    if not states:
        raise ValueError("at least 1 layer is needed, but got 0")
    rows = []
    for name, vectors in states.items():
        array = as_array(vectors, 2, f"states {name!r}")
        if len(array) != len(tokens):
            raise ValueError(
                f"{len(tokens)} tokens, but states {name!r} has {len(array)}"
            )
        norms = np.linalg.norm(array, axis=1, keepdims=True)
        for position in np.flatnonzero(norms == 0):
            raise ValueError(f"position {position} is zero: it has no direction")
        for q, cosines in enumerate((array / norms) @ (array / norms).T):
            row = {"layer": name, "q": q, "token": tokens[q]}
            rows.append({**row, "cosines": parts.join_numbers(cosines)})

    params = [parts.fixed("tokens", list(tokens)), parts.select("layer", list(states))]
    step = parts.step_size(tokens)
    chart = altair.Chart(name="similarity", width=step, height=step)
    chart = chart.transform_filter("datum.layer == layer")
    chart = parts.split_numbers(chart, "cosines", "cosine")
    chart = chart.transform_calculate(other="tokens[datum.k]")
    chart = chart.mark_rect(style="tile").encode(
        x=parts.key_columns("tokens[datum.value]", "other position"),
        y=parts.query_rows("tokens[datum.value]", "position"),
        color=parts.shade(
            "cosine", "cosine similarity (negative values shown as 0)", titleLimit=300
        ),
        tooltip=parts.tooltip("token", "other", cosine=".3f"),
    )
    cosines = ("cosines", "cosine similarity with " + ", ".join(tokens))
    return parts.finish(chart, rows, params, ["layer", "token", cosines])
