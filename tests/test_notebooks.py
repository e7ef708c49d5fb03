"""Notebooks run from a fresh kernel, in place, and are stored clean."""

import json

import nbformat
import pytest

from book_tools import notebooks
from book_tools.toc import chapters, notebook_pages, pages

FIGURE = """\
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
ax.plot([1, 2, 4])
plt.show()"""
BAR = """\
from tqdm.auto import tqdm
for step in tqdm(range(3)):
    print(step, flush=True)
print({"b", "a", "c"})"""


def store(path, *sources):
    cells = [nbformat.v4.new_markdown_cell("# 3. Trial")]
    cells += [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["jupytext"] = {"formats": "py"}
    cells[-1].metadata.update({"scrolled": True, "ledger": ["S1-1"], "unknown": 1})
    nbformat.write(notebook, path)
    return path


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("executed")
    path = store(folder / "03_trial.ipynb", BAR, FIGURE, "import os; os.getcwd()")
    assert notebooks.execute(path) is True
    return path


def test_second_run_leaves_no_difference(executed):
    first, modified = executed.read_bytes(), executed.stat().st_mtime_ns
    assert b'"image/png"' in first
    assert notebooks.execute(executed) is False
    assert executed.read_bytes() == first
    assert executed.stat().st_mtime_ns == modified
    assert [path.name for path in executed.parent.iterdir()] == [executed.name]


def test_stored_notebook_holds_no_details_of_editor_and_kernel(executed):
    stored = json.loads(executed.read_text())
    cells = stored["cells"]
    assert [cell["id"] for cell in cells] == ["03-00", "03-01", "03-02", "03-03"]
    assert [cell.get("execution_count") for cell in cells] == [None, 1, 2, 3]
    assert stored["metadata"] == notebooks.METADATA
    assert [cell["metadata"] for cell in cells[:3]] == [{}, {}, {}]
    assert cells[3]["metadata"] == {"ledger": ["S1-1"], "unknown": 1}


def test_progress_bar_is_not_stored_and_streams_are_merged(executed):
    [output] = json.loads(executed.read_text())["cells"][1]["outputs"]
    lines = "".join(output["text"]).splitlines()
    assert output["name"] == "stdout"
    assert lines[:3] == ["0", "1", "2"]
    assert len(lines) == 4


def test_kernel_runs_in_the_folder_of_the_notebook(executed):
    [output] = json.loads(executed.read_text())["cells"][3]["outputs"]
    assert output["data"]["text/plain"] == [repr(str(executed.parent))]


def test_failing_cell_is_named_and_nothing_is_stored(tmp_path, capsys):
    path = store(tmp_path / "trial.ipynb", "print(1)", "print('seen')\n1 / 0")
    before = path.read_bytes()
    assert notebooks.main([str(path)]) == 1
    error = capsys.readouterr().err
    assert f"{path}: a cell failed, nothing is stored" in error
    assert "print('seen')\n1 / 0" in error
    assert "ZeroDivisionError" in error
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_repeat_is_kept_until_its_cell_changes(tmp_path):
    path = store(tmp_path / "trial.ipynb", "import time; print(time.time_ns())")
    notebooks.execute(path)
    untagged = path.read_bytes()
    assert notebooks.execute(path) is True
    assert path.read_bytes() != untagged

    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].metadata["tags"] = ["nbval-ignore-output"]
    nbformat.write(notebook, path)
    notebooks.execute(path)
    tagged = path.read_bytes()
    assert notebooks.execute(path) is False

    notebook.cells[1].source += "  # anew"
    nbformat.write(notebook, path)
    notebooks.execute(path)
    renewed = nbformat.read(path, as_version=4).cells[1].outputs[0].text
    assert renewed.strip() not in tagged.decode()


def test_pages_are_read_in_the_order_of_the_table_of_contents(tmp_path):
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nparts:\n- caption: One\n  chapters:\n"
        "  - file: 02_b\n  - file: page\n    sections:\n    - file: c.ipynb\n"
        "- chapters:\n  - file: 01_a\n"
    )
    for name in ("01_a", "02_b", "c"):
        (tmp_path / f"{name}.ipynb").touch()
    assert pages(tmp_path) == ["index", "02_b", "page", "c", "01_a"]
    assert [path.stem for path in notebook_pages(tmp_path)] == ["02_b", "c", "01_a"]
    assert [path.stem for path in chapters(tmp_path)] == ["02_b", "01_a"]
