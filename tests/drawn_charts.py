"""A sample of every interactive chart, and how tests read what it draws.

A chart is checked by the SVG that Vega draws from it: every mark there carries a label
such as "query: 0; key: 2; reason: hidden: future".
"""

import html
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from transformer_book import charts
from transformer_book.charts.theme import theme_config
from transformer_book.pictures import converter
from transformer_lib import PRESETS, Transformer, sinusoid_table

ENGLISH = "the animal didn't cross the street because it was tired . <eos>"
GERMAN = "<bos> das Tier überquerte die Straße nicht , weil es müde war ."
EN, DE = ENGLISH.split(), GERMAN.split()
SRC = torch.tensor([[3, 5, 7, 9, 2]])
TGT = torch.tensor([[1, 4, 6, 8]])


def draw(*shape: int, seed: int = 0) -> Tensor:
    """Random numbers, the same for the same shape and seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_model(**changes: Any) -> Transformer:
    """A model with 2 encoder layers and 3 decoder layers, in evaluation mode."""
    sizes = {"src_vocab_size": 11, "tgt_vocab_size": 11, "d_model": 6, "n_heads": 2}
    sizes |= {"d_ff": 10, "n_encoder_layers": 2, "n_decoder_layers": 3}
    torch.manual_seed(0)
    return Transformer(replace(PRESETS["paper-base"], **sizes, **changes)).eval()


CHARTS: dict[str, Callable] = {
    "attention_explorer": lambda: charts.attention_explorer(
        draw(5, 13, 12).softmax(dim=-1), DE, EN
    ),
    "divisor_explorer": lambda: charts.divisor_explorer(
        2 * draw(7, 3), 2 * draw(7, 3, seed=1), EN[:7]
    ),
    "mask_explorer": lambda: charts.mask_explorer(EN, DE),
    "position_explorer": lambda: charts.position_explorer(sinusoid_table(64, 32)),
    "similarity_explorer": lambda: charts.similarity_explorer(
        {"embedding": draw(12, 5), "layer 1": draw(12, 5, seed=1)}, EN
    ),
}


@cache
def sample(name: str) -> dict[str, Any]:
    """The specification of a sample; do not change it."""
    return CHARTS[name]().to_dict()


def drawn(chart: Any, dark: bool = False, **choices: Any) -> str:
    """Return the SVG after a reader has set these inputs.

    Args:
        chart: a chart or its specification.
        dark: on the dark page.
        choices: name of an input -> its value.
    """
    spec = chart if isinstance(chart, dict) else chart.to_dict()
    names = {param["name"] for param in spec["params"]}
    assert choices.keys() <= names, f"the inputs are {names}"
    chosen = {name: {"value": value} for name, value in choices.items()}
    params = [param | chosen.get(param["name"], {}) for param in spec["params"]]
    spec = {**spec, "params": params, "config": theme_config(dark)}
    svg = converter().vegalite_to_svg(spec)
    return html.unescape(svg)


def marks(svg: str, field: str) -> list[dict[str, str]]:
    """What the labels of all marks but lines say that name the field, as drawn."""
    mark = r'role="graphics-symbol" aria-roledescription="(?!line)'
    labels = re.findall(rf'aria-label="([^"]*: [^"]*)" {mark}', svg)
    found = [
        dict(part.split(": ", 1) for part in label.split("; ") if ": " in part)
        for label in labels
    ]
    return [mark for mark in found if field in mark]


def number(text: str) -> float:
    """Read a number as Vega writes it."""
    return float(text.replace("\N{MINUS SIGN}", "-").replace(",", ""))


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colors "#RRGGBB", from 1 to 21."""
    eye = torch.tensor([0.2126, 0.7152, 0.0722])  # how light each color is to it
    darker, lighter = sorted(float(linear_rgb(c) @ eye) for c in (first, second))
    return (lighter + 0.05) / (darker + 0.05)


def linear_rgb(color: str) -> Tensor:
    """("#FF8000") -> (3,), the amounts of light."""
    channels = torch.tensor([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    low = channels <= 0.04045
    return torch.where(low, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
