"""The one form in which notebooks are stored.

It holds nothing that changes from run to run: no timestamps, no details of the
kernel or the machine, ids made of the chapter's number and the cell's place.
"""

from __future__ import annotations

import copy
import os
import re
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# What editors and front ends leave in a cell; unknown keys stay, for a rule to name.
NOISE = {
    "ExecuteTime",
    "collapsed",
    "colab",
    "editable",
    "execution",
    "executionInfo",
    "id",
    "lines_to_next_cell",
    "outputId",
    "pycharm",
    "scrolled",
    "trusted",
    "vscode",
}
WIDGET = "application/vnd.jupyter.widget-view+json"
PROGRESS = re.compile(r"(.*\d+%\|.*\|.*|.*\d+\S*it )\[.*(it/s|s/it|\?).*\]\s*")


def chapter_number(notebook: NotebookNode) -> int:
    """The N of the title `# N. Title` in the first cell; 0 where there is none."""
    first = notebook.cells[0].source if notebook.cells else ""
    match = re.match(r"# (\d+)\. ", first)
    return int(match.group(1)) if match else 0


def is_progress(output: NotebookNode) -> bool:
    """True for a progress bar: a widget, or a stderr text of nothing but bars."""
    if output.output_type == "stream" and output.name == "stderr":
        lines = [line for line in re.split(r"[\r\n]+", output.text) if line.strip()]
        return all(PROGRESS.fullmatch(line) for line in lines)
    return WIDGET in output.get("data", {})


def normalize(notebook: NotebookNode) -> NotebookNode:
    """Return a copy in normal form; source text, counts and real outputs stay."""
    normal = copy.deepcopy(notebook)
    normal.nbformat, normal.nbformat_minor = 4, 5
    normal.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    chapter = chapter_number(normal)
    for index, cell in enumerate(normal.cells):
        cell.id = f"{chapter:02d}-{index:02d}"
        cell.source = cell.source.rstrip("\n")
        for key in NOISE & set(cell.metadata):
            del cell.metadata[key]
        for key in [key for key, value in cell.metadata.items() if value in ([], {})]:
            del cell.metadata[key]
        if cell.cell_type == "code":
            cell.outputs = _normal_outputs(cell)
    return normal


def _normal_outputs(cell: NotebookNode) -> list[NotebookNode]:
    kept: list[NotebookNode] = []
    for output in cell.outputs:
        if is_progress(output):
            continue
        last = kept[-1] if kept else None
        if output.output_type == "stream" and last and last.get("name") == output.name:
            last.text += output.text
            continue
        if output.output_type == "execute_result":
            output.execution_count = cell.execution_count
        for mime, value in output.get("data", {}).items():
            if mime.startswith("image/") and isinstance(value, str):
                output.data[mime] = value.strip()
        kept.append(output)
    return kept


def read(path: Path) -> NotebookNode:
    """The notebook at path, as it is stored."""
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def dumps(notebook: NotebookNode) -> str:
    """The text that is stored for a notebook."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def write(notebook: NotebookNode, path: Path) -> bool:
    """Store a notebook in one step; False, and no write, where nothing changed."""
    text = dumps(notebook)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if path.exists():
            shutil.copymode(path, temporary)
        else:
            os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return True


def is_normal(path: Path) -> bool:
    """True where the stored text is the normal form, byte for byte."""
    text = dumps(normalize(nbformat.read(path, as_version=4)))
    return path.read_bytes() == text.encode("utf-8")
