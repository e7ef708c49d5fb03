"""Every color of the book's pictures: still and interactive, on light and dark pages.

No meaning hangs on a color alone: lines differ in their dashes, bars in their hatching,
cells hold signs or numbers, and everything colored by its role is also named. The
colors of one page can be told apart with any color vision; those of text have a
contrast of at least 4.5 : 1 with their page, those of marks at least 3 : 1.
"""

from dataclasses import dataclass, fields

# These show on either page.
HIGHLIGHT = "#D55E00"  # frames around what is chosen, new or correct
GRAY = "#768594"  # arrows, edges of cells, what was dropped


@dataclass(frozen=True)
class Palette:
    """The colors for one kind of page.

    Attributes:
        page: the page itself.
        ink: text, and lines as dark as text.
        soft: text that stands back, such as the numbers on an axis.
        line: axes, and edges of cells.
        band: grids, and an area behind dots and lines.
        shown, hidden: the two kinds of cells of a mask or a batch.
        low, high: numbers written on cells of small and of large weights.
        weights: a ramp for weights, from 0, the page itself, to 1.
        minus: a ramp for negative numbers, from far below zero; it leads to `weights`.
        roles: what the book draws in a color of its own from the map of the model to
            the last chart: source, target, memory, query, key, value.
    """

    page: str
    ink: str
    soft: str
    line: str
    band: str
    shown: str
    hidden: str
    low: str
    high: str
    weights: tuple[str, ...]
    minus: tuple[str, ...]
    roles: dict[str, str]

    @property
    def series(self) -> tuple[str, ...]:
        """Colors of lines and bars, in the order in which they appear."""
        names = ("source", "target", "memory", "query", "key")
        return (*(self.roles[name] for name in names), self.ink)

    @property
    def signed(self) -> tuple[str, ...]:
        """A ramp for signed numbers; the middle one is zero."""
        return (*self.minus, *self.weights)

    @property
    def named(self) -> dict[str, str]:
        """All colors but those of ramps, under their names in the style sheet."""
        flat = {f.name: getattr(self, f.name) for f in fields(self) if f.type is str}
        return {**flat, **self.roles, "highlight": HIGHLIGHT, "gray": GRAY}


LIGHT = Palette(
    page="#FDFCF8",
    ink="#22252B",
    soft="#64676F",
    line="#C9C6BB",
    band="#E4E1D8",
    shown="#A9C3EA",
    hidden="#EFEDE5",
    low="#060709",
    high="#FFFFFF",
    weights=("#FDFCF8", "#D6E1F1", "#92B0DC", "#2F5FB3", "#12295A"),
    minus=("#5C2C08", "#B4570F", "#DFA97C", "#F5DFCB"),
    roles={
        "source": "#2F5FB3",  # blue
        "target": "#B4570F",  # brown
        "memory": "#12806A",  # green
        "query": "#862E7D",  # purple
        "key": "#4F4A00",  # olive
        "value": "#33205F",  # indigo
    },
)
DARK = Palette(
    page="#14161A",
    ink="#E6E3DA",
    soft="#9A9DA3",
    line="#4A4E57",
    band="#2B2E35",
    shown="#34588F",
    hidden="#24272E",
    low="#FFFFFF",
    high="#060709",
    weights=("#14161A", "#1C2E4B", "#2A4C84", "#608EDC", "#D3E3FF"),
    minus=("#FFCF9E", "#F0A25C", "#7C4A1F", "#3F2A18"),
    roles={
        "source": "#86AEF0",
        "target": "#F0A25C",
        "memory": "#4FC7AB",
        "query": "#EE6390",
        "key": "#F5E663",
        "value": "#A56CEE",
    },
)
