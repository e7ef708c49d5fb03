"""Run the chapters and store them clean.

    python -m book._ext.notebooks                           all chapters
    python -m book._ext.notebooks book/04_masks.ipynb       only this one

A chapter runs from a fresh kernel, in place, whole or not at all. What is stored holds
nothing that changes from run to run, so a second run leaves no difference; the output
of a cell tagged nbval-ignore-output, such as a timing, is kept while its source stays.
"""

from __future__ import annotations

import copy
import hashlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbstripout import strip_output

from book._ext.figures import shrink
from book._ext.notebook_parts import code_cells, tags
from book._ext.toc import ROOT, chapter_of, notebook_pages

KERNEL_ENV = {
    "PYTHONHASHSEED": "0",  # the order of sets of strings repeats
    "TQDM_DISABLE": "1",  # no progress bar in a stored output ...
    "QT_API": "none",  # ... and tqdm.auto takes the bar that listens to that
}
DRAWN_TWICE = "--IPKernelApp.extensions=book._ext.narrow"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# What editors leave in a cell; unknown keys stay, for a rule to name.
NOISE = (
    "ExecuteTime collapsed colab editable execution executionInfo id lines_to_next_cell"
    " outputId pycharm scrolled trusted vscode"
)
# A cell that starts so is folded, in the book, in Colab and in JupyterLab.
FOLDED = {
    "# @title Checks": "Show the checks",
    "# @title Solution": "Show the solution",
    "# @title Table": "Show the table",
}
# A text that asks so is followed by the answer, folded in the book.
PROMPT = "> **Before you run the next cell.** "
ANSWER = "Show what happens"


def clean(notebook: NotebookNode, chapter: int | None) -> NotebookNode:
    """Return a copy with cells folded, small plots, no details of kernel and editor."""
    kept = dict.fromkeys(("keep_output", "keep_count", "keep_id"), True)
    noise = [f"cell.metadata.{key}" for key in NOISE.split()]
    cleaned = strip_output(copy.deepcopy(notebook), **kept, extra_keys=noise)
    cleaned.nbformat, cleaned.nbformat_minor = 4, 5
    cleaned.metadata = nbformat.from_dict(METADATA)
    for before, cell in pairwise(cleaned.cells):
        for start, words in FOLDED.items():
            if cell.source.startswith(start):
                fold(cell, words)
                cell.metadata.cellView = "form"
                cell.metadata.jupyter = {"source_hidden": True}
        if before.cell_type == "markdown" and f"\n{PROMPT.strip()}" in before.source:
            fold(cell, ANSWER)
    for index, cell in enumerate(cleaned.cells):
        cell.id = f"{chapter or 0:02d}-{index:02d}"
        for output in cell.get("outputs", []):
            shrink(output.get("data", {}))
    return cleaned


def fold(cell: NotebookNode, words: str) -> None:
    """Let the book hide a cell behind words."""
    shown = [tag for tag in tags(cell) if tag != "hide-cell"]
    cell.metadata.tags = ["hide-cell", *shown]
    cell.metadata.setdefault("mystnb", {})["code_prompt_show"] = words


def stored_text(notebook: NotebookNode, path: Path) -> str:
    """The text of a notebook's file."""
    return nbformat.writes(clean(notebook, chapter_of(path))) + "\n"


def execute(path: Path) -> bool:
    """Run the notebook at path in a fresh kernel and store it clean.

    Args:
        path: the notebook; its folder is the kernel's working directory.

    Returns:
        True where the stored file changed.

    Raises:
        CellExecutionError: a cell raised an exception. The file is as it was.
    """
    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    cells = [cell for _, cell in code_cells(notebook)]
    unrepeatable = {cell.metadata.get("source_digest"): cell.outputs for cell in cells}
    # Without folders to search, the only kernel is the one of this environment.
    manager = AsyncKernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    client = NotebookClient(
        notebook,
        km=manager,
        timeout=600,  # seconds that a cell may take
        extra_arguments=[DRAWN_TWICE],
        force_raise_errors=True,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    env = {**os.environ, **KERNEL_ENV, "PYTHONPATH": str(ROOT)}  # it finds the above
    client.execute(env=env, stderr=subprocess.DEVNULL)
    for cell in cells:
        if "nbval-ignore-output" in tags(cell):
            digest = hashlib.sha256(cell.source.encode()).hexdigest()[:12]
            cell.outputs = unrepeatable.get(digest, cell.outputs)
            cell.metadata["source_digest"] = digest
    after = stored_text(notebook, path)
    path.write_text(after, encoding="utf-8", newline="\n")
    return after != before


if __name__ == "__main__":
    for page in [Path(name).resolve() for name in sys.argv[1:]] or notebook_pages():
        print(f"{page.name}: {'stored' if execute(page) else 'unchanged'}", flush=True)
