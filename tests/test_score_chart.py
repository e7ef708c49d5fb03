"""The chart of scores by group, and the plot of repeated measurements."""

import re

import matplotlib.pyplot as plt
import pytest
import vl_convert

from transformer_lib.charts.scores import score_explorer
from transformer_lib.evaluation.scores import Score
from transformer_lib.plots.spread import plot_spread


def score(name: str, value: float, spread: float = 3.0, n: int = 7) -> Score:
    return Score(name, value, value - spread, value + spread, "signed", n)


TABLES = {
    "length": {
        "zebra": [score("BLEU", 30), score("chrF2", 50)],
        "ape": [score("BLEU", 98.7), score("chrF2", 60, n=5)],
    },
    "overlap": {"few words": [score("BLEU", 1.5), score("chrF2", 40)]},
}


def drawn(grouping: str, name: str) -> list[dict[str, str]]:
    """Choose, and read what the points say, from left to right."""
    spec = score_explorer(TABLES).to_dict()
    chosen = {"grouped_by": grouping, "score": name}
    for param in spec["params"]:
        param["value"] = chosen.get(param["name"], param.get("value"))
    svg = vl_convert.vegalite_to_svg(spec)
    points = []
    for label in re.findall(r'aria-label="(group: [^"]*)"[^>]*>', svg):
        part = dict(each.split(": ", 1) for each in label.split("; "))
        if "high" in part:  # the interval; the point says the same
            points.append(part)
    return points


def test_the_chosen_groups_and_score_are_drawn() -> None:
    points = drawn("length", "chrF2")
    assert [(p["group"], p["score"]) for p in points] == [
        ("zebra", "50.0"),
        ("ape", "60.0"),
    ]
    assert [p["sentences"] for p in points] == ["7", "5"]
    assert (points[0]["from"], points[0]["to"]) == ("47.0", "53.0")
    assert [p["group"] for p in drawn("overlap", "BLEU")] == ["few words"]


def test_an_interval_ends_where_the_scale_ends() -> None:
    assert drawn("length", "BLEU")[1]["to"] == "100.0"
    assert drawn("overlap", "BLEU")[0]["from"] == "0.0"


def test_groups_stand_in_the_order_given() -> None:
    layer = score_explorer(TABLES).to_dict()["layer"][0]
    assert layer["encoding"]["x"]["sort"] == {"field": "place"}


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 group"):
        score_explorer({})
    with pytest.raises(ValueError, match=r"'b' has the scores \['x'\], not \['BLEU'\]"):
        score_explorer({"t": {"a": [score("BLEU", 1)], "b": [score("x", 1)]}})


def test_every_value_its_mean_and_the_first_rows_range_are_drawn() -> None:
    axes = plot_spread({"first": [4, 1, 2.5], "second": [9, 7]}, "score").axes[0]
    dots, mean, others, other_mean = axes.lines
    assert dots.get_xdata().tolist() == [4, 1, 2.5]
    assert mean.get_xdata() == [2.5]
    assert others.get_ydata().tolist() == [1, 1]
    assert other_mean.get_xdata() == [8]
    band = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert (round(band.x0, 6), round(band.x1, 6)) == (1, 4)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["first", "second"]
    low, high = axes.get_ylim()
    assert low > high  # the first row stands on top
    plt.close("all")


def test_a_plot_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 row"):
        plot_spread({}, "score")
