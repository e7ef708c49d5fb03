"""A small kit for drawn diagrams: boxes, arrows, words and grids as one SVG.

Every color is a CSS variable with the light page's color behind it, so a diagram
follows the dark pages of the book and stays right wherever there is no style sheet.
"""

import base64
import io
import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

import matplotlib

from transformer_lib.plots.palette import HIGHLIGHT, LIGHT

# Frontends that don't know this type, such as JupyterLab, show the PNG beside it; the
# pages of the book (book_tools.sphinx_diagrams) put the drawing into the page.
MIME = "application/vnd.transformer-book.diagram+html"

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]

COLORS = {
    "page": LIGHT.page,
    "ink": LIGHT.ink,
    "line": LIGHT.line,
    "band": LIGHT.band,
    "highlight": HIGHLIGHT,
    **LIGHT.roles,
}
FONT = "'DejaVu Sans', Verdana, sans-serif"
MONO = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
_PER_CHARACTER = 0.6  # width of a letter, about, as a share of the font's size


def color(name: str) -> str:
    """Return the CSS value of a color: "ink", "line", a role such as "query", ...

    Raises:
        ValueError: there is no color of this name.
    """
    if name not in COLORS:
        raise ValueError(f"color must be one of {', '.join(COLORS)}, not {name!r}")
    return f"var(--diagram-{name},{COLORS[name]})"


