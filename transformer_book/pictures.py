"""The PNGs that notebooks store beside charts, diagrams and plots."""

import base64
import io
from types import ModuleType

import matplotlib
from PIL import Image


def converter() -> ModuleType | None:
    """Return vl_convert, which draws SVG and Vega-Lite; None where it is missing."""
    try:
        import vl_convert
    except ImportError:
        return None
    vl_convert.register_font_directory(f"{matplotlib.get_data_path()}/fonts/ttf")
    return vl_convert


def small_png(png: bytes, n_colors: int) -> str:
    """Return a PNG in so many colors, as base64."""
    drawn, small = Image.open(io.BytesIO(png)).convert("RGB"), io.BytesIO()
    n_colors = min(n_colors, len(drawn.getcolors(drawn.width * drawn.height)))
    method = Image.Quantize.MAXCOVERAGE  # keeps a color that few pixels have
    few = drawn.quantize(n_colors, method, dither=Image.Dither.NONE)
    few.save(small, "PNG", optimize=True)
    return base64.b64encode(small.getvalue()).decode()
