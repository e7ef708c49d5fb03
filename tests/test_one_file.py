"""The chapter that builds the whole Transformer, as one plain Python file."""

import ast
import os
import subprocess
import sys

import nbformat
import pytest

from book_tools import one_file
from book_tools.notebook_parts import code_cells

TRAINING = "\nsteps = 900\n"
TRANSLATION = "A dog is playing in the snow.\n"


@pytest.fixture(scope="module")
def text():
    return one_file.one_file(nbformat.read(one_file.CHAPTER, as_version=4))


def test_it_holds_what_the_chapter_defines_and_no_exercise(text):
    notebook = nbformat.read(one_file.CHAPTER, as_version=4)
    names = {
        name.rpartition(".")[2]
        for _, cell in code_cells(notebook)
        for name in [cell.metadata.get("defines", [])]
        for name in ([name] if isinstance(name, str) else name)
    }
    definitions = ast.ClassDef, ast.FunctionDef
    found = [
        node.name for node in ast.parse(text).body if isinstance(node, definitions)
    ]
    assert names <= set(found)
    assert len(found) == len(set(found))
    assert "your turn" not in text
    assert "%pip" not in text


def test_headings_become_comments(text):
    assert "\n# --- Attention ---" in text
    assert "Exercises" not in text


@pytest.mark.slow
def test_a_short_run_ends_with_the_translation_of_the_shipped_weights(tmp_path, text):
    path = tmp_path / "one_sitting.py"
    assert one_file.main([str(path)]) == 0
    assert path.read_text(encoding="utf-8") == text
    assert text.count(TRAINING) == 1
    path.write_text(text.replace(TRAINING, "\nsteps = 10\n"), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "10 steps, " in run.stdout
    _, _, loaded = run.stdout.partition("<All keys matched successfully>")
    assert TRANSLATION in loaded
    assert "greedy equal: True, beam equal: True Im Schnee" in loaded
    assert "False" not in loaded.partition("training mode")[0]
