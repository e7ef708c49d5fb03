"""How much a model's answers change when one habit of another dialect is taken over."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair
import torch
from torch import nn

from transformer_lib.charts.parts import finish, select
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.embeddings import Embeddings
from transformer_lib.model.layers import FeedForward, LayerNorm, SublayerConnection

SMALLEST = 1e-15  # below this, double precision sees only its own rounding


def _share_scale(part: MultiHeadAttention) -> None:
    part.q_proj.weight.data *= 3
    part.k_proj.weight.data /= 3


def _other_epsilon(part: LayerNorm) -> None:
    part.eps = 1e-6


def _unbiased_variance(part: LayerNorm) -> None:
    part.gain.data *= math.sqrt(1 - 1 / part.gain.numel())


def _gelu(part: FeedForward) -> None:
    part.activation = nn.GELU()


def _sines_first(part: Embeddings) -> None:
    part.positions.register_forward_hook(
        lambda _layer, _inputs, waves: torch.cat(
            [waves[..., 0::2], waves[..., 1::2]], dim=-1
        )
    )


def _half_of_width(part: MultiHeadAttention) -> None:
    part.q_proj.weight.data *= math.sqrt(part.d_head) / (part.d_model / 2)


def _no_scale(part: Embeddings) -> None:
    part.scale = 1.0


def _norm_first(part: SublayerConnection) -> None:
    part.norm_first = True


# What is changed -> the kind of part, and what happens to each part of that kind.
HABITS: dict[str, tuple[type[nn.Module], Callable[[Any], None]]] = {
    "queries x 3, keys / 3": (MultiHeadAttention, _share_scale),
    "epsilon 1e-6": (LayerNorm, _other_epsilon),
    "unbiased variance": (LayerNorm, _unbiased_variance),
    "divisor d_model / 2": (MultiHeadAttention, _half_of_width),
    "GELU": (FeedForward, _gelu),
    "sines first": (Embeddings, _sines_first),
    "unscaled embeddings": (Embeddings, _no_scale),
    "norm first": (SublayerConnection, _norm_first),
}


def take_over(model: nn.Module, habit: str) -> None:
    """Change every part of the model that a habit is about, in place.

    Args:
        model: a model of the library.
        habit: a key of HABITS.

    Raises:
        ValueError: the habit is unknown, or the model has no part that it is about.
    """
    if habit not in HABITS:
        raise ValueError(f"habit must be one of {list(HABITS)}, not {habit!r}")
    kind, change = HABITS[habit]
    parts = [part for part in model.modules() if isinstance(part, kind)]
    if not parts:
        raise ValueError(f"{type(model).__name__} holds no {kind.__name__} to change")
    for part in parts:
        change(part)


def difference_explorer(
    differences: Mapping[int, Mapping[str, float]], limit: float
) -> altair.LayerChart:
    """Draw how far each change moves the output, for a width to choose.

    Args:
        differences: d_model -> name of a change -> how far it moved the output, as a
            fraction of the output's own size.
        limit: differences below it count as none; a line marks it.
    """
    lowest = math.log10(SMALLEST)
    rows = [
        {"width": str(width), "change": name, "power": round(_power(value), 1)}
        for width, values in differences.items()
        for name, value in values.items()
    ]
    widths = [str(width) for width in differences]
    names = list(next(iter(differences.values())))
    label = "datum.value ? '1e' + datum.value : '1'"
    axis = altair.Axis(labelExpr=label, values=list(_steps(lowest)))
    x = altair.X("power:Q", title="change of the logits")
    x = x.axis(axis).scale(domain=[lowest, 0.5])
    y = altair.Y("change:N", title=None, sort=names).axis(labelLimit=240)
    data = altair.Data(values=rows)
    base = altair.Chart(data, width=125, height=24 * len(names))
    base = base.transform_filter("datum.width == width")
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(x, y)
    line = altair.Chart(altair.Data(values=[{"power": math.log10(limit)}]))
    line = line.mark_rule(strokeDash=[4, 4]).encode(x=altair.X("power:Q"))
    params = [select("width", widths, widths[-1])]
    columns = {"width": "d_model", "change": "change", "power": "power of ten"}
    return finish(altair.layer(line, dots), params, columns)


def _power(value: float) -> float:
    return math.log10(max(value, SMALLEST))


def _steps(lowest: float) -> Sequence[int]:
    return range(math.ceil(lowest), 1, 3)
