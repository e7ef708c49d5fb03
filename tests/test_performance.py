"""The page of measured speeds shows what is stored, and no number beside it."""

import importlib.resources
import json

import nbformat
import pytest

from book._ext.toc import ROOT

PAGE = ROOT / "book" / "performance.ipynb"
RESULTS = ROOT / "transformer_book" / "experiments" / "results"


def test_its_text_holds_no_measured_number():
    cells = nbformat.read(PAGE, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    stored = {
        f"{row[key]:.2f}"
        for path in RESULTS.glob("*_speed.json")
        for row in json.loads(path.read_text(encoding="utf-8"))["rows"]
        for key in ("ours_is", "ms_per_token", "bound_ms")
        if key in row
    }
    stored -= {"2.00"}  # the text says what 2.00 × means
    assert len(stored) > 50
    assert not [number for number in stored if number in text]


@pytest.fixture(params=[None, "CTranslate2"], ids=["all", "without CTranslate2"])
def results(request, tmp_path, monkeypatch):
    """What the page reads: what is stored, or as if one library were not installed."""
    folder = tmp_path / "results"
    folder.mkdir()
    found = {}
    for path in RESULTS.glob("*_speed.json"):
        found[path.stem] = result = json.loads(path.read_text(encoding="utf-8"))
        rows = [row for row in result["rows"] if row["library"] != request.param]
        result["rows"] = rows
        (folder / path.name).write_text(json.dumps(result), encoding="utf-8")
    monkeypatch.setattr(importlib.resources, "files", lambda package: tmp_path)
    return found


def run_page():
    """The tables that the page shows, as text."""
    shown = []
    names = {}
    for cell in nbformat.read(PAGE, as_version=4).cells:
        if cell.cell_type == "code":
            exec(cell.source.replace("%pip", "pass  #"), names)
            names["display"] = lambda table: shown.append(table.data)
    return "\n".join(shown)


def test_every_ratio_and_time_is_in_a_table(results):
    shown = run_page()
    for row in results["train_speed"]["rows"] + results["decode_speed"]["rows"]:
        if "tokens_per_second" in row:
            assert f"{row['tokens_per_second']:,}" in shown
        if row["library"] != "transformer_lib":
            assert f"{row['ours_is']:.2f}\N{NO-BREAK SPACE}×" in shown
        elif "ms_per_token" in row:
            assert f"{row['ms_per_token']:.2f}" in shown
            assert f"{row['bound_ms']:.2f}" in shown
