"""Every color of the book's pictures: still and interactive, on light and dark pages.

No meaning hangs on a color alone: lines differ in their dashes, bars in their hatching,
cells hold signs or numbers, and everything colored by its role is also named. The
colors of one page can be told apart with any color vision; those of text have a
contrast of at least 4.5 : 1 with their page, those of marks at least 3 : 1.
"""

from dataclasses import dataclass

# These show on either page.
HIGHLIGHT = "#D55E00"  # frames around what is chosen, new or correct
BLUE = "#2E86C1"  # what is kept, beside the highlight
GRAY = "#768594"  # arrows, edges of cells, what was dropped

# Okabe and Ito's palette: blue, vermilion, green, purple, orange, black.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000")


@dataclass(frozen=True)
class Palette:
    """The colors for one kind of page.

    Attributes:
        page: the page itself.
        ink: text, and lines as dark as text.
        line: axes and grids.
        band: an area behind dots and lines.
        series: lines and bars, in the order in which they appear.
        shown, hidden: the two kinds of cells of a mask or a batch.
        weights: a ramp for weights, from 0 to 1.
        signed: a ramp for signed numbers; the middle one is zero.
        roles: what the book draws in a color of its own from the map of the model to
            the last chart: source, target, memory, query, key, value.
    """

    page: str
    ink: str
    line: str
    band: str
    series: tuple[str, ...]
    shown: str
    hidden: str
    weights: tuple[str, ...]
    signed: tuple[str, ...]
    roles: dict[str, str]


LIGHT = Palette(
    page="#FDFCF8",
    ink="#22252B",
    line="#CBD2D9",
    band="#E4E7EB",
    series=SERIES,
    shown="#56B4E9",
    hidden="#ECEFF1",
    weights=("#FFFFFF", "#CFE3F3", "#7DB4DC", "#2878B5", "#08306B"),
    signed=(
        *("#8C3B00", "#D55E00", "#F6C9AC"),
        "#FFFFFF",
        *("#A9CFE6", "#0072B2", "#003B5C"),
    ),
    roles={
        "source": "#1D55C3",  # blue
        "target": "#B4570F",  # brown
        "memory": "#1B8270",  # teal
        "query": "#862E7D",  # purple
        "key": "#4F4A00",  # olive
        "value": "#33205F",  # indigo
    },
)
DARK = Palette(
    page="#14161A",
    ink="#E6E3DA",
    line="#48566A",
    band="#2A323D",
    series=("#5AAEE6", "#F0803C", "#3CC29A", "#DD96BF", "#E6B94F", "#CED6DD"),
    shown="#1E5A86",
    hidden="#2A323D",
    weights=("#1A2028", "#1F3F5F", "#2F75AE", "#7DBBEA", "#EAF5FF"),
    signed=(
        *("#FFC9A3", "#F0803C", "#6B3717"),
        "#1A2028",
        *("#1F4A6B", "#5AAEE6", "#CFE9FF"),
    ),
    roles={
        "source": "#6CB4E4",
        "target": "#F0A25C",
        "memory": "#45E5C8",
        "query": "#EE6390",
        "key": "#F5E663",
        "value": "#A56CEE",
    },
)
