"""Collect the calculation of the pencil model on one page.

    python -m book_tools.pencil_page          write, run and store book/pencil.ipynb

Chapters 1 to 8 follow one sentence through a model so small that every number can be
checked by hand. The cells that do so carry `"pencil": true` in their metadata, or a
sentence that introduces the cell on this page. They are copied to `book/pencil.ipynb`,
which is run and stored like a chapter.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book_tools.notebook_parts import code_cells, headings
from book_tools.notebooks import execute
from book_tools.repository import address, bootstrap
from book_tools.toc import ROOT, chapters

PAGE = Path("book/pencil.ipynb")
INTRODUCTION = """\
# The whole calculation on one page

Five German words and the beginning of an English sentence go in, and a probability \
for every possible next word comes out. What happens in between is on this page, step \
by step: the cells of chapters 1 to 8 that compute it, run one after the other. The \
model has four features, two heads, and weights of one decimal, so a pencil and a \
calculator are enough to check its numbers. (Weights that aren't printed here, you can \
print yourself.)

You can print this page from your browser. On paper the type is small, and the menus \
are left out."""
IMPORTS = """\
import math

import torch

from transformer_book import pencil

torch.set_printoptions(precision=2, sci_mode=False)
_ = torch.set_grad_enabled(False)  # nothing is trained here"""
FOLDS = ("cellView", "jupyter", "mystnb", "tags")  # how a cell is shown


def page() -> NotebookNode:
    """The page as the chapters have it now, not yet run."""
    cells = [
        new_markdown_cell(INTRODUCTION),
        new_code_cell(bootstrap(address()), metadata={"tags": ["remove-cell"]}),
        new_code_cell(IMPORTS, metadata={"tags": ["hide-input"]}),
    ]
    for path in chapters():
        notebook = nbformat.read(path, as_version=4)
        chosen = [cell for _, cell in code_cells(notebook) if "pencil" in cell.metadata]
        if chosen:
            [(_, title), *_] = headings(notebook.cells[0].source)
            cells.append(new_markdown_cell(f"## [{title}]({path.name})"))
        for cell in chosen:
            if isinstance(cell.metadata["pencil"], str):
                cells.append(new_markdown_cell(cell.metadata["pencil"]))
            kept = {key: cell.metadata[key] for key in FOLDS if key in cell.metadata}
            cells.append(new_code_cell(cell.source, metadata=kept))
    return new_notebook(cells=cells)


if __name__ == "__main__":
    nbformat.write(page(), ROOT / PAGE)
    execute(ROOT / PAGE)
