"""A chart of how similar the positions of a sentence are to each other."""

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from transformer_book.charts import parts


def similarity_explorer(
    states: Mapping[str, ArrayLike], tokens: Sequence[str]
) -> parts.Chart:
    """Compare all positions of a sentence by the cosine of their vectors.

    Args:
        states: name of a layer -> (length, d_model), the vectors of the positions.
        tokens: length names, one for each position.

    Raises:
        ValueError: another count of tokens, or a vector of zeros has no direction.
    """
    rows = []
    for name, vectors in states.items():
        array = parts.as_tensor(vectors)
        units = parts.as_tensor(array / array.norm(dim=1, keepdim=True))
        cosines_of = units @ units.T  # (length, length)
        parts.require_names(cosines_of.shape, tokens, tokens)
        for q, cosines in enumerate(cosines_of):
            row = {"layer": name, "q": q, "token": tokens[q]}
            rows.append({**row, "cosines": parts.join_numbers(cosines)})

    params = [parts.fixed("tokens", list(tokens)), parts.select("layer", list(states))]
    step = parts.step_size(tokens)
    chart = parts.Chart(name="similarity", width=step, height=step)
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