@dataclass
class Canvas:
    """A drawing of a fixed size; each method adds to it.

    Lengths are pixels of the full-size drawing, from the upper left corner. On a phone
    a canvas 520 wide shrinks to two thirds, so text should have a size of 14 or more.

    Attributes:
        width: of the drawing, in pixels.
        height: likewise.
    """

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

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
            lit: False fades the box, as something that is not the subject now.
            fill: opacity of the color inside; 0 for an empty frame.
            dashed: dash the frame.
            size: of the label's font.
        """
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._add(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" '
            f'rx="5"{dash} style="fill:{color(role)};fill-opacity:{_n(fill)};'
            f'stroke:{color(role)};stroke-width:{"1.6" if lit else "1"}"/>',
            lit,
        )
        middle = y + height / 2
        if label:
            self.text(x + width / 2, middle - 8 * bool(sub), label, size=size, lit=lit)
        if sub:
            self.text(x + width / 2, middle + 10, sub, size=size - 2.5, lit=lit)

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
    ) -> None:
        """Write one line of text, its middle at height y."""
        style = f"fill:{color(role)};font-size:{_n(size)}px"
        style += ";font-weight:bold" * bold + ";font-style:italic" * italic
        if mono:
            style += f";font-family:{MONO}"
        self._add(
            f'<text x="{_n(x)}" y="{_n(y + 0.36 * size)}" text-anchor="{anchor}" '
            f'style="{style}">{escape(text)}</text>',
            lit,
        )

    def arrow(
        self,
        *points: Point,
        role: str = "ink",
        label: str = "",
        at: Point | None = None,
        anchor: Anchor = "middle",
        dashed: bool = False,
        head: bool = True,
        width: float = 1.6,
        lit: bool = True,
    ) -> None:
        """Draw a line through two or more points, with an arrow's head at the last.

        Args:
            points: at least two.
            role: a color's name.
            label: written at the point `at`, or beside the middle of the first part.
            at: see label.
            anchor: of the label.
            dashed: dash the line.
            head: False for a plain line.
            width: of the line.
            lit: False fades it.
        """
        if len(points) < 2:
            raise ValueError(f"an arrow needs at least 2 points, not {len(points)}")
        *_, before, tip = points
        angle = math.atan2(tip[1] - before[1], tip[0] - before[0])
        end = (tip[0] - 6 * math.cos(angle), tip[1] - 6 * math.sin(angle))
        path = [*points[:-1], end if head else tip]
        line = " ".join(f"{_n(x)},{_n(y)}" for x, y in path)
        dash = ' stroke-dasharray="4 4"' if dashed else ""
        self._add(
            f'<polyline points="{line}"{dash} '
            f'style="fill:none;stroke:{color(role)};stroke-width:{_n(width)}"/>',
            lit,
        )
        if head:
            corners = [tip]
            for turn in (2.7, -2.7):
                corners.append(
                    (
                        tip[0] + 9 * math.cos(angle + turn),
                        tip[1] + 9 * math.sin(angle + turn),
                    )
                )
            shape = " ".join(f"{_n(x)},{_n(y)}" for x, y in corners)
            self._add(f'<polygon points="{shape}" style="fill:{color(role)}"/>', lit)
        if label:
            (ax, ay), (bx, by) = points[:2]
            x, y = at or ((ax + bx) / 2, (ay + by) / 2 - 10)
            self.text(x, y, label, role, size=13, anchor=anchor, lit=lit)

    def circle(
        self, x: float, y: float, radius: float, label: str = "", role: str = "ink",
        *, fill: float = 0.12, lit: bool = True, size: float = 14,
    ) -> None:  # fmt: skip
        """Draw a circle with a label in it, such as a plus sign."""
        self._add(
            f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" '
            f'style="fill:{color(role)};fill-opacity:{_n(fill)};'
            f'stroke:{color(role)};stroke-width:1.4"/>',
            lit,
        )
        if label:
            self.text(x, y, label, size=size, lit=lit)

    def grid(
        self,
        x: float,
        y: float,
        values: Sequence[Sequence[str | float]],
        role: str | Sequence[Sequence[str]] = "ink",
        *,
        cell: tuple[float, float] = (34, 24),
        shades: Sequence[Sequence[float]] | None = None,
        rows: Iterable[str] = (),
        columns: Iterable[str] = (),
        size: float = 13,
        lit: bool = True,
    ) -> None:
        """Draw a matrix: a cell for each value, with names of rows and columns.

        Args:
            x: left edge of the first cell.
            y: upper edge of the first cell.
            values: rows of numbers or words; numbers get at most two decimals.
            role: the color of all cells, or of each.
            cell: width and height of a cell.
            shades: opacity of each cell's color, from 0 to 1.
            rows: names on the left.
            columns: names above.
            size: of the font.
            lit: False fades all of it.
        """
        width, height = cell
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                left, top = x + j * width, y + i * height
                name = role if isinstance(role, str) else role[i][j]
                shade = 0.12 if shades is None else shades[i][j]
                self._add(
                    f'<rect x="{_n(left)}" y="{_n(top)}" width="{_n(width)}" '
                    f'height="{_n(height)}" style="fill:{color(name)};'
                    f'fill-opacity:{_n(shade)};stroke:{color("line")}"/>',
                    lit,
                )
                middle = (left + width / 2, top + height / 2)
                word = value if isinstance(value, str) else _n(value)
                if word:
                    self.text(*middle, word, size=size, lit=lit)
        for i, word in enumerate(rows):
            place = (x - 8, y + (i + 0.5) * height)
            self.text(*place, word, size=size, anchor="end", lit=lit)
        for j, word in enumerate(columns):
            self.text(x + (j + 0.5) * width, y - 11, word, size=size, lit=lit)

    def tokens(
        self, x: float, y: float, words: Sequence[str], role: str = "ink",
        *, size: float = 14, gap: float = 6, height: float = 24, lit: bool = True,
    ) -> list[float]:  # fmt: skip
        """Draw a row of tokens as chips; return the middle of each."""
        middles = []
        for word in words:
            width = _PER_CHARACTER * size * len(word) + 12
            self.box(x, y, width, height, word, role, size=size, lit=lit)
            middles.append(x + width / 2)
            x += width + gap
        return middles

    def svg(self, alt: str) -> str:
        """Return the drawing as an SVG element that can stand in a page."""
        style = f"max-width:100%;height:auto;font-family:{FONT}"
        box = f"{_n(self.width)} {_n(self.height)}"
        size = f'width="{_n(self.width)}" height="{_n(self.height)}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {box}" {size} '
            f'role="img" aria-label="{escape(alt)}" class="diagram" style="{style}">'
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
        if not alt.strip():
            raise ValueError("alt must say what the diagram shows, but it is empty")
        display_bundle(mime_bundle(self.svg(alt), alt))

    def _add(self, element: str, lit: bool = True) -> None:
        self.parts.append(element if lit else f'<g opacity="0.38">{element}</g>')


def display_bundle(bundle: dict[str, str]) -> None:
    """Display a picture in a notebook; a plain script has nowhere to show it."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if "google.colab" in sys.modules:  # shows any HTML, in a frame of its own
        bundle = {**bundle, "text/html": bundle[MIME]}
    if get_ipython() is not None:
        display(bundle, raw=True)


def mime_bundle(svg: str, alt: str) -> dict[str, str]:
    """Return an SVG for the book, its alt text, and a PNG where one can be made."""
    bundle = {MIME: svg, "text/plain": alt}
    try:
        import vl_convert
        from PIL import Image
    except ImportError:
        return bundle
    vl_convert.register_font_directory(f"{matplotlib.get_data_path()}/fonts/ttf")
    plain = re.sub(r"var\(--[\w-]+,([^)]*)\)", r"\1", svg).replace("100%", "9999")
    drawn = Image.open(io.BytesIO(vl_convert.svg_to_png(plain, scale=1.5)))
    png = io.BytesIO()
    drawn.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(png, "PNG")
    return {**bundle, "image/png": base64.b64encode(png.getvalue()).decode()}


def _n(number: float) -> str:
    """Write a number with at most two decimals, and none where it needs none."""
    return f"{round(number, 2) + 0.0:.2f}".rstrip("0").rstrip(".")
