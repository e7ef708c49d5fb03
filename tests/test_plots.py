"""Pictures keep the book's conventions; what would mislead in silence is refused."""

import re
from itertools import combinations, pairwise

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from IPython.core.pylabtools import print_figure
from matplotlib.text import Text

from book._ext.figures import small_svg
from transformer_lib import plots
from transformer_lib.plots.palette import LIGHT

matplotlib.use("Agg")

QUERIES = ["the", "cat", "sat"]
KEYS = ["die", "Katze", "die", "saß", "."]  # a token twice, as in real sentences


@pytest.fixture(autouse=True)
def theme():
    with matplotlib.rc_context():
        plots.use_book_theme()
        yield
    plt.close("all")


def weights(n_heads: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n_heads, 3, 5, generator=generator).softmax(dim=-1)


def tick_names(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def band(axes) -> tuple[float, float]:
    [area] = axes.patches
    return area.get_x(), area.get_x() + area.get_width()


def test_queries_are_rows_and_keys_are_columns_on_one_scale() -> None:
    given = weights()[0] / 10
    figure = plots.plot_attention(given, QUERIES, KEYS)
    axes = figure.axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), given)
    assert axes.images[0].get_clim() == (0, 1)
    assert figure.axes[-1].get_ylabel() == "attention weight"
    assert (axes.get_ylabel(), tick_names(axes.yaxis)) == ("query", QUERIES)
    assert (axes.get_xlabel(), tick_names(axes.xaxis)) == ("key", KEYS)
    assert axes.get_ylim() == (2.5, -0.5)  # the first query is at the top
    written = [text.get_text() for text in axes.texts]
    assert written == [f"{weight:.2f}" for weight in given.flatten()]
    large = plots.plot_attention(torch.eye(12), ["a"] * 12, ["b"] * 12)
    assert not large.axes[0].texts


def test_a_token_is_no_formula() -> None:
    tokens = ["$x^2$", "$", r"$\frac$"]  # as formulas: x squared, and two errors
    figure = plots.plot_attention(torch.eye(3), tokens, tokens)
    figure.canvas.draw()
    assert tick_names(figure.axes[0].xaxis) == tick_names(figure.axes[0].yaxis)
    labels = figure.axes[0].get_xticklabels() + figure.axes[0].get_yticklabels()
    assert not any(label.get_parse_math() for label in labels)


def test_signed_numbers_have_a_symmetric_scale() -> None:
    figure = plots.plot_matrix([[1.0, -3.0], [2.0, 0.0]])
    assert figure.axes[0].images[0].get_clim() == (-3, 3)


def test_each_head_has_its_own_map_on_the_shared_scale() -> None:
    given = weights(4)
    figure = plots.plot_attention_heads(given, QUERIES, KEYS)
    for index, axes in enumerate(figure.axes[:4]):
        np.testing.assert_allclose(axes.images[0].get_array(), given[index])
        assert axes.images[0].get_clim() == (0, 1)
        assert axes.get_title() == f"head {index + 1}"
    assert len(figure.axes) == 5  # one color bar for all
    rows = [axes.get_ylabel() for axes in figure.axes[:4]]
    assert rows == ["query", "", "", "query"]  # a row of maps names its rows once


def test_a_mask_shows_its_meaning_by_a_sign_too() -> None:
    mask, labels = torch.ones(3, 3).tril().bool(), ("query", "input")
    figure = plots.plot_mask(mask, QUERIES, QUERIES, None, labels, ("moves", "stays"))
    axes = figure.axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), mask)
    signs = [text.get_text() for text in axes.texts]
    assert signs == ["✓" if attends else "×" for attends in mask.flatten()]
    assert (axes.get_ylabel(), axes.get_xlabel()) == labels
    written = [t.get_text() for legend in figure.legends for t in legend.get_texts()]
    assert written == ["✓ moves", "× stays"]
    colors = axes.yaxis.label.get_color(), axes.xaxis.label.get_color()
    assert colors == (LIGHT.roles["query"], LIGHT.ink)


def test_lines_differ_in_dashes_and_not_in_color_alone() -> None:
    curves = {name: np.arange(20.0) for name in "abcdef"}
    axes = plots.plot_lines(range(20), curves, "x", "y", log_y=True).axes[0]
    dashes = {(line._unscaled_dash_pattern[1] or ("-",)) for line in axes.lines}
    assert len(dashes) == 6
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list("abcdef")


