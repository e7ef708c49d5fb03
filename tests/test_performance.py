"""The page of measured speeds reads what is stored, and takes what else is measured.

The replay of the notebooks compares its tables with what the stored results give.
"""

import importlib.resources
import json

import matplotlib.pyplot as plt
import nbformat
import pytest

from book_tools.toc import ROOT

PAGE = ROOT / "book" / "performance.ipynb"
RESULTS = ROOT / "transformer_book" / "experiments" / "results"


def test_its_text_holds_no_measured_number():
    texts = [
        cell.source
        for cell in nbformat.read(PAGE, as_version=4).cells
        if cell.cell_type == "markdown"
    ]
    stored = {
        f"{row[key]:.2f}"
        for name in ("train_speed.json", "decode_speed.json")
        for row in json.loads((RESULTS / name).read_text(encoding="utf-8"))["rows"]
        for key in ("ours_is", "ms_per_token", "bound_ms")
        if key in row
    }
    stored -= {"2.00"}  # the text says what 2.00 × means
    assert len(stored) > 50
    assert not [number for number in stored for text in texts if number in text]


# --- the page on other results --------------------------------------------------------


@pytest.fixture
def results(tmp_path, monkeypatch):
    """What is stored, in a folder where a test can change it."""
    folder = tmp_path / "results"
    folder.mkdir()
    for path in RESULTS.glob("*_speed.json"):
        (folder / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(importlib.resources, "files", lambda package: tmp_path)
    return folder


def run_page():
    """The tables that the page shows, as text."""
    shown = []
    names = {}
    for cell in nbformat.read(PAGE, as_version=4).cells:
        if cell.cell_type == "code":
            exec(cell.source.replace("%pip", "pass  #"), names)
            names["display"] = lambda table: shown.append(table.data)
    plt.close("all")
    return "\n".join(shown)


def times(ratio):
    return f"{ratio:.2f}\N{NO-BREAK SPACE}×"


def change(path, edit):
    result = json.loads(path.read_text(encoding="utf-8"))
    edit(result)
    path.write_text(json.dumps(result), encoding="utf-8")


def test_every_ratio_and_time_is_in_a_table(results):
    shown = run_page()
    decoded = json.loads((results / "decode_speed.json").read_text(encoding="utf-8"))
    trained = json.loads((results / "train_speed.json").read_text(encoding="utf-8"))
    for row in trained["rows"]:
        assert f"{row['tokens_per_second']:,}" in shown
        assert times(row["ours_is"]) in shown
    for row in decoded["rows"]:
        if row["library"] == "transformer_lib":
            assert f"{row['ms_per_token']:.2f}" in shown
            assert f"{row['bound_ms']:.2f}" in shown
        elif row["library"].endswith((", bfloat16", ", int8")):
            assert times(1 / row["ours_is"]) in shown
        else:
            assert times(row["ours_is"]) in shown
    for row in decoded["quality"]:
        assert f"{row['bleu']:.2f}" in shown


def test_libraries_models_and_precisions_come_from_the_results(results):
    names = {"small": "tiny", "CTranslate2": "Another", "nn.Transformer": "Old"}
    names |= {"transformer_lib, int8": "transformer_lib, int4"}
    names |= {"CTranslate2, int8": "Another, int8"}

    def rename(result):
        for row in result["rows"]:
            row["model"] = names.get(row["model"], row["model"])
            row["library"] = names.get(row["library"], row["library"])
        for part in (result["configs"], result["measured"]):
            part["tiny"] = part.pop("small")

    change(results / "decode_speed.json", rename)
    shown = run_page()
    assert all(name in shown for name in ("tiny", "Another", "Old", "int4"))
    assert "CTranslate2" not in shown


def test_what_was_not_measured_is_left_out(results):
    def remove(result):
        result["rows"] = [
            row
            for row in result["rows"]
            if row["library"] in ("transformer_lib", "Hugging Face Marian")
        ]
        del result["quality"]

    change(results / "decode_speed.json", remove)
    shown = run_page()
    assert "1024 tokens, 1 sentence, greedy" in shown
    assert "no cache" not in shown and "bfloat16" not in shown.partition("ms per")[2]
