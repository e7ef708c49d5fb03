"""What makes the PNGs that notebooks store beside live charts and diagrams."""

from types import ModuleType

import matplotlib

from transformer_lib.plots.stored import small_png as small_png


def converter() -> ModuleType | None:
    """Return vl_convert, which draws SVG and Vega-Lite; None where it is missing."""
    try:
        import vl_convert
    except ImportError:
        return None
    vl_convert.register_font_directory(f"{matplotlib.get_data_path()}/fonts/ttf")
    return vl_convert
