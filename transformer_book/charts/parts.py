"""What the charts share: inputs, cells, tooltips, and how a chart is shown."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import altair
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from transformer_book.charts.theme import theme_config
from transformer_book.diagrams.canvas import Words
from transformer_book.pictures import converter, small_png
from transformer_lib.plots.palette import LIGHT

WIDTH, HEIGHT = 240, 130  # pixels of a panel with axes; fits a phone
# What would end or begin a script where a chart stands in a page's source.
TAG = re.compile(r"<(?=[/!]|script)", re.IGNORECASE)
WORD_JOINER = "\u2060"  # takes no room; after "<", it makes any text harmless


class _Safe(altair.TopLevelMixin):
    """A chart whose specification can stand in any page, and repeats to the byte."""

    def to_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the specification, without tags in its texts, its numbers rounded."""
        return _stored(super().to_dict(*args, **kwargs))


class Chart(_Safe, altair.Chart):
    """A chart of one view."""


class LayerChart(_Safe, altair.LayerChart):
    """Views on top of each other."""


class VConcatChart(_Safe, altair.VConcatChart):
    """Views below each other."""


AnyChart = Chart | LayerChart | VConcatChart
C = TypeVar("C", bound=altair.TopLevelMixin)


def show(chart: AnyChart, alt: str) -> None:
    """Display a chart: live where charts can be drawn, else its picture or its alt.

    Args:
        chart: what one of the chart functions returns.
        alt: kind of chart, what is compared, what to see.

    Raises:
        ValueError: alt is empty.
    """
    from IPython.display import display

    if not alt.strip():
        raise ValueError("alt must say what the chart shows, but it is empty")
    if "google.colab" in sys.modules:
        with altair.renderers.enable("colab"):
            display(chart.properties(config=theme_config(), description=alt))
    else:
        display(mime_bundle(chart, alt), raw=True)


def mime_bundle(chart: AnyChart, alt: str) -> dict[str, Any]:
    """Return the chart as a Vega-Lite specification, its alt text, perhaps a PNG."""
    spec = {**chart.to_dict(), "config": theme_config(), "description": alt}
    major = altair.SCHEMA_VERSION.lstrip("v").split(".")[0]
    bundle = {f"application/vnd.vegalite.v{major}+json": spec, "text/plain": alt}
    if vega := converter():
        bundle["image/png"] = small_png(vega.vegalite_to_png(spec, scale=1.5), 256)
    return bundle


def _stored(spec: Any) -> Any:
    if isinstance(spec, Mapping):
        return {key: _stored(value) for key, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [_stored(value) for value in spec]
    if isinstance(spec, str):
        return TAG.sub(f"<{WORD_JOINER}", spec)
    if isinstance(spec, float):
        if not math.isfinite(spec):
            raise ValueError(f"a chart can't draw {spec}")
        return round(spec, 4)
    return spec


def finish(chart: C, rows: list[dict], params: list, columns: list) -> C:
    """Give a chart its data, its inputs, and the columns of the page's data table.

    Args:
        chart: without data.
        rows: the data: field -> value.
        params: what the reader can change, and what expressions refer to.
        columns: the fields that the table shows, in order: "field", or
            ("field", "heading") where the heading says more.
    """
    headings = [[each, each] if isinstance(each, str) else [*each] for each in columns]
    data, extra = altair.Data(values=rows), {"columns": headings}
    return chart.properties(data=data, usermeta=extra).add_params(*params)


def as_tensor(values: ArrayLike | Tensor) -> Tensor:
    """Return numbers in double precision, without a gradient.

    Raises:
        ValueError: one is NaN or infinite, which a chart would leave out silently.
    """
    values = torch.as_tensor(values).detach().double()
    if not values.isfinite().all():
        raise ValueError("a chart can't draw NaN or infinity, but got some")
    return values


def require_names(shape: Sequence[int], rows: Words, columns: Words) -> None:
    """Refuse names that would stand beside other rows and columns than their own.

    Raises:
        ValueError: shape does not end in (len(rows), len(columns)).
    """
    named = (len(rows), len(columns))
    if tuple(shape[-2:]) != named:
        raise ValueError(f"{named} names do not fit a map of {tuple(shape)}")


def split_field(chart: C, field: str, separator: str, part: str, index: str) -> C:
    """Make a row of each part of a text field; index counts the parts.

    The field itself stays as it is, because Vega computes it anew at every choice.
    """
    chart = chart.transform_calculate(**{part: f"split(datum.{field}, '{separator}')"})
    chart = chart.transform_calculate(**{index: f"sequence(length(datum.{part}))"})
    return chart.transform_flatten([part, index])


def split_numbers(chart: C, field: str, value: str) -> C:
    """Make a row of each number of a text field; k counts them."""
    chart = split_field(chart, field, " ", "number", "k")
    return chart.transform_calculate(**{value: "toNumber(datum.number)"})


def join_numbers(values: Tensor) -> str:
    """Write numbers with three decimals at most, so that stored charts repeat."""
    return " ".join(f"{round(value, 3) + 0.0:g}" for value in values.tolist())


def key_columns(label: str, title: str = "key", **axis: Any) -> altair.X:
    """Columns: one for each key, counted, so that repeated tokens stay apart.

    Args:
        label: an expression that names the key with the number `datum.value`.
        title: of the axis; the name of a role takes the role's color.
        axis: more of Altair's settings of the axis.
    """
    axis = _token_axis(label, title) | {"orient": "top", "labelAngle": -45, **axis}
    return altair.X("k:O", title=title).axis(**axis)


def query_rows(label: str, title: str = "query") -> altair.Y:
    """Rows: one for each query, in the same way."""
    return altair.Y("q:O", title=title).axis(**_token_axis(label, title))


def _token_axis(label: str, title: str) -> dict[str, Any]:
    style = {"style": title} if title in LIGHT.roles else {}
    return {"labelExpr": label, "ticks": False, **style}


def step_size(tokens: Words) -> altair.Step:
    """Return the side of a cell; a map of as many cells fits a phone of 390 pixels."""
    return altair.Step(max(12, min(30, 230 // len(tokens))))


def tooltip(*fields: str, **numbers: str) -> list[altair.Tooltip]:
    """Say what a mark shows: texts as they are, and numbers, each in its format."""
    texts = [altair.Tooltip(f"{field}:N") for field in fields]
    told = (altair.Tooltip(f"{x}:Q", format=style) for x, style in numbers.items())
    return [*texts, *told]


def fixed(name: str, value: Any) -> altair.Parameter:
    """A value that expressions refer to by name."""
    return altair.param(name=name, value=value)


def select(name: str, options: Words, value: str = "") -> altair.Parameter:
    """A drop-down list; a fixed value where there is nothing to choose."""
    if len(options) == 1:
        return fixed(name, options[0])
    bind = altair.binding_select(options=list(options), name=name)
    return altair.param(name=name, value=value or options[0], bind=bind)


def slider(
    name: str, label: str, low: float, high: float, value: float = 0
) -> altair.Parameter:
    """A whole number between low and high."""
    bind = altair.binding_range(min=low, max=high, step=1, name=label)
    return altair.param(name=name, value=value, bind=bind)


def token_list(name: str, tokens: Words, *first: str) -> altair.BindRadioSelect:
    """A list of numbered tokens; before them, perhaps, a choice of none."""
    options = [*[None] * len(first), *range(len(tokens))]
    labels = [*first, *(f"{i}: {token}" for i, token in enumerate(tokens, start=1))]
    return altair.binding_select(options=options, labels=labels, name=name)
