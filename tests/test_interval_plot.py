"""The plot of shares with their intervals."""

import pytest
from matplotlib import pyplot as plt

from transformer_lib.evaluation.accuracy import Accuracy
from transformer_lib.plots.intervals import plot_intervals

ROWS = {"first": Accuracy(80, 100), "second": Accuracy(7, 10)}


@pytest.fixture
def axes():
    figure = plot_intervals(ROWS, "share right")
    yield figure.axes[0]
    plt.close(figure)


def test_every_row_has_its_dot_and_its_interval(axes) -> None:
    lines = [line.get_xdata().tolist() for line in axes.lines]
    expected = []
    for score in ROWS.values():
        expected += [list(score.interval), [score.value]]
    assert lines == expected
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == list(ROWS)
    assert axes.get_xlabel() == "share right"
    assert axes.yaxis_inverted()  # the first row is on top


def test_the_band_is_the_first_interval(axes) -> None:
    [band] = axes.patches
    low, high = ROWS["first"].interval
    assert band.get_x() == low
    assert band.get_x() + band.get_width() == pytest.approx(high)


def test_a_plot_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 row, but got 0"):
        plot_intervals({}, "share right")