@pytest.mark.parametrize("ends", [[0, 1, 1.1, 1.2, 9], [5, 5.2, 5.4], [3, 9]])
def test_up_to_five_lines_are_named_where_they_end(ends: list[float]) -> None:
    curves = {f"a line to {end}": np.linspace(4, end, 20) for end in ends}
    figure = plots.plot_lines(range(20), curves, "x", "y")
    axes = figure.axes[0]
    figure.draw_without_rendering()
    assert axes.get_legend() is None
    for text, line in zip(axes.texts, axes.lines, strict=True):
        assert (text.xy[1], text.get_color()) == (
            line.get_ydata()[-1],
            line.get_color(),
        )
    by_height = sorted(axes.texts, key=lambda text: text.xy[1])
    boxes = [Text.get_window_extent(text) for text in by_height]  # without the line
    assert all(one.y1 <= other.y0 + 1 for one, other in pairwise(boxes))


def test_lines_that_end_in_the_same_place_get_a_legend() -> None:
    curves = {"up": [0.0, 1.0], "down": [2.0, 1.0]}
    axes = plots.plot_lines([0, 1], curves, "x", "y").axes[0]
    assert axes.get_legend() and not axes.texts


def test_a_band_lies_around_its_curve() -> None:
    bands = {"b": ([0.0, 1.0], [4.0, 5.0])}
    curves = {"a": [1.0, 2.0], "b": [2.0, 3.0]}
    axes = plots.plot_lines([0, 1], curves, "x", "y", bands=bands).axes[0]
    [area] = axes.collections
    assert {*area.get_paths()[0].vertices[:, 1]} == {0, 1, 4, 5}
    color = matplotlib.colors.to_rgb(axes.lines[1].get_color())
    assert tuple(area.get_facecolor()[0][:3]) == color


NUMBERS = [  # x, y, what else, ticks along x, a tick up y
    ([4, 16, 64, 256], [0, 0, 0, 9000], {"log_x": True}, "4 16 64 256", "8,000"),
    ([1, 2, 3], [-0.5, 0, 0.5], {}, "1 2 3", "−0.2"),
    ([0, 12_500, *range(12)], [0.0] * 14, {}, "0 10,000", "0.02"),
    (range(50), np.geomspace(0.03, 6, 50), {"log_y": True}, "0 10", "0.3"),
]


@pytest.mark.parametrize(("x", "y", "more", "x_ticks", "y_tick"), NUMBERS)
def test_ticks_are_at_the_data_and_numbers_in_one_hand(
    x, y, more, x_ticks, y_tick
) -> None:
    figure = plots.plot_lines(x, {"a": y}, "x", "y", **more)
    figure.draw_without_rendering()
    found = tick_names(figure.axes[0].xaxis)
    if len({*x}) <= 12:
        assert found == x_ticks.split()
    assert {*x_ticks.split()} <= {*found}
    assert y_tick in tick_names(figure.axes[0].yaxis)


def test_bars_say_their_numbers_in_the_same_hand() -> None:
    axes = plots.plot_bars("abc", [12_500, -0.5, 1.0], "x", "y").axes[0]
    assert [text.get_text() for text in axes.texts] == ["12,500", "−0.5", "1"]


def test_groups_of_bars_stand_side_by_side() -> None:
    values = {"scaled": [1, 2], "unscaled": [3, 4]}
    axes = plots.plot_bars(["4", "16"], values, "size", "variance").axes[0]
    assert [bar.get_height() for bar in axes.patches] == [1, 2, 3, 4]
    ends = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    assert all(a[1] <= b[0] for a, b in pairwise(ends))


def test_histograms_share_bins_and_each_sums_to_one() -> None:
    torch.manual_seed(0)
    samples = {"short": torch.randn(50), "long": 3 * torch.randn(700)}
    axes = plots.plot_histograms(samples, "score", n_bins=8).axes[0]
    edges, shares = zip(*(line.get_data() for line in axes.lines), strict=True)
    np.testing.assert_array_equal(*edges)
    assert [share[1::2].sum() for share in shares] == pytest.approx([1, 1])
    assert [text.get_text() for text in axes.texts] == ["short", "long"]


