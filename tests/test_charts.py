"""What holds for every interactive chart, and how a chart is shown and stored."""

import base64
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import altair
import jsonschema
import numpy as np
import pytest
import torch
from drawn_charts import (
    CHARTS,
    DE,
    EN,
    LENGTHS,
    PLANS,
    SRC,
    STEPS,
    TGT,
    TOKENS,
    VOCABULARY,
    contrast,
    draw,
    drawn,
    make_model,
    sample,
    score,
    two_models,
)
from PIL import Image

from transformer_book.charts import Branch, mime_bundle
from transformer_book.charts.theme import theme_config
from transformer_lib import charts
from transformer_lib.plots.palette import DARK, LIGHT

PHONE = 345  # pixels that a page of 390 leaves to a chart

every_chart = pytest.mark.parametrize("name", CHARTS)


def test_every_chart_has_a_sample_here() -> None:
    found = {n for n in charts.__all__ if n.endswith(("_explorer", "_tree"))}
    assert found == set(CHARTS)


@every_chart
def test_a_chart_is_valid_vega_lite(name: str) -> None:
    altair.Chart.from_dict(sample(name), validate=True)


@pytest.mark.parametrize("dark", [False, True])
def test_the_theme_is_valid_vega_lite(dark: bool) -> None:
    spec = {**sample("schedule_explorer"), "config": theme_config(dark)}
    altair.Chart.from_dict(spec, validate=True)
    with pytest.raises(jsonschema.ValidationError):
        altair.Chart.from_dict({**spec, "params": [{"name": 7}]}, validate=True)


@every_chart
def test_a_stored_chart_has_its_picture_and_its_text_and_needs_no_network(name) -> None:
    bundle = mime_bundle(CHARTS[name](), "What it shows.")
    mime, text, picture = bundle
    assert re.fullmatch(r"application/vnd\.vegalite\.v\d\+json", mime)
    assert bundle[text] == bundle[mime]["description"] == "What it shows."
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(bundle[picture]))))
    _, counts = np.unique(pixels.reshape(-1), return_counts=True)
    assert len(counts) > 20 and counts.max() < 0.97 * pixels.size  # not an empty sheet
    stored = json.dumps({**bundle[mime], "$schema": ""})
    assert "http" not in stored and '"url"' not in stored
    assert len(stored) < 120_000


def other(param: dict) -> object:
    """A value of an input that it does not have yet."""
    bind, value = param["bind"], param.get("value")
    if bind["input"] == "checkbox":
        return not value
    if bind["input"] == "range":
        return bind["max"] if value != bind["max"] else bind["min"]
    value = next(o for o in bind["options"] if o is not None and o != value)
    # A selection of points takes the values of its fields.
    return [{param["select"]["fields"][0]: value}] if "select" in param else value


@every_chart
def test_a_chart_answers_every_input_and_fits_a_phone(name: str) -> None:
    spec = sample(name)
    first = drawn(spec)
    inputs = [param for param in spec["params"] if "bind" in param]
    assert inputs
    # Vega's own signals: an input of such a name would change the size of the drawing.
    own = {"width", "height", "padding", "autosize", "background"}
    assert own.isdisjoint(param["name"] for param in spec["params"])
    others = {param["name"]: other(param) for param in inputs}
    for name in others:
        svg = drawn(spec, **{name: others[name]})
        assert float(re.search(r'<svg[^>]* width="([\d.]+)"', svg)[1]) <= PHONE
        if svg == first:  # perhaps it counts only where something else is chosen
            assert any(
                drawn(spec, **{key: value})
                != drawn(spec, **{key: value, name: others[name]})
                for key, value in others.items()
                if key != name
            ), f"{name} does nothing"


@every_chart
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_from_the_page_and_from_the_cells(name: str, palette) -> None:
    svg = drawn(sample(name), dark=palette is DARK)
    colors = re.findall(r'<text.*?fill="(#\w{6})"', svg)
    assert len(colors) == svg.count("<text") > 3
    assert min(contrast(color, palette.page) for color in colors) > 4.5
    assert (
        min(contrast(palette.ink, cell) for cell in (palette.shown, palette.hidden))
        > 4.5
    )


