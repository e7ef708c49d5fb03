"""Plots: what a notebook stores of them, and how they stand in a page.

A notebook stores a small SVG, another one for phones where it is wide, and a PNG for
other frontends. In the page every
color of it becomes a variable of the style sheet that is written here, so it follows
light and dark pages; the cells of a map are a small picture, there in both looks.
"""

from __future__ import annotations

import io
import re
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgba_array
from PIL import Image

from transformer_book.pictures import small_png
from transformer_lib.plots.palette import DARK, LIGHT, Palette

MIME = "application/vnd.transformer-book.plot+svg"
NARROW = "application/vnd.transformer-book.narrow-plot+svg"  # drawn by narrow.py
SVG = "http://www.w3.org/2000/svg"
PNG = "data:image/png;base64,"

# --- in a notebook --------------------------------------------------------------------


def shrink(data: dict[str, Any]) -> None:
    """Make what Matplotlib displays small, and the same from run to run."""
    if "image/svg+xml" in data:
        data[MIME] = small_svg(data.pop("image/svg+xml"))
        data["image/png"] = small_png(b64decode(data["image/png"]), 256)


# Of a style: what the style sheet says of a whole plot, or SVG of every element.
IMPLIED = {
    "fill": LIGHT.ink.lower(),
    "font-size": "10px",
    "stroke-dashoffset": "0",
    "stroke-linejoin": "round",
    "stroke-width": "0.8",
    "text-anchor": "start",
}
LEFT_OUT = {"font-family", "stroke-linecap"}  # the page has its own
DECIMALS = re.compile(r"-?\d+\.\d+")
NAMESPACES = re.compile(r' xmlns(:\w+)?="[^"]*"|xlink:')
METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)


def small_svg(svg: str) -> str:
    """Return an SVG of Matplotlib's in few characters, as an element of a page."""
    svg = NAMESPACES.sub("", METADATA.sub("", svg))
    root = ElementTree.fromstring(svg)
    simplify(root)
    _, _, width, height = map(float, root.get("viewBox").split())
    root.attrib = {
        "xmlns": SVG,
        "viewBox": f"0 0 {width:.1f} {height:.1f}",
        "width": f"{width / 0.75:.0f}",  # from points to pixels
        "height": f"{height / 0.75:.0f}",
    }
    return ElementTree.tostring(root, "unicode", short_empty_elements=False)


def simplify(parent: Element) -> None:
    """Shorten all below an element; drop what draws nothing, unwrap mere groups."""
    parent.text, parent.tail = (parent.text or "").strip(), None
    children = []
    for child in parent:
        simplify(child)
        shorten(child)
        if child.tag == "style" or child.get("style") == "fill:none":
            continue
        if child.tag == "g" and not child.attrib:
            children += child
        elif child.attrib or len(child):
            children.append(child)
    parent[:] = children


def shorten(element: Element) -> None:
    """Write an element's attributes in few characters; leave out what holds anyway."""
    attributes = element.attrib
    if element.tag in ("g", "image"):
        attributes.pop("id", None)  # nothing refers to them
    for name, value in attributes.items():
        if name == "style":
            attributes[name] = short_style(value)
        elif name == "d":
            attributes[name] = re.sub(r"\s*([A-Za-z])\s*", r"\1", short_numbers(value))
        elif value.startswith(PNG):
            attributes[name] = PNG + small_png(b64decode(value.removeprefix(PNG)), 256)
        elif "matrix" not in value and "scale" not in value:  # these need all digits
            attributes[name] = short_numbers(value)
    if attributes.get("style") == "":
        del attributes["style"]
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]


def short_numbers(text: str) -> str:
    """Write numbers with one decimal, or none where it is zero."""
    text = DECIMALS.sub(lambda number: f"{float(number[0]):.1f}", text)
    return text.replace(".0", "")


def short_style(style: str) -> str:
    """Leave out of a style what a plot of the page has anyway."""
    properties = re.findall(r"([\w-]+):\s*([^;]+)", style)
    return ";".join(
        f"{name}:{value}"
        for name, value in properties
        if name not in LEFT_OUT and IMPLIED.get(name) != value
    )


# --- in a page ------------------------------------------------------------------------

COLOR_NAMES = {color.lower(): name for name, color in reversed(LIGHT.named.items())}
COLOR = re.compile(r"#[0-9a-f]{6}\b")
PART = re.compile(r"(?<=#)[hmp]\w+")  # Matplotlib's names of hatches, marks, clips
CIRCLE = re.compile(r"M([\d. -]+)((?:C[\d. -]+){8})z")  # may be one, by its curves

ElementTree.register_namespace("", SVG)


def in_page(svg: str, alt: str, key: str) -> str:
    """Return a stored plot as it stands in a page.

    Args:
        svg: as a notebook stores it.
        alt: what it shows, for whoever can't see it.
        key: what no other plot of the page is called.
    """
    root = ElementTree.fromstring(svg)
    for element in list(root.iter()):
        if curves := element.get("d"):
            element.set("d", CIRCLE.sub(arcs, curves))
        follow_the_page(element, key)
        element[:] = [look for child in element for look in looks(child)]
    root.attrib |= {"class": "plot", "role": "img", "aria-label": alt}
    return ElementTree.tostring(root, "unicode", short_empty_elements=False)


def arcs(path: re.Match[str]) -> str:
    """Two arcs in place of the eight curves of a circle: a hatch may have hundreds."""
    curves = [np.fromstring(curve, sep=" ") for curve in path[2].split("C")[1:]]
    ends = np.array([curve[-2:] for curve in curves])
    middle = (ends.min(axis=0) + ends.max(axis=0)) / 2
    distances = np.hypot(*(ends - middle).T)
    radius = np.ptp(ends, axis=0).mean() / 2
    if np.abs(distances - radius).max() > 0.15:  # more than the rounding
        return path[0]
    x, y = middle[0] - radius, middle[1]
    half = f"a{radius:.4g} {radius:.4g} 0 1 0 "
    return f"M{x:.4g} {y:.4g}{half}{2 * radius:.4g} 0{half}{-2 * radius:.4g} 0z"


def follow_the_page(element: Element, key: str) -> None:
    """Give an element the colors of the page, and names that no other plot has."""
    for name, value in element.items():
        if name == "id":
            element.set(name, f"{key}-{value}")
        elif not value.startswith(PNG):
            value = COLOR.sub(lambda c: f"var(--diagram-{COLOR_NAMES[c[0]]})", value)
            element.set(name, PART.sub(rf"{key}-\g<0>", value))


def looks(element: Element) -> list[Element]:
    """An element of a plot; the picture of a map's cells for each look of a page."""
    if element.tag != f"{{{SVG}}}image":
        return [element]
    png = element.get("href").removeprefix(PNG)
    light = element.attrib | {"class": "light"}
    dark = element.attrib | {"class": "dark", "href": PNG + in_the_dark(png)}
    return [Element(element.tag, light), Element(element.tag, dark)]


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
    flat = (255 * to_rgba_array([palette.shown, palette.hidden])).round()
    return np.array([*flat, *ramp(range(1025), bytes=True)], dtype=int)[:, :3]


def style_sheet() -> str:
    """Return the style sheet of figures, with a variable for each color."""
    rules = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    colors = (
        f"--diagram-{name}: light-dark({color}, {DARK.named[name]});"
        for name, color in LIGHT.named.items()
    )
    return rules.replace("COLORS;", "\n  ".join(colors))
