"""The plot of ratios puts every mark where its ratio is."""

import matplotlib.pyplot as plt
import pytest

from transformer_lib.plots.rows import plot_ratios

ROWS = {"short": {"a": 1.0, "b": 4.0}, "long": {"b": 0.5, "c": 3.0}}


@pytest.fixture
def axes():
    figure = plot_ratios(ROWS, "time over that of a")
    yield figure.axes[0]
    plt.close(figure)


def test_every_ratio_is_at_its_place(axes):
    marks = {line.get_label(): line for line in axes.lines[1:]}
    points = {
        name: [*zip(*line.get_data(), strict=True)] for name, line in marks.items()
    }
    assert points == {"a": [(1.0, 0)], "b": [(4.0, 0), (0.5, 1)], "c": [(3.0, 1)]}
    assert [text.get_text() for text in axes.get_yticklabels()] == ["short", "long"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row is at the top


def test_twice_and_half_are_as_far_from_one(axes):
    half, one, twice = axes.transData.transform([(0.5, 0), (1, 0), (2, 0)])[:, 0]
    assert twice - one == pytest.approx(one - half)
    assert list(axes.lines[0].get_xdata()) == [1, 1]
    axes.figure.canvas.draw()
    ticks = [text.get_text() for text in axes.get_xticklabels()]
    assert {"0.5", "1", "2", "4"} <= set(ticks)


def test_marks_differ_in_form_and_color(axes):
    looks = [(line.get_marker(), line.get_color()) for line in axes.lines[1:]]
    assert len({form for form, _ in looks}) == len({color for _, color in looks}) == 3


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "at least 1 ratio"),
        ({"x": {}}, "at least 1"),
        ({"x": {"a": 0.0}}, "is 0.0"),
    ],
)
def test_wrong_ratios_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        plot_ratios(rows, "ratio")