@every_chart
def test_the_pages_table_finds_its_columns_in_every_row(name: str) -> None:
    spec = sample(name)
    rows = spec["data"]["values"]
    columns = [field for field, heading in spec["usermeta"]["columns"] if heading]
    assert rows and columns and all(row.keys() >= set(columns) for row in rows)


PICTURED = "mask_explorer"  # drawing every chart would take long


def print_digests() -> None:
    digests = {}
    for name, make in CHARTS.items():
        make()  # names must not count the charts made before
        chart = make()
        stored = mime_bundle(chart, "Masks.") if name == PICTURED else chart.to_dict()
        digests[name] = hashlib.sha256(json.dumps(stored).encode()).hexdigest()
    print(json.dumps(digests))


@pytest.mark.slow
def test_another_process_stores_the_same_bytes(capsys: pytest.CaptureFixture) -> None:
    print_digests()
    other_process = subprocess.run(
        [sys.executable, "-c", "import test_charts; test_charts.print_digests()"],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other_process.stdout == capsys.readouterr().out


def test_drawing_libraries_are_imported_only_for_charts_and_plots() -> None:
    code = """
import sys, transformer_lib
[getattr(transformer_lib, name) for name in transformer_lib.__all__]
import transformer_book.charts.theme
print([m for m in ("altair", "matplotlib", "IPython") if m in sys.modules])
"""
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert printed.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'pie_chart'"):
        charts.pie_chart  # noqa: B018


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list:
    calls = []
    monkeypatch.setattr("IPython.display.display", lambda *a, **k: calls.append((a, k)))
    return calls


def test_show_displays_the_bundle(shown: list) -> None:
    charts.show(charts.mask_explorer(EN, DE), alt="Grid of masks.")
    [((bundle,), keywords)] = shown
    assert keywords == {"raw": True}
    assert bundle["text/plain"] == "Grid of masks." and "image/png" in bundle


def test_colab_gets_a_live_chart(shown: list, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "google.colab", object())
    live = []
    monkeypatch.setattr(
        "IPython.display.display", lambda chart: live.append(chart._repr_mimebundle_())
    )
    charts.show(charts.mask_explorer(EN, DE), alt="Grid of masks.")
    assert "vegaEmbed" in live[0]["text/html"]
    assert "Grid of masks." in live[0]["text/html"]


@pytest.mark.parametrize("alt", ["", "  ", "x" * 151])
def test_an_alt_text_is_needed(alt: str, shown: list) -> None:
    with pytest.raises(ValueError, match=f"1 to 150 characters, not {len(alt)}"):
        charts.show(charts.mask_explorer(EN, DE), alt=alt)
    assert not shown


def test_without_ipython_show_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(ImportError, match="needs IPython: pip install ipython"):
        charts.show(charts.mask_explorer(EN, DE), alt="Grid of masks.")


def test_without_a_converter_a_chart_is_stored_without_its_picture(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    bundle = mime_bundle(charts.mask_explorer(EN, DE), "Grid of masks.")
    assert len(bundle) == 2 and "image/png" not in bundle


def test_a_large_chart_stays_small_because_numbers_are_rounded() -> None:
    tokens = [f"token{i}" for i in range(12)]
    layers = {f"layer {i}": torch.full((8, 12, 12), 1 / 12) for i in range(6)}
    chart = charts.attention_explorer(layers, tokens, tokens)
    assert chart.to_dict()["data"]["values"][0]["weights"] == " ".join(["0.083"] * 12)
    bundle = mime_bundle(chart, "A large chart.")
    assert len(json.dumps(bundle, indent=1)) < 200_000


MAPS = draw(5, 2, 3).softmax(dim=-1)
Q, K = ["<bos>", "cat"], ["die", "Katze", "die"]

TWO = two_models()["trained"]
OTHER_HEADS = {"encoder.layers.0.self_attn": torch.ones(1, 2, 3, 3) / 3}
# fmt: off
BAD_INPUT = [
    ("attention_explorer", (MAPS[0], Q, K), r"3 axes.*\(2, 3\)"),
    ("attention_explorer", (MAPS, K, Q), "2 rows .queries., but 3 q_tokens"),
    ("attention_explorer", (MAPS + 1, Q, K), r"0\.\.1, but go from 1"),
    ("attention_explorer", ({"a": MAPS, "b": MAPS[:2]}, Q, K), "5 heads.* 'b' has 2"),
    ("attention_explorer", (MAPS, Q, K, 5), r"head must be in 0\.\.4, not 5"),
    ("attention_explorer", (MAPS, Q, K, -1), r"head must be in 0\.\.4, not -1"),
    ("batch_explorer", ({}, LENGTHS), "at least 1 plan"),
    ("batch_explorer", (PLANS, LENGTHS), "8 batches, but plan 'file' has 2"),
    ("beam_tree", ([],), "at least 1 step"),
    ("beam_tree", ([[STEPS[0][0], Branch(("b",), -0.1, "kept")]],),
     r"step 1: -0\.1 stands after -0\.5"),
    ("beam_tree", ([[Branch(("a",), -0.5, "lost")]],), "one of kept, .* not lost"),
    ("beam_tree", ([STEPS[0], [Branch(("<eos>", "x"), -4.0, "kept")]],),
     r"step 2: .*'<eos>', 'x'.* not kept"),
    ("cache_explorer", (make_model(), SRC, TGT, TOKENS[::-1]), "5 source ids, but 4"),
    ("depth_explorer", ({"gradient": {3: {"post": torch.ones(2)}}},),
     "3 layers, but gradient of 'post' has 2"),
    ("depth_explorer", ({"gradient": {3: {"post": MAPS}}},), "gradient of 'post'"),
    ("divisor_explorer", (draw(3, 2), draw(3, 2), Q), "3 rows .*, but 2 q_tokens"),
    ("head_type_explorer", ({},), "at least 1 weight"),
    ("head_type_explorer", ({"a": {"same": {"cross": 1.2}}},), r"in 0\.\.1, .*cross"),
    ("mask_explorer", (K, []), "3 source and 0 target tokens"),
    ("model_explorer", (make_model(), SRC, TGT, TOKENS, VOCABULARY[1:]),
     "11 token ids, but 10 names"),
    ("model_explorer", (make_model(), SRC, TGT, TOKENS[::-1], VOCABULARY),
     "5 source ids, but 4 names"),
    ("position_explorer", (torch.zeros(4, 3),), "even to form pairs, not 3"),
    ("schedule_explorer", (79,), "at least 80, not 79"),
    ("score_explorer", ({},), "at least 1 group"),
    ("score_explorer", ({"t": {"a": [score("BLEU", 1)], "b": [score("x", 1)]}},),
     r"'b' has the scores \['x'\], not \['BLEU'\]"),
    ("sentence_explorer", ({},), "not {}"),
    ("sentence_explorer", ({"a": TWO, "b": TWO[:1]},), "not {'a': 2, 'b': 1}"),
    ("sentence_explorer", ({"a": TWO, "b": TWO[::-1]},), "'b' has another sentence 0"),
    ("sentence_explorer", ({"a": [replace(TWO[0], maps={"encoder.self_attn": MAPS})]},),
     "'encoder.self_attn' is no attention"),
    ("sentence_explorer", ({"a": [replace(TWO[0], maps={"encoder.layers.0.x": 0})]},),
     "'encoder.layers.0.x' is no attention"),
    ("sentence_explorer", ({"a": [replace(TWO[0], source=["b", "<eos>"])]},),
     r"3 rows \(queries\), but 2 q_tokens"),
    ("sentence_explorer", ({"a": TWO[:1], "b": [replace(TWO[0], maps=OTHER_HEADS)]},),
     "3 heads, but encoder.layers.0.self_attn has 2"),
    ("similarity_explorer", ({}, K), "at least 1 layer"),
    ("similarity_explorer", ({"a": draw(3, 5)}, Q), "2 tokens, but states 'a' has 3"),
    ("similarity_explorer", ({"a": torch.ones(3)}, K), "states 'a'"),
    ("similarity_explorer", ({"a": torch.eye(3)[:, :2]}, K), "position 2 is zero"),
]
# fmt: on


@pytest.mark.parametrize(("name", "given", "message"), BAD_INPUT)
def test_bad_input_is_refused_with_both_numbers(name, given, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(charts, name)(*given)
