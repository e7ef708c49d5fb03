"""Colors, fonts and styles of the interactive charts, on light and on dark pages."""

from typing import Any

from transformer_book.diagrams.canvas import FONT
from transformer_lib.plots.palette import DARK, GRAY, HIGHLIGHT, LIGHT


def theme_config(dark: bool = False, size: int = 11) -> dict[str, Any]:
    """Return Vega-Lite's settings for the light or the dark page, in letters of a size.

    Charts name styles: "tile" and "frame" for cells, "query" for the axis of queries,
    "memory mark" for lines that carry the memory, and so on for each role.
    """
    colors = DARK if dark else LIGHT
    text = {"labelColor": colors.ink, "titleColor": colors.ink, "labelLimit": 90}
    text |= {"labelFontSize": size, "titleFontSize": size, "titleFontWeight": "normal"}
    lines = {"domainColor": colors.line, "gridColor": colors.band}
    styles = {f"{role} mark": {"color": color} for role, color in colors.roles.items()}
    for role, color in colors.roles.items():
        styles[role] = {"titleColor": color, "titleFontWeight": "bold"}
    styles["tile"] = {"stroke": GRAY, "strokeWidth": 0.4}
    styles["frame"] = {"color": HIGHLIGHT, "strokeWidth": 2}
    return {
        "background": colors.page,
        "font": FONT,
        "axis": {**text, **lines, "labelPadding": 5, "ticks": False},
        "legend": text,
        "line": {"strokeWidth": 2},
        "mark": {"color": colors.series[0]},
        "range": {
            "category": list(colors.series),
            "ordinal": [colors.shown, colors.hidden],
            "heatmap": list(colors.weights),
            "diverging": list(colors.signed),
        },
        "rule": {"color": colors.ink},
        "text": {"color": colors.ink},
        "title": {"color": colors.ink, "fontSize": size + 1, "fontWeight": "normal"},
        "view": {"stroke": None},
        "style": styles,
    }
