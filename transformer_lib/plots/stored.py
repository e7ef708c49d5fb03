"""What a notebook stores of a figure: small, and the same from run to run."""

import base64
import io
import re
from html import escape
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure
from PIL import Image

from transformer_lib.plots.palette import LIGHT

# The pages of the book know this type; other frontends show the PNG beside it.
MIME = "application/vnd.transformer-lib.figure+svg"
FONT = "'Book Sans', 'DejaVu Sans', Verdana, sans-serif"

# What the drawing as a whole says, so that no part of it has to.
_SHARED = {
    "fill": LIGHT.ink.lower(),
    "font-size": "10px",
    "stroke-linejoin": "round",
    "stroke-width": "0.8",
}
_IMPLIED = _SHARED | {"text-anchor": "start", "stroke-dashoffset": "0"}
_LEFT_OUT = {"font-family", "stroke-linecap"}
_PICTURE = "data:image/png;base64,"


def mime_bundle(figure: Figure) -> dict[str, str]:
    """Return what stands for a figure in a notebook: an SVG, and a PNG of it.

    Args:
        figure: drawn in the colors of the light page.
    """
    png = io.BytesIO()
    figure.savefig(png, format="png", bbox_inches="tight")
    return {MIME: small_svg(figure), "image/png": small_png(png.getvalue(), 256)}


def small_png(png: bytes, n_colors: int) -> str:
    """Return a PNG in so many colors, as base64."""
    drawn, small = Image.open(io.BytesIO(png)).convert("RGB"), io.BytesIO()
    n_colors = min(n_colors, len(drawn.getcolors(drawn.width * drawn.height)))
    method = Image.Quantize.MAXCOVERAGE  # keeps a color that few pixels have
    few = drawn.quantize(n_colors, method, dither=Image.Dither.NONE)
    few.save(small, "PNG", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


def small_svg(figure: Figure) -> str:
    """Return a figure as an SVG element without a background, and without stamps."""
    written = io.StringIO()
    stamps = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "book"}):
        figure.savefig(
            written,
            format="svg",
            bbox_inches="tight",
            facecolor="none",
            metadata=stamps,
        )
    text = re.sub(r' xmlns(:\w+)?="[^"]*"|xlink:', "", written.getvalue())
    root = ElementTree.fromstring(text)
    width, height = map(float, root.get("viewBox").split()[2:])
    style = "".join(f"{name}:{value};" for name, value in _SHARED.items())
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" '
        f'width="{width / 0.75:.0f}" height="{height / 0.75:.0f}" '
        f'style="font-family:{FONT};{style}">{"".join(map(_element, root))}</svg>'
    )


def _element(element: ElementTree.Element) -> str:
    """Write an element in few characters, and a mere group as what is in it."""
    tag, inside = element.tag, "".join(map(_element, element))
    attributes = {name: _short(name, value) for name, value in element.items()}
    if tag in ("g", "image"):
        attributes.pop("id", None)
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    if not attributes.get("style", "none"):
        del attributes["style"]
    if tag in ("metadata", "style") or attributes.get("style") == "fill:none":
        return ""
    if not attributes and (tag == "g" or not inside):
        return inside
    written = "".join(f' {name}="{value}"' for name, value in attributes.items())
    inside = escape((element.text or "").strip(), quote=False) + inside
    return f"<{tag}{written}>{inside}</{tag}>"


def _short(name: str, value: str) -> str:
    """Write numbers with one decimal, and leave out of a style what holds anyway."""
    if value.startswith(_PICTURE):
        return _PICTURE + small_png(base64.b64decode(value.removeprefix(_PICTURE)), 256)
    if name == "style":
        return ";".join(
            f"{key}:{said}"
            for key, said in re.findall(r"([\w-]+):\s*([^;]+)", value)
            if key not in _LEFT_OUT and _IMPLIED.get(key) != said
        )
    if "matrix" in value or "scale" in value:
        return value
    value = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}", value)
    value = value.replace(".0", "")
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", value) if name == "d" else value
