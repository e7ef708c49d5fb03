"""What the charts share: inputs, cells, tooltips, and how a chart is shown."""

import base64
import io
import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import altair
import matplotlib
from PIL import Image
from torch import Tensor

from transformer_book.charts.theme import theme_config
from transformer_lib.model.checks import check_ids, check_kind, check_texts
from transformer_lib.plots.palette import LIGHT

MAX_ALT = 150  # characters
WIDTH, HEIGHT = 240, 130  # pixels of a panel with axes; fits a phone

Chart = altair.TopLevelMixin
C = TypeVar("C", bound=Chart)


def show(chart: Chart, alt: str) -> None:
    """Display a chart: live where charts can be drawn, else its picture or its alt.

    Args:
        chart: what one of the chart functions returns.
        alt: kind of chart, what is compared, what to see; at most 150 characters.

    Raises:
        ValueError: alt is empty or too long.
        ImportError: IPython is not installed.
    """
    if not 0 < len(alt.strip()) <= MAX_ALT:
        raise ValueError(f"alt must have 1 to {MAX_ALT} characters, not {len(alt)}")
    try:
        from IPython.display import display
    except ImportError as error:
        raise ImportError(
            "show displays a chart in a notebook and needs IPython: "
            "pip install ipython, or save the chart with chart.save('chart.html')"
        ) from error
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
    drawn.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(png, "PNG")
    return {**bundle, "image/png": base64.b64encode(png.getvalue()).decode()}


def finish(
    chart: C,
    rows: Sequence[Mapping[str, Any]],
    params: list[altair.Parameter],
    columns: Sequence[str | tuple[str, str]],
) -> C:
    """Give a chart its data, its inputs, and the columns of the page's data table.

    Args:
        chart: an Altair chart without data.
        rows: the data: field -> value.
        params: what the reader can change, and what expressions refer to.
        columns: the fields that the table shows, in order: "field", or
            ("field", "heading") where the heading says more.

    Raises:
        ValueError: a number of the data is NaN or infinite; in which row.
    """
    for row in rows:
        for field, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{field} is {value} in {_brief(row)}: draw numbers")
    headings = [[each, each] if isinstance(each, str) else [*each] for each in columns]
    chart = chart.properties(
        data=altair.Data(values=list(rows)), usermeta={"columns": headings}
    )
    return chart.add_params(*params)


def _brief(row: Mapping[str, Any]) -> str:
    """Name a row by its texts and whole numbers."""
    telling = {name: value for name, value in row.items() if type(value) in (str, int)}
    return ", ".join(f"{name} {value!s:.30}" for name, value in telling.items())


def check_names(tokens: tuple[Sequence[str], Sequence[str]], *sides: Tensor) -> None:
    """Refuse names that do not belong to ids of a source and a target.

    Args:
        tokens: names of the source's and of the target's tokens.
        sides: ids of both, (1, length) each.

    Raises:
        TypeError: they are no two lists of texts, or ids are no tensors.
        ValueError: another count of names than of ids.
    """
    check_kind((tuple, list), tokens=tokens)
    if len(tokens) != len(sides):
        raise ValueError(f"tokens must be {len(sides)} lists, not {len(tokens)}")
    for name, ids, names in zip(("source", "target"), sides, tokens, strict=True):
        check_ids(ids)
        check_texts(f"tokens of the {name}", names)
        if len(names) != ids.size(1):
            raise ValueError(f"{ids.size(1)} {name} ids, but {len(names)} names")


def quoted(text: str) -> str:
    """Write a text as an expression of Vega, also one with quotes in it."""
    inside = json.dumps(text)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inside}'"


def split_field(chart: C, field: str, separator: str, part: str, index: str) -> C:
    """Make a row of each part of a text field; index counts the parts.

    The field itself stays as it is, because Vega computes it anew at every choice.
    """
    return (
        chart.transform_calculate(**{part: f"split(datum.{field}, '{separator}')"})
        .transform_calculate(**{index: f"sequence(length(datum.{part}))"})
        .transform_flatten([part, index])
    )


def split_numbers(chart: C, field: str, value: str) -> C:
    """Make a row of each number of a text field; k counts them."""
    chart = split_field(chart, field, " ", "number", "k")
    return chart.transform_calculate(**{value: "toNumber(datum.number)"})


def join_numbers(values: Sequence[float]) -> str:
    """Write numbers with three decimals at most, so that stored charts repeat.

    Raises:
        ValueError: one is NaN or infinite.
    """
    values = [float(value) for value in values]
    for place, value in enumerate(values):
        if not math.isfinite(value):
            raise ValueError(
                f"number {place} of {len(values)} is {value}: draw numbers"
            )
    return " ".join(f"{round(float(value), 3) + 0.0:g}" for value in values)


def key_columns(label: str, title: str = "key", **axis: Any) -> altair.X:
    """Columns: one for each key, counted, so that repeated tokens stay apart.

    Args:
        label: an expression that names the key with the number `datum.value`.
        title: of the axis; the name of a role takes the role's color.
        axis: more of Altair's settings of the axis.
    """
    axis = {"orient": "top", "labelAngle": -45, **axis}
    return altair.X("k:O", title=title).axis(**_token_axis(label, title), **axis)


def query_rows(label: str, title: str = "query") -> altair.Y:
    """Rows: one for each query, in the same way."""
    return altair.Y("q:O", title=title).axis(**_token_axis(label, title))


def _token_axis(label: str, title: str) -> dict[str, Any]:
    style = {"style": title} if title in LIGHT.roles else {}
    return {"labelExpr": label, "ticks": False, **style}


def step_size(tokens: Sequence[str]) -> altair.Step:
    """Return the side of a cell; a map of as many cells fits a phone of 390 pixels."""
    return altair.Step(max(12, min(30, 230 // len(tokens))))


def shade(field: str, title: str, **legend: Any) -> altair.Color:
    """Color cells by a number from 0 to 1, on one fixed scale."""
    color = altair.Color(f"{field}:Q", title=title)
    color = color.scale(domain=[0, 1], clamp=True, interpolate="rgb")
    return color.legend(orient="bottom", gradientLength=160, **legend)


def signed_shade(title: str, low: Any, high: Any, **legend: Any) -> altair.Color:
    """Color cells by a signed value from low to high; zero has the page's color."""
    color = altair.Color("value:Q", title=title).scale(
        domain=[low, high],
        domainMid=0,
        range="diverging",
        interpolate="rgb",
        clamp=True,
    )
    return color.legend(orient="bottom", gradientLength=160, **legend)


def frames(chart: altair.Chart, chosen: str) -> altair.Chart:
    """Draw frames around the cells that an expression picks."""
    return chart.transform_filter(chosen).mark_rect(filled=False, style="frame")


def tooltip(*fields: str, **formats: str) -> list[altair.Tooltip]:
    """Name fields by their values: texts as they are, numbers in the given format."""
    texts = [altair.Tooltip(f"{field}:N") for field in fields]
    return texts + [altair.Tooltip(f"{f}:Q", format=d) for f, d in formats.items()]


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
    name: str, label: str, low: float, high: float, value: float = 0, step: float = 1
) -> altair.Parameter:
    """A number between low and high, a whole one unless step says otherwise."""
    bind = altair.binding_range(min=low, max=high, step=step, name=label)
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
