"""Colors and fonts of the interactive charts, on light and on dark pages."""

from typing import Any


def theme_config(dark: bool = False) -> dict[str, Any]:
    """Return Vega-Lite's settings for the light or the dark page."""
    ink, line = ("#CED6DD", "#48566A") if dark else ("#1F2933", "#CBD2D9")
    weights = ["#FFFFFF", "#CFE3F3", "#7DB4DC", "#2878B5", "#08306B"]
    if dark:
        weights = ["#1A2028", "#1F3F5F", "#2F75AE", "#7DBBEA", "#EAF5FF"]
    text = {"labelColor": ink, "titleColor": ink, "titleFontWeight": "normal"}
    sizes = {"labelFontSize": 11, "titleFontSize": 11, "labelLimit": 90}
    return {
        "background": "transparent" if dark else "white",
        "font": "DejaVu Sans, sans-serif",
        "axis": {**text, **sizes, "domainColor": line, "gridColor": line},
        "legend": {**text, **sizes},
        "range": {
            "category": ["#1E5A86", "#2A323D"] if dark else ["#56B4E9", "#ECEFF1"],
            "heatmap": weights,
        },
        "rule": {"color": ink},
        "text": {"color": ink},
        "title": {"color": ink, "fontSize": 12, "fontWeight": "normal"},
        "view": {"stroke": None},
    }
