"""Figures in the page: a plot takes the colors of light pages, of dark ones, of paper.

Every color of a stored plot becomes a variable of the style sheet that is written here;
the cells of a map are a small picture, which stands in the page in both looks.
"""

from __future__ import annotations

import io
import re
from base64 import b64decode, b64encode
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from PIL import Image

from transformer_lib.plots.palette import DARK, LIGHT, Palette

NAMES = {value.lower(): name for name, value in reversed(LIGHT.named.items())}
COLOR = re.compile(r"#[0-9a-f]{6}\b")
CELLS = re.compile(r'<image href="data:image/png;base64,([^"]*)"([^>]*)></image>')


def in_page(svg: str, alt: str, key: str) -> str:
    """Return a stored plot as it stands in a page.

    Args:
        svg: as `transformer_lib.plots` stores it.
        alt: what it shows, for whoever can't see it.
        key: what no other plot of the page is called.
    """
    svg = re.sub(r'( id="|#)(?=[hmp]\w+["\)])', rf"\1{key}-", svg)  # they name parts
    svg = COLOR.sub(lambda color: f"var(--diagram-{NAMES[color[0]]})", svg)
    svg = CELLS.sub(in_both_looks, svg)
    words = f'class="plot" role="img" aria-label="{escape(alt)}"'
    return svg.replace("<svg", f"<svg {words}", 1)


def in_both_looks(cells: re.Match[str]) -> str:
    """Return the picture of a map's cells twice, for light pages and for dark ones."""
    png, place = cells.groups()
    return "".join(
        f'<image class="{look}" href="data:image/png;base64,{data}"{place}/>'
        for look, data in (("light", png), ("dark", in_the_dark(png)))
    )


def in_the_dark(png: str) -> str:
    """Return a picture with the dark page's colors in place of the light page's."""
    picture = Image.open(io.BytesIO(b64decode(png)))
    palette = np.reshape(picture.getpalette(), (-1, 1, 3))
    nearest = np.abs(palette - cell_colors(LIGHT)).sum(-1).argmin(-1)
    picture.putpalette(cell_colors(DARK)[nearest].ravel().tolist())
    written = io.BytesIO()
    picture.save(written, "PNG", optimize=True)
    return b64encode(written.getvalue()).decode()


def cell_colors(palette: Palette) -> np.ndarray:
    """All colors of cells, (n_colors, 3) in 0..255, in the same order for each look."""
    ramp = LinearSegmentedColormap.from_list("", palette.signed, 1025)
    flat = [list(bytes.fromhex(each[1:])) for each in (palette.shown, palette.hidden)]
    return np.array([*flat, *ramp(range(1025), bytes=True)[:, :3]], dtype=int)


def style_sheet() -> str:
    """Return the style sheet of figures, with a variable for each color."""
    rules = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    colors = (
        f"--diagram-{name}: light-dark({color}, {DARK.named[name]});"
        for name, color in LIGHT.named.items()
    )
    return rules.replace("COLORS;", "\n  ".join(colors))
