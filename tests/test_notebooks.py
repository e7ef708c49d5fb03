"""Notebooks run from a fresh kernel, in place, and are stored clean."""

import json

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from book._ext import notebooks
from book._ext.figures import MIME as PLOT
from book._ext.figures import NARROW

DRAWS = """\
import matplotlib.pyplot as plt
from tqdm.auto import tqdm
from transformer_lib.plots import use_book_theme
use_book_theme()
for step in tqdm(range(3)):
    print(step, flush=True)
plt.plot([1, 2, 4])
plt.show()"""
SOLUTION = "# @title Solution 3.1\nprint({'b', 'a', 'c'})"
TIMES = "import time; print(time.time_ns())"


def store(path, *sources):
    cells = [nbformat.v4.new_markdown_cell("# 3. Trial")]
    cells += [nbformat.v4.new_code_cell(source) for source in sources]
    cells[-1].metadata.update(scrolled=True, covers=["S1-01"], unknown=1)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.mark.slow
def test_what_is_stored_holds_nothing_that_changes_from_run_to_run(tmp_path):
    path = store(tmp_path / "03_trial.ipynb", SOLUTION, DRAWS)
    assert notebooks.execute(path)
    first = path.read_bytes()
    assert not notebooks.execute(path)
    assert path.read_bytes() == first
    stored = json.loads(first)
    assert stored["metadata"] == notebooks.METADATA
    title, solution, draws = stored["cells"]
    assert [cell["id"] for cell in stored["cells"]] == ["03-00", "03-01", "03-02"]
    assert solution["metadata"] == {  # its first line folds it, everywhere
        "cellView": "form",
        "jupyter": {"source_hidden": True},
        "mystnb": {"code_prompt_show": "Show the solution"},
        "tags": ["hide-cell"],
    }
    assert draws["metadata"] == {"covers": ["S1-01"], "unknown": 1}
    printed, figure = draws["outputs"]  # no progress bar, and streams are merged
    assert printed["text"] == ["0\n", "1\n", "2\n"]
    assert set(figure["data"]) == {PLOT, NARROW, "image/png", "text/plain"}


@pytest.mark.parametrize("title", ["Checks", "Solution 3.1", "Table"])
def test_a_title_folds_its_cell_and_no_other(title):
    sources = f"# @title {title}\nprint(1)", "# @title Other\nprint(1)"
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    cells.insert(0, nbformat.v4.new_markdown_cell("# 3. Trial"))
    notebook = nbformat.v4.new_notebook(cells=cells)
    _, folded, shown = notebooks.clean(notebook, 3).cells
    words = f"Show the {title.split()[0].lower()}"
    assert folded.metadata["mystnb"] == {"code_prompt_show": words}
    assert folded.metadata["jupyter"] == {"source_hidden": True}
    assert (folded.metadata["tags"], shown.metadata) == (["hide-cell"], {})


def test_a_failing_cell_leaves_the_file_as_it_was(tmp_path):
    path = store(tmp_path / "trial.ipynb", "print(1)", "1 / 0")
    before = path.read_bytes()
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        notebooks.execute(path)
    assert path.read_bytes() == before


@pytest.mark.slow
def test_what_cannot_repeat_is_kept_until_its_cell_changes(tmp_path):
    path = store(tmp_path / "trial.ipynb", TIMES)
    notebooks.execute(path)
    assert notebooks.execute(path)
    for source, changed in ((TIMES, True), (TIMES, False), (TIMES + "  # anew", True)):
        notebook = nbformat.read(path, as_version=4)
        notebook.cells[1].metadata["tags"] = ["nbval-ignore-output"]
        notebook.cells[1].source = source
        nbformat.write(notebook, path)
        before = notebook.cells[1].outputs
        notebooks.execute(path)
        after = nbformat.read(path, as_version=4).cells[1].outputs
        assert (after != before) == changed
