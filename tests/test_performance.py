"""The page of measured speeds says what the stored results say, and nothing else."""

from __future__ import annotations

import re
from html import unescape

import pytest
from built_site import SITE
from docutils import nodes

from book_tools.speed_plot import speed_plot
from book_tools.sphinx_performance import (
    OURS,
    DecodePrecision,
    DecodeSpeed,
    TrainSpeed,
    read,
    settings,
)

PARTS = (TrainSpeed, DecodeSpeed, DecodePrecision)  # as on the page
LIBRARIES = {OURS: 1.0, "other": 2.5, f"{OURS}, no cache": 3.25}
LIBRARIES |= {f"{OURS}, bfloat16": 0.5, f"{OURS}, int8": 0.4}
DECODED = {
    "machine": {"processor": "P", "threads": 2, "torch": "1", "python": "3"},
    "measured": dict.fromkeys(
        ("small", "base"), {"bytes_per_second": 3e10, "flops": 9e10}
    ),
    "configs": dict.fromkeys(
        ("small", "base"),
        {
            "d_model": 8,
            "n_encoder_layers": 3,
            "n_decoder_layers": 2,
            "tgt_vocab_size": 8000,
        },
    ),
    "rows": [
        {"model": model, "batch": 1, "n_beams": 4, "n_tokens": 64, "bound_ms": 0.25}
        | {"library": library, "ms_per_token": 1.5, "ours_is": ratio}
        for model in ("small", "base")
        for library, ratio in LIBRARIES.items()
    ],
    "quality": [
        {"model": "grammar", "precision": precision, "bleu": bleu}
        for precision, bleu in (("float32", 99.81), ("bfloat16", 99.5), ("int8", 98.0))
    ],
}


def cells(part: nodes.Node) -> list[str]:
    return [entry.astext() for entry in part.findall(nodes.entry)]


def cells_of(kind: type, result: dict) -> list[str]:
    return [text for part in kind.parts(None, result) for text in cells(part)]


def test_the_page_holds_every_number_of_the_stored_results() -> None:
    page = unescape((SITE / "book/performance.html").read_text(encoding="utf-8"))
    page = page.replace("’", "'")  # Sphinx sets what was typed
    found = [
        re.sub(r"<.*?>", "", cell).strip()
        for cell in re.findall(r"<t[dh].*?>(.*?)</t[dh]>", page, re.DOTALL)
    ]
    stored = [(kind, read(kind.file)) for kind in PARTS]
    expected = [cells_of(kind, result) for kind, result in stored if result]
    assert found == [text for part in expected for text in part]
    assert len(found) > 20
    missing = sum(result is None for _, result in stored)
    assert page.count("No results are stored yet") == missing


def test_ratios_of_training_are_in_the_table() -> None:
    result = read("train_speed.json")
    shown = cells_of(TrainSpeed, result)
    assert {row["library"] for row in result["rows"]} > {OURS}
    for row in result["rows"]:
        assert f"{row['tokens_per_second']:,}" in shown
        assert f"{row['ours_is']:.2f} ×" in shown


def test_decoding_gets_a_row_for_each_setting() -> None:
    head = ["What is decoded", "ms per token", "lower bound", "other"]
    row = ["64 tokens, 1 sentence, 4 beams", "1.50", "0.25", "2.50 ×"]
    again = ["All read again", f"{OURS}, no cache"]
    again += ["64 tokens, 1 sentence, 4 beams", "3.25 ×"]
    assert cells_of(DecodeSpeed, DECODED) == [*head, *row, *again] * 2
    text = "".join(part.astext() for part in DecodeSpeed.parts(None, DECODED))
    assert "30 GB/s and reaches 90 GFLOP/s" in text
    assert text.count("<svg") == 2


def test_fewer_bits_are_shown_with_their_gain_and_their_bleu() -> None:
    shown = cells_of(DecodePrecision, DECODED)
    assert shown[3:6] == ["Small model, 64 tokens, 1 sentence, 4 beams", *GAINS]
    assert shown[-4:] == ["grammar", "99.81", "99.50", "98.00"]


GAINS = ["2.00 ×", "2.50 ×"]


def test_settings_come_in_order_and_keep_libraries_apart() -> None:
    rows = [
        {"n_tokens": n, "batch": b, "n_beams": k, "library": name}
        for n, b, k, name in [(9, 1, 4, "x"), (9, 1, 1, "x"), (9, 1, 1, "y")]
    ]
    found = [(name, list(libraries)) for name, libraries in settings(rows)]
    assert found == [
        ("9 tokens, 1 sentence, greedy", ["x", "y"]),
        ("9 tokens, 1 sentence, 4 beams", ["x"]),
    ]


def test_the_plot_puts_every_ratio_at_its_place() -> None:
    groups = [("one & only", {"a": 1.0, "b": 4.0}), ("other", {"a": 1.0, "b": 0.5})]
    figure = speed_plot("Times", groups, ["a", "b"])
    svg = figure.astext()
    assert 'aria-label="Times"' in svg
    assert "one &amp; only" in svg
    marks = re.findall(r'translate\(([\d.]+),([\d.]+)\)" d=.*?<title>(\w)<', svg)
    x = {(float(y), name): float(place) for place, y, name in marks[:4]}
    rows = sorted({y for y, _ in x})
    half, one, four = x[rows[1], "b"], x[rows[0], "a"], x[rows[0], "b"]
    assert x[rows[1], "a"] == one
    assert four - one == pytest.approx(2 * (one - half), abs=0.3)
    axis = dict(
        re.findall(r'<text x="([\d.]+)" y="16" text-anchor="middle">(.*?)<', svg)
    )
    assert axis[f"{one:.1f}"] == "1"
    assert axis[f"{half:.1f}"] == "1/2"
