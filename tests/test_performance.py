"""The page of measured speeds shows what is stored, and no number beside it."""

import importlib.resources
import json
import shutil
import statistics
from itertools import product

import nbformat
import numpy as np
import pytest

from book._ext.toc import ROOT

PAGE = ROOT / "book" / "performance.ipynb"
RESULTS = ROOT / "transformer_book" / "experiments" / "results"
STORED = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in RESULTS.glob("*_speed.json")
}
OURS, PEER = "transformer_lib", "Hugging Face Marian"
WITHOUT_ENGINE = "own modules", "compiled modules"
SETTING = ("precision", "model", "batch", "n_beams", "n_tokens")


def ratios(rows):
    """How many times as long as ours each row's library takes, and which row it is."""
    rounds = {"ms_per_token", "seconds"} & rows[0].keys()
    [key] = rounds
    ours = {
        tuple(map(row.get, SETTING)): row[key] for row in rows if row["library"] == OURS
    }
    for row in rows:
        if row["library"] != OURS:
            ratio = np.divide(row[key], ours[tuple(map(row.get, SETTING))])
            yield row, f"{statistics.median(ratio):.2f}"


def test_its_text_holds_no_measured_number():
    cells = nbformat.read(PAGE, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    numbers = {ratio for each in STORED.values() for _, ratio in ratios(each["rows"])}
    for row in STORED["decode_speed"]["rows"]:
        numbers |= {f"{statistics.median(row['ms_per_token']):.2f}"}
        numbers |= {f"{row['bound_ms']:.2f}"}
    assert len(numbers) > 50
    numbers -= {"2.00"}  # the text says what 2.00 × means
    assert not [number for number in numbers if number in text]


def run_page():
    """The tables that the page shows, as text."""
    shown = []
    names = {}
    for cell in nbformat.read(PAGE, as_version=4).cells:
        if cell.cell_type == "code":
            exec(cell.source.replace("%pip", "pass  #"), names)
            names["display"] = lambda table: shown.append(table.data)
    return "\n".join(shown)


@pytest.mark.parametrize("left_out", [None, "CTranslate2"])
def test_every_ratio_and_time_is_in_a_table(left_out, tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    for name, result in STORED.items():
        rows = [row for row in result["rows"] if row["library"] != left_out]
        text = json.dumps(result | {"rows": rows})
        (tmp_path / "results" / f"{name}.json").write_text(text, encoding="utf-8")
    for name in "processes.json", "corpus.json":
        shutil.copy(RESULTS / name, tmp_path / "results")
    monkeypatch.setattr(importlib.resources, "files", lambda package: tmp_path)
    shown = run_page()
    for row in json.loads((RESULTS / "processes.json").read_text())["rows"]:
        gain = statistics.median(np.divide(row["seconds"]["1"], row["seconds"]["2"]))
        assert f"{gain:.2f}\N{NO-BREAK SPACE}× (" in shown
    for row in json.loads((RESULTS / "corpus.json").read_text())["rows"]:
        for way in row.keys() & {"first start", "next start", "in lists"}:
            assert f"{row[way]['memory'] / 2**20:,.0f} MiB, " in shown
    for result in STORED.values():
        for row, ratio in ratios(result["rows"]):
            if row["library"] not in (left_out, *WITHOUT_ENGINE):
                assert f"{ratio}\N{NO-BREAK SPACE}× (" in shown
    rows = STORED["decode_speed"]["rows"]
    peers = [row for row in rows if row["library"] == PEER]
    for row, peer in product(rows, peers):
        if row["library"] in WITHOUT_ENGINE and all(
            row[x] == peer[x] for x in SETTING[1:]
        ):
            faster = np.divide(peer["ms_per_token"], row["ms_per_token"])
            assert f"{statistics.median(faster):.2f}\N{NO-BREAK SPACE}× (" in shown
    for row in STORED["train_speed"]["rows"]:
        rate = STORED["train_speed"]["n_tokens"] / statistics.median(row["seconds"])
        assert f"{rate:,.0f}" in shown
    for row in STORED["decode_speed"]["rows"]:
        if row["library"] == OURS:
            assert f"{statistics.median(row['ms_per_token']):.2f}" in shown
            assert f"{row['bound_ms']:.2f}" in shown
