"""A small kit for drawn diagrams: boxes, arrows, words and grids as one SVG.

Every color is a CSS variable with the light page's color behind it, so a diagram
follows the dark pages of the book and stays right wherever there is no style sheet.
"""

import cmath
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from transformer_book.pictures import converter, small_png
from transformer_lib.plots.palette import LIGHT

# Frontends that don't know this type, such as JupyterLab, show the PNG beside it; the
# pages of the book (book/_ext/sphinx_outputs.py) put the drawing into the page.
MIME = "application/vnd.transformer-book.diagram+html"

Point = tuple[float, float]
Words, Row = Sequence[str], Sequence[float]
Table = Sequence[Row]
Anchor = Literal["start", "middle", "end"]

COLORS = LIGHT.named
FONT = "'Book Sans', 'DejaVu Sans', Verdana, sans-serif"
MONO = "'Book Mono', 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def color(name: str) -> str:
    """Return the CSS value of a color: "ink", "line", a role such as "query", ..."""
    return f"var(--diagram-{name},{COLORS[name]})"


@dataclass
class Canvas:
    """A drawing of a fixed size; each method adds to it.

    Lengths are pixels of the full-size drawing, from the upper left corner. On a phone
    a canvas 520 wide shrinks to two thirds, so text should have a size of 14 or more.

    What has `lit=False` is faded, as something that is not the subject now.

    Attributes:
        width: of the drawing, in pixels.
        height: likewise.
        parts: its elements.
        places: name of a box -> its left edge, upper edge, width and height.
    """

    width: float
    height: float
    parts: list[str] = field(default_factory=list)
    places: dict[str, tuple[float, float, float, float]] = field(default_factory=dict)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        label: str = "",
        role: str = "ink",
        *,
        sub: str = "",
        lit: bool = True,
        fill: float = 0.12,
        dashed: bool = False,
        size: float = 15,
        solid: bool = False,
        name: str = "",
    ) -> None:
        """Draw a rounded box in a role's color, with a label and a line below it.

        Args:
            x: left edge.
            y: upper edge.
            width: of the box.
            height: of the box.
            label: written in its middle.
            role: a color's name.
            sub: a smaller second line.
            lit: see the class.
            fill: opacity of the color inside; 0 for an empty frame.
            dashed: dash the frame.
            size: of the label's font.
            solid: hide what has been drawn behind the box.
            name: under which `places` keeps where the box is.
        """
        if name:
            self.places[name] = x, y, width, height
        if solid:
            self.box(x, y, width, height, role="page", fill=1)
        style = f"{_ink(role, fill)};stroke-width:{1.6 if lit else 1:g}"
        place, dash = _place(x, y, width, height), ' stroke-dasharray="5 4"' * dashed
        self._add(f'<rect {place} rx="5"{dash} style="{style}"/>', lit)
        middle, center = x + width / 2, y + height / 2
        if label:
            self.text(middle, center - 8 * bool(sub), label, size=size, lit=lit)
        if sub:
            self.text(middle, center + 10, sub, size=size - 2.5, lit=lit)

    def row(
        self,
        x: float,
        y: float,
        words: Iterable[str],
        role: str = "ink",
        *,
        width: float = 0,
        height: float = 28,
        gap: float = 8,
        **style: float | bool,
    ) -> list[float]:
        """Draw a row of boxes, one for each word; return the middle of each.

        Args:
            x: left edge of the first.
            y: upper edge.
            words: their labels.
            role: a color's name.
            width: of each box; 0 for as wide as its word.
            height: of each box.
            gap: between two boxes.
            style: more settings of `box`.
        """
        middles = []
        for word in words:
            wide = width or 8.26 * len(word) + 12
            self.box(x, y, wide, height, word, role, size=14, **style)
            middles.append(x + wide / 2)
            x += wide + gap
        return middles

    def text(
        self,
        x: float,
        y: float,
        text: str,
        role: str = "ink",
        *,
        size: float = 14,
        anchor: Anchor = "middle",
        bold: bool = False,
        italic: bool = False,
        mono: bool = False,
        lit: bool = True,
        turn: float = 0,
    ) -> None:
        """Write one line of text, its middle at height y; turn it by degrees."""
        style = f"font-size:{_n(size)}px"
        style += f";fill:{color(role)}" * (role != "ink")
        style += ";font-weight:bold" * bold + ";font-style:italic" * italic
        style += f";font-family:{MONO}" * mono
        foot = y + 0.36 * size * (not turn)
        place = f'x="{_n(x)}" y="{_n(foot)}" text-anchor="{anchor}"'
        if turn:
            place += f' transform="rotate({_n(turn)} {_n(x)} {_n(y)})"'
        self._add(f'<text {place} style="{style}">{escape(signed(text))}</text>', lit)

    def titles(self, y: float, names: Mapping[float, str], **style: Any) -> None:
        """Write names side by side, each with its middle at its x; bold by default."""
        for x, name in names.items():
            self.text(x, y, name, **{"bold": True, **style})

    def arrow(
        self,
        *points: Point,
        role: str = "ink",
        dashed: bool = False,
        head: bool = True,
        width: float = 1.6,
        lit: bool = True,
    ) -> None:
        """Draw a line through two or more points, with an arrow's head at the last.

        Args:
            points: at least two.
            role: a color's name.
            dashed: dash the line.
            head: False for a plain line.
            width: of the line.
            lit: see the class.
        """
        *way, before, (x, y) = points
        angle = math.atan2(y - before[1], x - before[0])

        def from_tip(distance: float, turn: float) -> Point:
            step = cmath.rect(distance, angle + turn)
            return x + step.real, y + step.imag

        dash = ' stroke-dasharray="4 4"' if dashed else ""
        style = f"fill:none;stroke:{color(role)};stroke-width:{_n(width)}"
        line = _points(*way, before, from_tip(-6, 0) if head else (x, y))
        self._add(f'<polyline points="{line}"{dash} style="{style}"/>', lit)
        if head:
            corners = _points((x, y), from_tip(9, 2.7), from_tip(9, -2.7))
            tip = f'<polygon points="{corners}" style="fill:{color(role)}"/>'
            self._add(tip, lit)

    def circle(
        self, x: float, y: float, radius: float, role: str = "ink", fill: float = 0.12
    ) -> None:
        """Draw a circle."""
        place = f'cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"'
        self._add(f'<circle {place} style="{_ink(role, fill)};stroke-width:1.4"/>')

    def plus(self, x: float, y: float) -> None:
        """Draw a plus sign in a circle that hides what is behind it."""
        self.circle(x, y, 11, "page", fill=1)
        self.circle(x, y, 11, "source")
        self.text(x, y, "+", size=17)

    def grid(
        self,
        x: float,
        y: float,
        values: Sequence[Sequence[str | float]],
        role: str | Sequence[Words] = "ink",
        *,
        cell: tuple[float, float] = (34, 24),
        shades: float | Table = 0.12,
        rows: Iterable[str] = (),
        decimals: int | None = None,
        size: float = 13,
        lit: bool = True,
    ) -> None:
        """Draw a matrix: a cell for each value, with names of the rows.

        Args:
            x: left edge of the first cell.
            y: upper edge of the first cell.
            values: rows of numbers or words.
            role: the color of all cells, or of each.
            cell: width and height of a cell.
            shades: opacity of the color, from 0 to 1; one for all cells, or for each.
            rows: names on the left.
            decimals: of numbers; by default, as many as they need, at most two.
            size: of the font.
            lit: see the class.
        """
        width, height = cell
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                left, top = x + j * width, y + i * height
                name = role if isinstance(role, str) else role[i][j]
                shade = shades[i][j] if isinstance(shades, Sequence) else shades
                place, style = _place(left, top, *cell), _ink(name, shade, "line")
                self._add(f'<rect {place} style="{style}"/>', lit)
                word = value if isinstance(value, str) else written(value, decimals)
                if word:
                    self.text(left + width / 2, top + height / 2, word, size=size)
        for i, word in enumerate(rows):
            self.text(x - 8, y + (i + 0.5) * height, word, size=size, anchor="end")

    def svg(self, alt: str) -> str:
        """Return the drawing as an SVG element that can stand in a page."""
        width, height = _n(self.width), _n(self.height)
        style = f"max-width:100%;height:auto;font-family:{FONT};fill:{color('ink')}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" '
            f'aria-label="{escape(alt)}" class="diagram" style="{style}">'
            f'<rect width="100%" height="100%" style="fill:{color("page")}"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>"
        )

    def show(self, alt: str) -> None:
        """Display the drawing in a notebook, with a PNG where SVG isn't shown.

        Args:
            alt: what the drawing shows, for whoever can't see it.

        Raises:
            ValueError: alt is empty.
        """
        require_alt(alt)
        display_bundle(mime_bundle(self.svg(alt), alt))

    def _add(self, element: str, lit: bool = True) -> None:
        self.parts.append(element if lit else f'<g opacity="0.38">{element}</g>')


