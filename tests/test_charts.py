"""Interactive charts hold the right numbers, and what they draw follows the inputs.

A chart is judged by the SVG that Vega draws from it: every cell there carries a label
such as "query: 0; key: 2; reason: hidden: future".
"""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import altair
import jsonschema
import numpy as np
import pytest
import torch
import vl_convert

from transformer_lib.charts import explorers as charts
from transformer_lib.charts import parts as chart_parts
from transformer_lib.charts.theme import theme_config
from transformer_lib.model.embeddings import sinusoid_table
from transformer_lib.model.masks import causal_mask, padding_mask

SOURCE = ["die", "Katze", "die"]  # a token twice, as in real sentences
TARGET = ["<bos>", "cat"]
SIDES = {"source": SOURCE, "target": TARGET}
N_HEADS = 5


def maps(seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(N_HEADS, 2, 3, generator=generator).softmax(dim=-1)


def make(kind: str):
    if kind == "attention":
        two = {"layer 0": maps(0), "layer 1": maps(1)}
        return charts.attention_explorer(two, TARGET, SOURCE)
    if kind == "masks":
        return charts.mask_explorer(SOURCE, TARGET)
    return charts.position_explorer(sinusoid_table(7, 4))


KINDS = ("attention", "masks", "positions")


def specification(bundle: dict) -> dict:
    (mime,) = (key for key in bundle if "vegalite" in key)
    return bundle[mime]


def drawn(chart, **choices) -> str:
    """The SVG after a reader has set these inputs."""
    spec = chart.to_dict()
    for param in spec["params"]:
        if param["name"] in choices:
            param["value"] = choices.pop(param["name"])
    assert not choices, f"no such inputs: {choices}"
    return vl_convert.vegalite_to_svg(spec)


def cells(svg: str, field: str) -> dict[tuple[int, int], str]:
    """(query, key) -> what the label of the drawn cell says about a field."""
    labels = re.findall(r'aria-label="(key: [^"]*)" role="graphics-symbol"', svg)
    found = {}
    for label in labels:
        parts = dict(part.split(": ", 1) for part in label.split("; "))
        if field in parts:
            found[int(parts["query"]), int(parts["key"])] = parts[field]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_chart_is_valid_vega_lite(kind: str) -> None:
    spec = specification(chart_parts.mime_bundle(make(kind), "A chart."))
    altair.Chart.from_dict(spec, validate=True)
    with pytest.raises(jsonschema.ValidationError):
        altair.Chart.from_dict({**spec, "params": [{"name": 7}]}, validate=True)


def test_the_chosen_head_and_layer_are_drawn_queries_down_keys_across() -> None:
    svg = drawn(make("attention"), layer="layer 1", head=3)
    found = {cell: float(weight) for cell, weight in cells(svg, "weight").items()}
    expected = maps(1)[3]
    assert set(found) == set(product(range(2), range(3)))
    for (query, key), weight in found.items():
        assert weight == pytest.approx(expected[query, key].item(), abs=6e-4)


def test_a_single_layer_needs_no_choice_of_layer() -> None:
    chart = charts.attention_explorer(maps(), TARGET, SOURCE)
    bound = [param["name"] for param in chart.to_dict()["params"] if "bind" in param]
    assert bound == ["head", "row"]
    assert len(cells(drawn(chart, head=4), "weight")) == 6


def test_weights_keep_the_scale_from_0_to_1() -> None:
    faint = charts.attention_explorer(maps() / 100, TARGET, SOURCE)
    assert "with values from 0.0 to 1.0" in drawn(faint)


def test_repeated_tokens_stay_apart() -> None:
    svg = drawn(make("attention"))
    assert len(cells(svg, "weight")) == 6
    assert svg.count(">die</text>") == 2


def test_every_row_can_be_chosen_without_a_mouse() -> None:
    (row,) = (p for p in make("attention").to_dict()["params"] if p["name"] == "row")
    assert row["bind"]["options"] == [None, 0, 1]
    assert row["bind"]["labels"] == ["all", "0: <bos>", "1: cat"]


@pytest.mark.parametrize("block", charts.BLOCKS)
def test_masks_hold_what_the_library_computes_in_every_combination(block: str) -> None:
    q_side, k_side = charts.BLOCKS[block]
    q_len, k_len = len(SIDES[q_side]), len(SIDES[k_side])
    rows = [r for r in make("masks").to_dict()["data"]["values"] if r["block"] == block]
    decoder = block == "decoder self-attention"
    assert len(rows) == 2 * (2 if decoder else 1) * (k_len + 1)
    for row in rows:
        ids = torch.full((1, k_len), 9)
        ids[0, : row["real keys"]] = 5
        mask = torch.ones(1, 1, q_len, k_len, dtype=torch.bool)
        if row["padding mask"]:
            mask = mask & padding_mask(ids, pad_id=9)
        if row["causal mask"]:
            mask = mask & causal_mask(k_len)
        stored = [[cell == "a" for cell in line] for line in row["cells"].split()]
        assert torch.equal(torch.tensor(stored), mask[0, 0]), row


@pytest.mark.parametrize("block", charts.BLOCKS)
@pytest.mark.parametrize("hide_padding", [False, True])
@pytest.mark.parametrize("hide_future", [False, True])
@pytest.mark.parametrize(("source", "target"), [(2, 1), (0, 2), (3, 0)])
def test_the_drawn_mask_follows_the_inputs(
    block: str, hide_padding: bool, hide_future: bool, source: int, target: int
) -> None:
    lengths = {"source": source, "target": target}
    choices = {"hide_padding": hide_padding, "hide_future": hide_future, **lengths}
    svg = drawn(make("masks"), block=block, **choices)
    q_side, k_side = charts.BLOCKS[block]
    causal = hide_future and block == "decoder self-attention"
    expected = {}
    for query, key in product(range(len(SIDES[q_side])), range(len(SIDES[k_side]))):
        padding = hide_padding and key >= lengths[k_side]
        future = causal and key > query
        why = ["padding key"] * padding + ["future"] * future
        expected[query, key] = "hidden: " + ", ".join(why) if why else "may attend"
    assert cells(svg, "reason") == expected
    signs = {cell: "×" if why[0] == "h" else "✓" for cell, why in expected.items()}
    assert cells(svg, "sign") == signs
    n_padding = sum(len(SIDES[side]) - lengths[side] for side in (q_side, k_side))
    assert svg.count(">&lt;pad&gt;</text>") == n_padding


def contrast(first: str, second: str) -> float:
    def luminance(color: str) -> float:
        channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = ((channels + 0.055) / 1.055) ** 2.4
        return float(linear @ [0.2126, 0.7152, 0.0722])

    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize(("dark", "page"), [(False, "#FFFFFF"), (True, "#14181E")])
def test_text_stands_out_from_the_page_and_from_the_cells(dark, page: str) -> None:
    theme = theme_config(dark)
    behind = [page, *theme["range"]["category"]]
    assert min(contrast(theme["text"]["color"], color) for color in behind) > 4.5
    assert contrast(theme["axis"]["labelColor"], page) > 4.5


def test_dot_products_belong_to_the_chosen_position() -> None:
    table = sinusoid_table(7, 4)
    svg = drawn(make("positions"), chosen=5)
    found = re.findall(r"other position: (\d); dot product: ([\d.]+)", svg)
    assert [int(position) for position, _ in found] == list(range(7))
    dots = [float(dot) for _, dot in found]
    np.testing.assert_allclose(dots, table @ table[5], atol=1e-3)


BUNDLES = "import test_charts as t; t.print_digests()"


def print_digests() -> None:
    digests = {}
    for kind in KINDS:
        make(kind)  # names must not count the charts made before
        bundle = chart_parts.mime_bundle(make(kind), "A chart.")
        digests[kind] = hashlib.sha256(json.dumps(bundle).encode()).hexdigest()
    print(json.dumps(digests))


def test_another_process_stores_the_same_bytes(capsys: pytest.CaptureFixture) -> None:
    print_digests()
    env = {**os.environ, "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1"}
    other = subprocess.run(
        [sys.executable, "-c", BUNDLES],
        cwd=Path(__file__).parent,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout == capsys.readouterr().out


def test_show_stores_a_specification_a_picture_and_the_alt_text(monkeypatch) -> None:
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda *a, **k: shown.append((a, k)))
    charts.show(make("masks"), alt="Grid of masks.")
    ((bundle,), keywords) = shown[0]
    assert keywords == {"raw": True}
    assert bundle["text/plain"] == "Grid of masks."
    mime = next(iter(bundle))
    assert re.fullmatch(r"application/vnd\.vegalite\.v\d\+json", mime)
    assert specification(bundle)["description"] == "Grid of masks."
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")


def test_colab_gets_a_live_chart(monkeypatch) -> None:
    shown = []
    monkeypatch.setitem(sys.modules, "google.colab", object())
    monkeypatch.setattr(
        "IPython.display.display", lambda c: shown.append(c._repr_mimebundle_())
    )
    charts.show(make("masks"), alt="Grid of masks.")
    html = shown[0]["text/html"]
    assert "vegaEmbed" in html and "Grid of masks." in html


def test_stored_numbers_are_rounded() -> None:
    chart = charts.attention_explorer(torch.full((1, 2, 3), 1 / 3), TARGET, SOURCE)
    rows = chart.to_dict()["data"]["values"]
    assert [row["weights"] for row in rows] == ["0.333 0.333 0.333"] * 2


def test_stored_charts_stay_small() -> None:
    tokens = [f"token{i}" for i in range(12)]
    large = torch.full((8, 12, 12), 1 / 12)
    layers = {f"layer {i}": large for i in range(6)}
    chart = charts.attention_explorer(layers, tokens, tokens)
    bundle = chart_parts.mime_bundle(chart, "A large chart.")
    assert len(json.dumps(bundle, indent=1)) < 200_000


@pytest.mark.parametrize("alt", ["", "  ", "x" * 151])
def test_an_alt_text_is_needed(alt: str) -> None:
    with pytest.raises(ValueError, match=f"1 to 150 characters, not {len(alt)}"):
        charts.show(make("masks"), alt=alt)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: charts.attention_explorer(maps()[0], TARGET, SOURCE),
            r"3 axes.*\(2, 3\)",
        ),
        (
            lambda: charts.attention_explorer(maps(), SOURCE, TARGET),
            "2 rows .queries., but 3 q_tokens",
        ),
        (
            lambda: charts.attention_explorer(maps() + 1, TARGET, SOURCE),
            r"0\.\.1, but go from 1",
        ),
        (
            lambda: charts.attention_explorer(
                {"a": maps(), "b": maps()[:2]}, TARGET, SOURCE
            ),
            "5 heads, but maps 'b' has 2",
        ),
        (
            lambda: charts.mask_explorer(SOURCE, []),
            "3 source and 0 target tokens",
        ),
        (
            lambda: charts.position_explorer(torch.zeros(4, 3)),
            "even to form pairs, not 3",
        ),
    ],
)
def test_bad_input_is_refused_with_both_numbers(draw, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()
