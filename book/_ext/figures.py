"""Plots: what a notebook stores of them, and how they stand in a page.

A notebook stores a small SVG, beside a PNG for other frontends. In the page every
color of it becomes a variable of the style sheet that is written here, so it follows
light and dark pages; the cells of a map are a small picture, there in both looks.
"""

from __future__ import annotations

import io
import re
from base64 import b64decode, b64encode
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from PIL import Image

from transformer_book.pictures import small_png
from transformer_lib.plots.palette import DARK, LIGHT, Palette

MIME = "application/vnd.transformer-book.plot+svg"

# What the style sheet says of a whole plot, or SVG of every part: no part has to.
IMPLIED = f"""
    fill:{LIGHT.ink.lower()} font-size:10px stroke-linejoin:round stroke-width:0.8
    stroke-dashoffset:0 text-anchor:start
""".split()
LEFT_OUT = {"font-family", "stroke-linecap"}
NAMESPACES = re.compile(r'(?s) xmlns(:\w+)?="[^"]*"|xlink:|<metadata>.*?</metadata>')
PICTURE = "data:image/png;base64,"

NAMES = {value.lower(): name for name, value in reversed(LIGHT.named.items())}
COLOR = re.compile(r"#[0-9a-f]{6}\b")
CELLS = re.compile(r'<image href="data:image/png;base64,([^"]*)"([^>]*)></image>')


# --- in a notebook --------------------------------------------------------------------


def shrink(data: dict[str, Any]) -> None:
    """Make what Matplotlib displays small, and the same from run to run."""
    if "image/svg+xml" in data:
        data[MIME] = small_svg(data.pop("image/svg+xml"))
        data["image/png"] = small_png(b64decode(data["image/png"]), 256)


def small_svg(svg: str) -> str:
    """Return an SVG of Matplotlib's in few characters, as an element of a page."""
    root = ElementTree.fromstring(NAMESPACES.sub("", svg))
    width, height = map(float, root.get("viewBox").split()[2:])
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" '
        f'width="{width / 0.75:.0f}" height="{height / 0.75:.0f}">'
        f"{''.join(map(small_part, root))}</svg>"
    )


def small_part(element: ElementTree.Element) -> str:
    """Write an element in few characters, and a mere group as what is in it."""
    tag, inside = element.tag, "".join(map(small_part, element))
    attributes = {name: shortened(name, value) for name, value in element.items()}
    if tag in ("g", "image"):
        attributes.pop("id", None)
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    if not attributes.get("style", "none"):
        del attributes["style"]
    if tag == "style" or attributes.get("style") == "fill:none":
        return ""
    if not attributes and (tag == "g" or not inside):
        return inside
    written = "".join(f' {name}="{value}"' for name, value in attributes.items())
    inside = escape((element.text or "").strip(), quote=False) + inside
    return f"<{tag}{written}>{inside}</{tag}>"


def shortened(name: str, value: str) -> str:
    """Write numbers with one decimal, and leave out of a style what holds anyway."""
    if value.startswith(PICTURE):
        return PICTURE + small_png(b64decode(value.removeprefix(PICTURE)), 256)
    if name == "style":
        return ";".join(
            f"{key}:{said}"
            for key, said in re.findall(r"([\w-]+):\s*([^;]+)", value)
            if key not in LEFT_OUT and f"{key}:{said}" not in IMPLIED
        )
    if "matrix" in value or "scale" in value:
        return value
    value = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}", value)
    value = value.replace(".0", "")
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", value) if name == "d" else value


# --- in a page ------------------------------------------------------------------------


def in_page(svg: str, alt: str, key: str) -> str:
    """Return a stored plot as it stands in a page.

    Args:
        svg: as a notebook stores it.
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
