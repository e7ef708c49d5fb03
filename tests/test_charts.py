"""What holds for every interactive chart, and how a chart is shown and stored."""

import base64
import io
import json
import re
import sys

import altair
import numpy as np
import pytest
import torch
from drawn_charts import (
    CHARTS,
    DE,
    EN,
    contrast,
    draw,
    drawn,
    sample,
)
from PIL import Image

from transformer_book import charts
from transformer_book.charts.machine import MIME, describe
from transformer_book.charts.theme import theme_config
from transformer_lib import load
from transformer_lib.plots.palette import DARK, LIGHT

PHONE = 345  # pixels that a page of 390 leaves to a chart
ALT = "Grid of masks."

every_chart = pytest.mark.parametrize("name", CHARTS)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list:
    calls = []
    monkeypatch.setattr("transformer_book.charts.machine.display_bundle", calls.append)
    return calls


def test_every_chart_has_a_sample_here():
    assert {name for name in vars(charts) if name.endswith("_explorer")} == set(CHARTS)


@every_chart
def test_a_stored_chart_is_valid_and_has_its_picture_and_its_text(name: str):
    bundle = charts.mime_bundle(CHARTS[name](), ALT)
    assert bundle == charts.mime_bundle(CHARTS[name](), ALT)  # the same bytes
    mime, text, picture = bundle
    assert re.fullmatch(r"application/vnd\.vegalite\.v\d\+json", mime)
    altair.Chart.from_dict(bundle[mime], validate=True)
    assert bundle[text] == bundle[mime]["description"] == ALT
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(bundle[picture]))))
    _, counts = np.unique(pixels.reshape(-1), return_counts=True)
    assert len(counts) > 20 and counts.max() < 0.97 * pixels.size  # not an empty sheet
    stored = json.dumps({**bundle[mime], "$schema": ""})
    assert "http" not in stored and '"url"' not in stored
    assert len(stored) < 120_000
    rows = bundle[mime]["data"]["values"]  # which the page shows as a table
    columns = {field for field, _ in bundle[mime]["usermeta"]["columns"]}
    assert rows and columns and all(row.keys() >= columns for row in rows)


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
def test_a_chart_answers_every_input_and_fits_a_phone(name: str):
    spec = sample(name)
    first = drawn(spec)
    others = {p["name"]: other(p) for p in spec["params"] if "bind" in p}
    # Vega's own signals: an input of such a name would change the size of the drawing.
    own = {"width", "height", "padding", "autosize", "background"}
    assert others and own.isdisjoint(others)
    for name, value in others.items():
        svg = drawn(spec, **{name: value})
        assert float(re.search(r'<svg[^>]* width="([\d.]+)"', svg)[1]) <= PHONE
        # Perhaps it counts only where something else is chosen.
        rest = ({key: others[key]} for key in others if key != name)
        assert svg != first or any(
            drawn(spec, **more) != drawn(spec, **more, **{name: value}) for more in rest
        ), f"{name} does nothing"


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_from_the_page_and_from_the_cells(palette):
    for name in CHARTS:
        svg = drawn(sample(name), dark=palette is DARK)
        colors = re.findall(r'<text.*?fill="(#\w{6})"', svg)
        assert len(colors) == svg.count("<text") > 3, name
        assert min(contrast(color, palette.page) for color in colors) > 4.5, name
    for cell in (palette.shown, palette.hidden):
        assert contrast(palette.ink, cell) > 4.5
    spec = {**sample("divisor_explorer"), "config": theme_config(palette is DARK)}
    altair.Chart.from_dict(spec, validate=True)


# --- showing ------------------------------------------------------------------------


