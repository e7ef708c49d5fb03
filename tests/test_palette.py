"""Colors stand out from their page and from each other, with any color vision."""

import re
from itertools import combinations

import pytest
import torch
from drawn_charts import contrast, linear_rgb

from book_tools.toc import ROOT
from transformer_book.diagrams.canvas import COLORS
from transformer_lib.plots.palette import BLUE, DARK, GRAY, HIGHLIGHT, LIGHT, Palette

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


@both_pages
@pytest.mark.parametrize("vision", VISIONS)
def test_roles_look_different_with_any_color_vision(
    palette: Palette, vision: str
) -> None:
    seen = {
        role: oklab(torch.tensor(VISIONS[vision]) @ linear_rgb(color))
        for role, color in palette.roles.items()
    }
    for first, second in combinations(seen, 2):
        # 0.02 is a difference that is just noticed.
        assert (seen[first] - seen[second]).norm() > 0.06, (first, second)


@both_pages
def test_text_and_marks_stand_out_from_the_page(palette: Palette) -> None:
    assert " ".join(palette.roles) == "source target memory query key value"
    text = [palette.ink, *palette.roles.values()]
    assert min(contrast(color, palette.page) for color in text) > 4.5
    # No chart draws more than two series for the dark page.
    marks = [*palette.series[:2], HIGHLIGHT, BLUE, GRAY]
    assert min(contrast(color, palette.page) for color in marks) > 3


@both_pages
def test_ramps_run_from_the_page_or_through_it(palette: Palette) -> None:
    assert contrast(palette.weights[0], palette.page) < 1.2 < 4.5
    assert contrast(palette.weights[-1], palette.page) > 4.5
    middle = len(palette.signed) // 2
    contrasts = [contrast(color, palette.page) for color in palette.signed]
    assert contrasts[middle] == min(contrasts) < 1.2
    assert contrasts[: middle + 1] == sorted(contrasts[: middle + 1], reverse=True)
    assert contrasts[middle:] == sorted(contrasts[middle:])


# --- the style sheet of the pages -----------------------------------------------------

CSS = (ROOT / "book" / "_static" / "book.css").read_text(encoding="utf-8")


@pytest.mark.parametrize(("palette", "place"), [(LIGHT, 0), (DARK, 1)])
def test_the_pages_give_diagrams_the_colors_of_the_palette(
    palette: Palette, place: int
) -> None:
    pairs = re.findall(r"--diagram-(\w+): (?:light-dark\((.*), )?(#\w{6})\)?;", CSS)
    found = {name: (light or dark, dark)[place] for name, light, dark in pairs}
    names = ("page", "ink", "line", "band")
    expected = {name: getattr(palette, name) for name in names}
    expected |= palette.roles | {"highlight": HIGHLIGHT}
    assert found == {name: color.lower() for name, color in expected.items()}
    assert found.keys() == COLORS.keys()
