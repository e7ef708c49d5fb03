"""Notebooks are run from a fresh kernel and stored in one normal form."""

import json
import os

import nbformat
import pytest

from book_tools import notebooks
from book_tools.normal_form import is_progress, normalize
from book_tools.toc import chapters, notebook_pages

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


def store(path, *sources, title="# 3. Trial"):
    cells = [nbformat.v4.new_markdown_cell(title)]
    cells += [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["jupytext"] = {"formats": "py"}
    nbformat.write(notebook, path)
    return path


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("executed")
    path = store(folder / "03_trial.ipynb", BAR, FIGURE, "import os; os.getcwd()")
    os.chmod(path, 0o640)
    assert notebooks.execute(path) is True
    return path


def test_second_run_leaves_no_difference(executed):
    first, modified = executed.read_bytes(), executed.stat().st_mtime_ns
    assert b'"image/png"' in first
    assert notebooks.execute(executed) is False
    assert executed.read_bytes() == first
    assert executed.stat().st_mtime_ns == modified
    assert [path.name for path in executed.parent.iterdir()] == [executed.name]


def test_stored_notebook(executed):
    stored = json.loads(executed.read_text())
    assert [cell["id"] for cell in stored["cells"]] == [
        "03-00",
        "03-01",
        "03-02",
        "03-03",
    ]
    assert [cell.get("execution_count") for cell in stored["cells"]] == [None, 1, 2, 3]
    assert stored["metadata"] == {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    assert all(cell["metadata"] == {} for cell in stored["cells"])
    assert executed.stat().st_mode & 0o777 == 0o640
    assert notebooks.main(["--check", str(executed)]) == 0


def test_progress_bar_is_not_stored_and_streams_are_merged(executed):
    [output] = json.loads(executed.read_text())["cells"][1]["outputs"]
    lines = "".join(output["text"]).splitlines()
    assert output["name"] == "stdout"
    assert lines[:3] == ["0", "1", "2"]
    assert len(lines) == 4


def test_kernel_runs_in_the_folder_of_the_notebook(executed):
    [output] = json.loads(executed.read_text())["cells"][3]["outputs"]
    assert output["data"]["text/plain"] == [repr(str(executed.parent))]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("print('seen')\n1 / 0", "ZeroDivisionError"),
        ("import sys\nprint('oh', file=sys.stderr)", "wrote to stderr\noh"),
        ("import warnings\nwarnings.warn('careful')", "UserWarning: careful"),
    ],
)
def test_failing_cell_is_named_and_nothing_is_stored(tmp_path, capsys, source, message):
    path = store(tmp_path / "trial.ipynb", "1", source)
    before = path.read_bytes()
    assert notebooks.main([str(path)]) == 1
    error = capsys.readouterr().err
    assert f"{path}: cell 2 " in error
    assert message in error
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


def stderr(text):
    return nbformat.v4.new_output("stream", name="stderr", text=text)


def test_progress_bars_are_told_from_other_stderr():
    bar = " 50%|█████     | 1/2 [00:00<00:00, 10.01it/s]"
    assert is_progress(stderr(f"\r{bar}\rloss: {bar}\n"))
    assert is_progress(stderr("\r7it [00:01, 6.50it/s]\n"))
    assert is_progress(stderr("\r  0%|          | 0/9 [00:00<?, ?it/s]"))
    assert not is_progress(stderr(f"{bar}\nUserWarning: careful\n"))
    assert not is_progress(nbformat.v4.new_output("stream", text=bar))
    data = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "  0%|"}
    assert is_progress(nbformat.v4.new_output("display_data", data=data))


def test_normalize_removes_what_varies_and_keeps_what_counts():
    outputs = [
        nbformat.v4.new_output("stream", text="a"),
        stderr("\r  0%|          | 0/9 [00:00<?, ?it/s]"),
        nbformat.v4.new_output("stream", text="b\n"),
        nbformat.v4.new_output("execute_result", {"text/plain": "1"}),
    ]
    cell = nbformat.v4.new_code_cell("1\n", execution_count=4, outputs=outputs)
    cell.metadata = nbformat.from_dict(
        {"execution": {"iopub.status.busy": "2024"}, "scrolled": True, "tags": []}
        | {"ledger": ["S1-1"], "unknown": 1}
    )
    notebook = nbformat.v4.new_notebook(cells=[cell])
    before = json.dumps(notebook)
    normal = normalize(notebook)
    assert json.dumps(notebook) == before
    [kept] = normal.cells
    assert kept.metadata == {"ledger": ["S1-1"], "unknown": 1}
    assert kept.source == "1"
    assert [output.get("text") for output in kept.outputs] == ["ab\n", None]
    assert kept.outputs[1].execution_count == kept.execution_count == 4
    assert normalize(normal) == normal


def test_check_sees_what_is_not_normal(tmp_path, capsys):
    path = store(tmp_path / "trial.ipynb", "1")
    before = path.read_bytes()
    assert notebooks.main(["--check", str(path)]) == 1
    assert f"{path}: not stored in normal form" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_coverage_counts_cells_that_print():
    def cell(source, tags, **output):
        outputs = [nbformat.v4.new_output(**output)] if output else []
        return nbformat.v4.new_code_cell(
            source, metadata={"tags": tags}, outputs=outputs
        )

    printed = {"output_type": "stream", "text": "1"}
    picture = {"output_type": "display_data", "data": {"image/png": "AAAA"}}
    cells = [
        cell("print(1)", [], **printed),
        cell("timing", ["nbval-ignore-output"], **printed),
        cell("# NBVAL_IGNORE_OUTPUT", [], **printed),
        cell("plt.show()", [], **picture),
        cell("x = 1", []),
    ]
    assert notebooks.coverage(nbformat.v4.new_notebook(cells=cells)) == (1, 3)


def test_chapters_are_read_in_the_order_of_the_table_of_contents(tmp_path):
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: index\nparts:\n"
        "- chapters:\n  - file: b\n  - file: page\n    sections:\n    - file: c.ipynb\n"
        "- chapters:\n  - file: a\n"
    )
    for name in "abc":
        (tmp_path / f"{name}.ipynb").touch()
    assert [path.stem for path in notebook_pages(tmp_path)] == ["b", "c", "a"]
    assert chapters(tmp_path) == []  # their names begin with a number