def test_colab_gets_a_live_chart(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", object())
    live = []
    monkeypatch.setattr(
        "IPython.display.display", lambda chart: live.append(chart._repr_mimebundle_())
    )
    charts.show(charts.mask_explorer(EN, DE), alt=ALT)
    assert "vegaEmbed" in live[0]["text/html"] and ALT in live[0]["text/html"]
    with pytest.raises(ValueError, match="alt must say"):
        charts.show(charts.mask_explorer(EN, DE), alt=" ")


@pytest.mark.parametrize("in_colab", [False, True])
def test_every_picture_is_shown_without_a_converter(shown, monkeypatch, in_colab):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    if in_colab:
        monkeypatch.setitem(sys.modules, "google.colab", object())
    assert "image/png" not in charts.mime_bundle(charts.mask_explorer(EN, DE), ALT)
    translator = load("grammar")
    trace = charts.trace_translation(translator, "der Hund schläft")
    for at in "", "/decoder/0", "/encoder/0/self_attn/0":
        charts.show_machine(trace, at=at)
        assert trace["text"] in shown[-1]["text/plain"]
        stored = json.loads(shown[-1][MIME]["stored"])
        assert stored["trace"]["source"] == "der Hund schläft"
        assert "image/png" not in shown[-1]
        assert ("text/html" in shown[-1]) == in_colab
    bare = charts.trace_translation(translator, "der Hund schläft", heads={})
    charts.show_machine(bare, at="/encoder/0/self_attn/0")  # its weights are enough
    with pytest.raises(ValueError, match="head 0 is not stored"):
        charts.show_machine(bare, at="/encoder/0/self_attn/0/0")
    with pytest.raises(ValueError, match="options are step, .* not 'steps'"):
        charts.show_machine(trace, steps=1)


EVIL = ["</script><script>alert(1)</script>", "<!--<script>", "<eos>"]


@pytest.mark.parametrize(
    "chart",
    [
        charts.attention_explorer(torch.full((1, 3, 3), 1 / 3), EVIL, EVIL),
        charts.mask_explorer(EVIL, EVIL),
    ],
)
def test_a_token_is_no_script_however_a_chart_is_shown(chart, tmp_path):
    chart.save(tmp_path / "chart.html")
    pages = [(tmp_path / "chart.html").read_text(), chart.to_html()]
    pages += [chart._repr_mimebundle_()["text/html"], chart.to_json()]
    for page in pages:
        assert "alert(1)" in page or EVIL[1][4:] in page  # it is there, and harmless
        assert "script><script>alert" not in page and "<!--<script>" not in page
    assert "<eos>" in charts.mask_explorer(EN, DE).to_json(ensure_ascii=False)


# --- what would be drawn wrongly in silence -----------------------------------------

MAPS = draw(5, 2, 3).softmax(dim=-1)
Q, K = ["<bos>", "cat"], ["die", "Katze", "die"]
NAN = torch.full((2, 2), torch.nan)
# fmt: off
BAD_INPUT = [
    ("attention_explorer", (MAPS, K, Q), r"\(3, 2\) names do not fit .*\(2, 3\)"),
    ("attention_explorer", (MAPS + 1, Q, K), r"0\.\.1, but go from 1"),
    ("attention_explorer", (NAN[None], Q, Q), "can't draw NaN"),
    ("divisor_explorer", (draw(3, 2), draw(3, 2), Q), r"\(2, 2\) names"),
    ("similarity_explorer", ({"a": draw(3, 5)}, Q), r"\(2, 2\) names"),
    ("similarity_explorer", ({"a": torch.eye(3)[:, :2]}, K), "can't draw NaN"),
]
# fmt: on


@pytest.mark.parametrize(("name", "given", "message"), BAD_INPUT)
def test_what_would_be_drawn_wrongly_is_refused(name, given, message: str):
    with pytest.raises(ValueError, match=message):
        getattr(charts, name)(*given).to_dict()


@pytest.mark.parametrize(
    ("at", "where"),
    [
        ("", "the whole"),
        ("/operate", "operate"),
        ("/decoder/2", "decoder, layer 3"),
        ("/encoder/0/self_attn/7", "encoder, layer 1, self-attention, head 8"),
    ],
)
def test_the_machine_is_described_with_counts_from_one(at, where) -> None:
    told = describe({"source": "Ein Hund.", "text": "A dog."}, at)
    assert told == f"The machine ({where}) translates “Ein Hund.” into “A dog.”"