def words(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_an_interval_that_holds_the_reference_is_hollow_and_dashed() -> None:
    rows = {"clear": (-2.0, -3.0, -1.0), "open": (1.0, 0.0, 2.5), "up": (3, 1, 4)}
    axes = plots.plot_intervals(rows, "points gained", against=0).axes[0]
    spans, dots = axes.lines[::2], axes.lines[1::2]
    assert [line.get_xdata().tolist() for line in spans] == [[-3, -1], [0, 2.5], [1, 4]]
    assert [line.get_linestyle() for line in spans] == ["-", "--", "-"]
    assert [dot.get_xdata()[0] for dot in dots] == [-2, 1, 3]
    hollow = [dot.get_markerfacecolor() == LIGHT.page for dot in dots]
    assert hollow == [False, True, False]
    assert words(axes) == ["clear", "open", "up", "\N{MINUS SIGN}2.0", "+1.0", "+3.0"]
    assert axes.yaxis_inverted()  # the first row is on top
    assert axes.get_xlabel() == "points gained"
    assert not axes.patches


def test_the_first_interval_is_a_band_behind_all_rows() -> None:
    rows = {"first": (0.8, 0.7, 0.9), "second": (0.7, 0.4, 0.9)}
    runs = {"first": [0.75, 0.85], "second": [0.7]}
    axes = plots.plot_intervals(rows, "right", None, runs, True, ".0%").axes[0]
    assert band(axes) == pytest.approx((0.7, 0.9))
    small = [line.get_xdata().tolist() for line in axes.lines[::3]]
    assert small == [[0.75, 0.85], [0.7]]
    assert all(dot.get_markerfacecolor() != LIGHT.page for dot in axes.lines[2::3])
    assert words(axes)[2:] == ["80%", "70%"]


def test_a_row_of_two_values_writes_and_draws_both() -> None:
    rows = {"large": (2560, 320), "small": (3, 4)}
    figure = plots.plot_pairs(rows, ("before", "after"), "KiB", log_x=True)
    [axes] = figure.axes
    assert [line.get_xdata()[0] for line in axes.lines[1::3]] == [2560, 3]
    assert [line.get_xdata()[0] for line in axes.lines[2::3]] == [320, 4]
    named = [(line.get_marker(), line.get_label()) for line in axes.lines[1:3]]
    assert named == [("D", "before"), ("o", "after")]
    assert words(axes) == ["large", "small", "2,560 → 320", "3 → 4"]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["before", "after"]
    figure.canvas.draw()
    assert {"10", "100", "1,000"} <= {*tick_names(axes.xaxis)}  # no powers


def test_a_spread_has_its_values_and_the_first_one_a_band() -> None:
    axes = plots.plot_spread({"first": [4, 1, 2.5], "second": [9, 7]}, "score").axes[0]
    dots, mean, others, other_mean = axes.lines
    assert dots.get_xdata().tolist() == [4, 1, 2.5]
    assert others.get_ydata().tolist() == [1, 1]
    assert (mean.get_xdata(), other_mean.get_xdata()) == ([2.5], [8])
    assert band(axes) == pytest.approx((1, 4))
    assert words(axes) == ["first", "second", "2.5", "8.0"]


ROWS = {"a long name of thirty letters ": (1, -1, 2), "b": (-86.3, -93.6, -78.9)}


@pytest.mark.parametrize(
    "figure",
    [
        lambda: plots.plot_intervals(ROWS, "x", against=0),
        lambda: plots.plot_pairs({k: v[:2] for k, v in ROWS.items()}, ("a", "b"), "x"),
        lambda: plots.plot_spread(ROWS, "x"),
    ],
)
def test_rows_are_legible_in_the_width_of_a_phone(figure) -> None:
    figure = figure()
    svg = small_svg(print_figure(figure, "svg"))  # as it stands in a page
    to_pixels = 350 / float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
    written = [t for t in figure.findobj(Text) if t.get_text() and t.get_visible()]
    assert len(written) > 6
    assert min(text.get_size() for text in written) * to_pixels > 11
    [axes] = figure.axes
    above = [text.get_window_extent() for text in axes.texts]
    for one, other in combinations(above, 2):
        assert not one.overlaps(other)


# What would draw a wrong picture in silence; matplotlib refuses what follows the line.
# fmt: off
BAD_INPUT = [
    ("plot_attention", (weights(), QUERIES, KEYS), ValueError, r"2 axes.*4, 3, 5"),
    ("plot_mask", (torch.ones(3, 3), QUERIES, QUERIES), TypeError, "must be boolean"),
    ("plot_bars", (["a", "b"], [1], "x", "y"), ValueError, "2 labels, but 1 values"),
    ("plot_lines", ([1, 2], {"a": [1, np.nan]}, "x", "y"), ValueError, "'a' must be"),
    ("plot_intervals", ({"a": (1, 0, np.nan)}, "x"), ValueError, "'a' must be finite"),
    ("plot_intervals", ({"a": (3, 0, 2)}, "x"), ValueError, "3.0 is not in 0.0 to 2.0"),
    ("plot_pairs", ({"a": (1, np.inf)}, "ab", "x"), ValueError, "'a' must be finite"),
    ("plot_spread", ({"a": [1, np.inf]}, "x"), ValueError, "row 'a' must be finite"),
]
# fmt: on


@pytest.mark.parametrize(("name", "given", "error", "message"), BAD_INPUT)
def test_bad_input_is_refused(name, given, error, message: str) -> None:
    with pytest.raises(error, match=message):
        getattr(plots, name)(*given)
