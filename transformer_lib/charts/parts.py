"""What all interactive charts share: how they are shown, stored, and put together."""

import base64
import io
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import altair
import matplotlib
from PIL import Image

from transformer_lib.charts.theme import theme_config

MAX_ALT = 150  # characters

Chart = altair.TopLevelMixin
C = TypeVar("C", bound=Chart)


def show(chart: Chart, alt: str) -> None:
    """Display a chart: live where charts can be drawn, else its picture or its alt.

    Args:
        chart: what one of the functions below returns.
        alt: kind of chart, what is compared, what to see; at most 150 characters.

    Raises:
        ValueError: alt is empty or too long.
    """
    from IPython.display import display

    if not 0 < len(alt.strip()) <= MAX_ALT:
        raise ValueError(f"alt must have 1 to {MAX_ALT} characters, not {len(alt)}")
    if "google.colab" in sys.modules:
        with altair.renderers.enable("colab"):
            display(chart.properties(config=theme_config(), description=alt))
    else:
        display(mime_bundle(chart, alt), raw=True)


def mime_bundle(chart: Chart, alt: str) -> dict[str, Any]:
    """Return the chart as a Vega-Lite specification, a PNG, and its alt text."""
    spec = _rounded({**chart.to_dict(), "config": theme_config(), "description": alt})
    major = altair.SCHEMA_VERSION.lstrip("v").split(".")[0]
    bundle = {f"application/vnd.vegalite.v{major}+json": spec, "text/plain": alt}
    try:
        import vl_convert
    except ImportError:  # no picture: the chart is drawn live only
        return bundle
    vl_convert.register_font_directory(f"{matplotlib.get_data_path()}/fonts/ttf")
    drawn = Image.open(io.BytesIO(vl_convert.vegalite_to_png(spec, scale=1.5)))
    png = io.BytesIO()
    drawn.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(png, "PNG")
    return {**bundle, "image/png": base64.b64encode(png.getvalue()).decode()}


def finish(chart: C, params: list, columns: Mapping[str, str], step: int = 0) -> C:
    """Add what every chart of the book has.

    Args:
        chart: an Altair chart.
        params: what the reader can change, and what expressions refer to.
        columns: field -> heading of the data table that the page shows, in order.
        step: side of a cell in pixels, where the chart consists of cells.
    """
    if step:
        chart = chart.properties(width=altair.Step(step), height=altair.Step(step))
    usermeta = {"columns": [list(column) for column in columns.items()]}
    return chart.add_params(*params).properties(usermeta=usermeta)


def split_field(chart: C, field: str, separator: str, part: str, index: str) -> C:
    """Make a row of each part of a text field; index counts the parts.

    The field itself stays as it is, for Vega computes it anew at every choice.
    """
    return (
        chart.transform_calculate(**{part: f"split(datum.{field}, '{separator}')"})
        .transform_calculate(**{index: f"sequence(length(datum.{part}))"})
        .transform_flatten([part, index])
    )


def join_numbers(values: Sequence[float]) -> str:
    """Write numbers with three decimals at most, so that stored charts repeat."""
    return " ".join(f"{round(float(value), 3) + 0.0:g}" for value in values)


def key_columns(label: str) -> altair.X:
    """Columns: one a key, counted, so that repeated tokens stay apart."""
    axis = altair.Axis(orient="top", labelExpr=label, labelAngle=-45, ticks=False)
    return altair.X("k:O", title="key", axis=axis)


def query_rows(label: str) -> altair.Y:
    """Rows: one a query, counted, so that repeated tokens stay apart."""
    return altair.Y(
        "q:O", title="query", axis=altair.Axis(labelExpr=label, ticks=False)
    )


def step_size(tokens: Sequence[str]) -> int:
    """Return the side of a cell in pixels; a map fits a phone of 390 pixels."""
    return max(12, min(30, 230 // len(tokens)))


def fixed(name: str, value: Any) -> altair.Parameter:
    """A value that expressions refer to by name."""
    return altair.param(name=name, value=value)


def select(
    name: str, options: Sequence[str], value: str | None = None
) -> altair.Parameter:
    """A drop-down list; a fixed value where there is nothing to choose."""
    value = options[0] if value is None else value
    if len(options) == 1:
        return fixed(name, value)
    bind = altair.binding_select(options=list(options), name=name)
    return altair.param(name=name, value=value, bind=bind)


def slider(
    name: str, label: str, low: int, high: int, value: int = 0
) -> altair.Parameter:
    """A whole number between low and high."""
    bind = altair.binding_range(min=low, max=high, step=1, name=label)
    return altair.param(name=name, value=value, bind=bind)


def checkbox(name: str, label: str) -> altair.Parameter:
    """A choice between on and off, at first on."""
    return altair.param(name=name, value=True, bind=altair.binding_checkbox(name=label))


def _rounded(spec: Any) -> Any:
    """Round every number of a specification, so that stored charts repeat."""
    if isinstance(spec, Mapping):
        return {key: _rounded(value) for key, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [_rounded(value) for value in spec]
    return round(spec, 4) if isinstance(spec, float) else spec
