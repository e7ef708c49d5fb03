"""A plot of ratios as a picture that takes its colors from the page, light or dark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from docutils import nodes

WIDTH, MARGIN, ROW, TOP = 350, 16, 44, 24  # pixels: readable on a phone
# Form and color tell libraries apart, so that the color alone is never needed.
MARKS = (
    ("#8a8f98", "M-1.5,-9h3v18h-3z"),  # a bar
    ("#d55e00", "M0,-6L6,5H-6z"),  # a triangle
    ("#b97a00", "M0,-7L7,0L0,7L-7,0z"),  # a diamond
    ("#009e73", "M-5,-5h10v10h-10z"),  # a square
    ("#3f8fc7", "M-6,-4h12v3h-12zM-6,2h12v3h-12z"),  # an equals sign
    ("#bf6497", "M-5.5,0a5.5,5.5 0 1,0 11,0a5.5,5.5 0 1,0 -11,0z"),  # a disk
)


def speed_plot(
    title: str,
    groups: Sequence[tuple[str, Mapping[str, float]]],
    libraries: Sequence[str],
) -> nodes.figure:
    """Draw a row for each setting, and a mark for each library's ratio.

    Args:
        title: what is drawn; it is read out to those who do not see the picture.
        groups: (setting, library -> ratio).
        libraries: in the order of the legend, at most as many as there are marks.

    Returns:
        A figure that holds the drawing as SVG. The axis is logarithmic.
    """
    ratios = [ratio for _, found in groups for ratio in found.values()]
    low = math.floor(math.log2(min(ratios)))
    high = math.ceil(math.log2(max(ratios)))
    scale = (WIDTH - 2 * MARGIN) / max(high - low, 1)

    def place(ratio: float) -> float:
        return MARGIN + (math.log2(ratio) - low) * scale

    marks = dict(zip(libraries, MARKS, strict=False))
    legend = _legend(marks)
    bottom = TOP + ROW * len(groups)
    height = bottom + 24 + 20 * len(libraries)
    lines = [*_axis(low, high, place, bottom)]
    for number, (name, found) in enumerate(groups):
        y = TOP + ROW * number + 30
        lines.append(f'<text x="{MARGIN + 8}" y="{y - 14}">{escape(name)}</text>')
        lines += [_mark(marks[lib], place(found[lib]), y, lib) for lib in found]
    lines += [
        f'<g transform="translate(0,{bottom + 24})">',
        *legend,
        "</g>",
    ]
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" style="max-width:100%" '
        f'width="{WIDTH}" fill="currentColor" font-size="12" '
        f'aria-label="{escape(title, quote=True)}">' + "".join(lines) + "</svg>"
    )
    figure = nodes.figure("", nodes.raw("", svg, format="html"))
    figure += nodes.caption(title, title)
    return figure


def _axis(low: int, high: int, place: object, bottom: int) -> Iterator[str]:
    for power in range(low, high + 1):
        x = place(2.0**power)
        strength = 0.9 if power == 0 else 0.25
        yield (
            f'<path d="M{x:.1f},{TOP}V{bottom}" stroke="currentColor" '
            f'stroke-opacity="{strength}"/>'
        )
        label = f"{2**power}" if power >= 0 else f"1/{2**-power}"
        yield f'<text x="{x:.1f}" y="{TOP - 8}" text-anchor="middle">{label}</text>'


def _mark(style: tuple[str, str], x: float, y: float, title: str) -> str:
    color, path = style
    return (
        f'<path transform="translate({x:.1f},{y:.1f})" d="{path}" fill="{color}">'
        f"<title>{escape(title)}</title></path>"
    )


def _legend(marks: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    for number, (library, style) in enumerate(marks.items()):
        y = 20 * number
        yield _mark(style, 8, y, library)
        yield f'<text x="24" y="{y + 4}">{escape(library)}</text>'