def require_alt(alt: str) -> None:
    """Refuse a picture without words for whoever can't see it."""
    if not alt.strip():
        raise ValueError("alt must say what the picture shows, but it is empty")


def display_bundle(bundle: dict[str, str]) -> None:
    """Display a picture in a notebook; a plain script has nowhere to show it."""
    from IPython import get_ipython
    from IPython.display import display

    if get_ipython() is not None:
        display(bundle, raw=True)


def mime_bundle(svg: str, alt: str) -> dict[str, str]:
    """Return what a notebook stores: the drawing, its alt text, and a still of it."""
    return {MIME: svg, "text/plain": alt, **still(svg)}


def still(svg: str, scale: float = 1.5) -> dict[str, str]:
    """Return a PNG of an SVG where one can be made; in Colab, which shows any HTML, it.

    Args:
        svg: the drawing.
        scale: pixels of the PNG for one of the drawing.
    """
    if "google.colab" in sys.modules:
        return {"text/html": svg}
    if not (vega := converter()):
        return {}
    plain = re.sub(r"var\(--[\w-]+,([^)]*)\)", r"\1", svg)
    plain = re.sub(r"(?<=[\":])100%", "9999", plain)
    return {"image/png": small_png(vega.svg_to_png(plain, scale=scale), 64)}


def _place(x: float, y: float, width: float, height: float) -> str:
    return f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'


def _ink(role: str, fill: float, line: str = "") -> str:
    filled = f"fill:{color(role)};fill-opacity:{_n(fill)}"
    return f"{filled};stroke:{color(line or role)}"


def _points(*points: Point) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in points)


def written(number: float, decimals: int | None = None) -> str:
    """Write a number with a real minus sign; by default, as short as it can be."""
    text = _n(number) if decimals is None else f"{number:.{decimals}f}"
    return signed(text)


def signed(text: str) -> str:
    """Give the numbers in a text a real minus sign."""
    return re.sub(r"(?<!\w)-(?=\d)", "−", text)


def _n(number: float) -> str:
    """Write a number with at most two decimals, and none where it needs none."""
    return f"{round(number, 2) + 0.0:.2f}".rstrip("0").rstrip(".")
