"""Drawn diagrams: well-formed, in the book's colors, and the same on every run."""

import base64
import io
import re
from xml.etree import ElementTree

import pytest
from PIL import Image

from transformer_book.diagrams import Canvas, model_map
from transformer_book.diagrams.canvas import COLORS, mime_bundle
from transformer_book.diagrams.model_map import PARTS
from transformer_lib.plots.palette import LIGHT


def drawn() -> Canvas:
    canvas = Canvas(200, 100)
    canvas.box(10, 10, 80, 30, "a & b <c>", "query", sub="below")
    canvas.arrow((50, 40), (50, 60), (90, 60), role="key")
    canvas.plus(120, 30)
    canvas.grid(10, 70, [[1.5, -0.004], ["x", ""]], rows=["r"])
    canvas.row(100, 70, ["im", "schnee"], "source")
    return canvas


def test_a_drawing_is_well_formed_and_carries_its_alt_text() -> None:
    root = ElementTree.fromstring(drawn().svg('says "so" & more'))
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'says "so" & more'
    words = [element.text for element in root.iter() if element.text]
    assert {"a & b <c>", "below", "+", "1.5", "0", "x", "r", "im"} <= set(words)


def test_a_number_has_a_real_minus_sign() -> None:
    canvas = Canvas(90, 20)
    canvas.text(0, 9, "-0.66 pre-norm 2-1")
    assert "−0.66 pre-norm 2-1<" in canvas.svg("words")


def test_every_color_is_a_variable_with_the_light_one_behind_it() -> None:
    svg = drawn().svg("x")
    found = dict(re.findall(r"var\(--diagram-(\w+),(#\w{6})\)", svg))
    assert found.items() <= COLORS.items()
    assert found["query"] == LIGHT.roles["query"]
    without = re.sub(r"var\([^)]*\)", "", svg)
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b", without)


def test_the_png_twin_shows_the_same_colors() -> None:
    canvas = Canvas(40, 20)
    canvas.box(0, 0, 40, 20, role="memory", fill=1)
    bundle = mime_bundle(canvas.svg("all teal"), "all teal")
    picture = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))
    middle = picture.convert("RGB").getpixel((30, 15))
    expected = bytes.fromhex(LIGHT.roles["memory"].lstrip("#"))
    assert max(abs(a - b) for a, b in zip(middle, expected, strict=True)) <= 4
    assert bundle["text/plain"] == "all teal"


def test_wrong_use_is_named() -> None:
    with pytest.raises(ValueError, match="alt must say"):
        Canvas(10, 10).show(" ")
    with pytest.raises(ValueError, match="no part is called 'norm'"):
        model_map(["norm"])


@pytest.mark.parametrize("part", PARTS)
def test_lighting_a_part_lights_that_part_and_not_all(part: str) -> None:
    whole, one = model_map().svg("x"), model_map([part]).svg("x")
    assert whole.count("opacity=") < one.count('<g opacity="0.38">')
    nothing = model_map([]).svg("x")
    assert one.count('<g opacity="0.38">') < nothing.count('<g opacity="0.38">')
