"""Colors stand out from their page and from each other, with any color vision."""

import io
import re
from base64 import b64decode
from itertools import combinations
from xml.etree import ElementTree

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from drawn_charts import contrast, linear_rgb
from IPython.core.pylabtools import print_figure
from matplotlib.colors import LinearSegmentedColormap, to_hex
from PIL import Image

from book._ext.figures import in_page, small_svg, style_sheet
from transformer_book.diagrams.canvas import COLORS
from transformer_lib.plots import (
    plot_attention,
    plot_bars,
    plot_intervals,
    plot_lines,
    plot_mask,
    plot_matrix,
    plot_pairs,
    plot_spread,
    use_book_theme,
)
from transformer_lib.plots.heatmaps import EQUALLY_READABLE
from transformer_lib.plots.palette import DARK, GRAY, HIGHLIGHT, LIGHT, Palette

# What remains of (red, green, blue) light without one kind of cone: Machado, Oliveira
# and Fernandes 2009, "A physiologically-based model for simulation of color vision
# deficiency", the matrices of severity 1.
VISIONS = {
    "all cones": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip

matplotlib.use("Agg")
both_pages = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])


def oklab(light: torch.Tensor) -> torch.Tensor:
    """Linear RGB (3,) -> (3,), where distance is how different two colors look."""
    cones = torch.tensor([[0.4122214708, 0.5363325363, 0.0514459929],
                          [0.2119034982, 0.6806995451, 0.1073969566],
                          [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
    axes = torch.tensor([[0.2104542553, 0.7936177850, -0.0040720468],
                         [1.9779984951, -2.4285922050, 0.4505937099],
                         [0.0259040371, 0.7827717662, -0.8086757660]])  # fmt: skip
    return axes @ (cones @ light.clamp(0, 1)) ** (1 / 3)


@pytest.fixture(autouse=True)
def theme():
    with matplotlib.rc_context():
        use_book_theme()
        yield
    plt.close("all")


@both_pages
@pytest.mark.parametrize("vision", VISIONS)
def test_roles_look_different_with_any_color_vision(palette: Palette, vision: str):
    seen = {
        role: oklab(torch.tensor(VISIONS[vision]) @ linear_rgb(color))
        for role, color in palette.roles.items()
    }
    for first, second in combinations(seen, 2):
        # 0.02 is a difference that is just noticed.
        assert (seen[first] - seen[second]).norm() > 0.05, (first, second)


@both_pages
def test_text_and_marks_stand_out_from_the_page(palette: Palette):
    assert " ".join(palette.roles) == "source target memory query key value"
    text = [palette.ink, palette.soft, *palette.roles.values()]
    assert min(contrast(color, palette.page) for color in text) > 4.5
    # No chart draws more than two series for the dark page.
    marks = [*palette.series[:2], HIGHLIGHT, GRAY]
    assert min(contrast(color, palette.page) for color in marks) > 3


@both_pages
def test_ramps_run_from_the_page_or_through_it(palette: Palette):
    assert contrast(palette.weights[0], palette.page) < 1.2 < 4.5
    assert contrast(palette.weights[-1], palette.page) > 4.5
    middle = len(palette.signed) // 2
    contrasts = [contrast(color, palette.page) for color in palette.signed]
    assert contrasts[middle] == min(contrasts) < 1.2
    assert contrasts[: middle + 1] == sorted(contrasts[: middle + 1], reverse=True)
    assert contrasts[middle:] == sorted(contrasts[middle:])


@both_pages
def test_numbers_stand_out_from_every_cell(palette: Palette):
    ramp = LinearSegmentedColormap.from_list("", palette.weights)
    for weight in torch.linspace(0, 1, 201).tolist():
        color = palette.low if weight < EQUALLY_READABLE else palette.high
        assert contrast(color, to_hex(ramp(weight))) > 4.2, weight


# --- what the pages make of a stored plot -------------------------------------------


def test_every_color_of_the_light_page_has_one_in_the_dark():
    pairs = {(color, DARK.named[name]) for name, color in LIGHT.named.items()}
    assert len({light for light, _ in pairs}) == len(pairs)
    assert LIGHT.named == COLORS
    for name in COLORS:
        assert f"--diagram-{name}: light-dark({LIGHT.named[name]}, " in style_sheet()


def test_cells_have_the_same_weights_in_the_dark():
    weights = torch.linspace(0, 1, 40).view(5, 8)
    figure = plot_attention(weights, list("abcde"), list("abcdefgh"))
    page = in_page(small_svg(print_figure(figure, "svg")), "cells", "k")
    plot = ElementTree.fromstring(page)
    for look, palette in (("light", LIGHT), ("dark", DARK)):
        picture = plot.find(f".//*[@class='{look}']").get("href")
        png = picture.partition("base64,")[2]
        cells = np.asarray(Image.open(io.BytesIO(b64decode(png))).convert("RGB"))
        ramp = LinearSegmentedColormap.from_list("", palette.weights)
        expected = ramp(weights.numpy(), bytes=True)[..., :3]
        assert np.abs(cells.astype(int) - expected).max() <= 4


def test_eight_curves_become_arcs_where_they_are_a_circle():
    points = np.array([[0, 2], [1.4, 1.4], [2, 0], [1.4, -1.4]])
    for last, drawn in ((-2.0, "M-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0z"), (-3.0, None)):
        ends = [*points[1:], [0, last], *-points[1:], points[0]]
        curves = "".join(f"C0 0 0 0 {x:.4g} {y:.4g}" for x, y in ends)
        svg = f'<svg><path d="M0 2{curves}z" /></svg>'
        [path] = ElementTree.fromstring(in_page(svg, "dots", "k"))
        assert path.get("d") == (drawn or f"M0 2{curves}z")


PLOTS = {
    plot_lines: ([1, 2, 3], dict.fromkeys("abcdef", [1, 2, 4]), "x", "y", True, True),
    plot_bars: (["x", "y"], {"a": [1, 2], "b": [3, 1]}, "x", "y"),
    plot_mask: (np.eye(3, dtype=bool), list("abc"), list("def")),
    plot_matrix: (np.arange(-6, 6).reshape(3, 4),),
    plot_intervals: ({"a": (2, 1, 3), "b": (1, -1, 2)}, "x", 0, {"a": [2], "b": [1]}),
    plot_pairs: ({"a": (1, 100), "b": (3, 3)}, ("old", "new"), "x", True),
    plot_spread: ({"first": [4, 1, 2.5], "second": [9, 7]}, "score"),
}


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.__name__)
def test_a_plot_is_the_same_each_time_and_takes_all_colors_from_the_page(plot):
    svg, again = (small_svg(print_figure(plot(*PLOTS[plot]), "svg")) for _ in range(2))
    assert svg == again  # no stamps, no random names
    page = re.sub(r'"data:image.*?"', '""', in_page(svg, 'a "plot"', "k"))
    assert not re.search(r"#[0-9a-f]{3,6}\b|rgb|<style", page)
    root = ElementTree.fromstring(page)
    assert root.get("aria-label") == 'a "plot"'
    names = {each.get("id") for each in root.iter()} - {None}
    assert names == set(re.findall(r"#([\w-]+)", page))
    assert all(name.startswith("k-") for name in names)
