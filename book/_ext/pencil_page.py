"""Collect the calculation of the pencil model on one page.

    python -m book._ext.pencil_page          write, run and store book/pencil.ipynb

Chapters 1 to 8 follow one sentence through a model so small that every number can be
checked by hand. The cells that do so carry `"pencil": true` in their metadata, or a
sentence that introduces the cell on this page. They are copied to `book/pencil.ipynb`,
behind the cells that it begins with, and the page is run and stored like a chapter.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book._ext.notebook_parts import code_cells, headings
from book._ext.notebooks import execute
from book._ext.toc import ROOT, chapters

PAGE = Path("book/pencil.ipynb")
OWN = 3  # cells of the page itself: its introduction, the bootstrap and the imports
FOLDS = ("cellView", "jupyter", "mystnb", "tags")  # how a cell is shown


def page() -> NotebookNode:
    """The page as the chapters have it now, not yet run."""
    cells = nbformat.read(ROOT / PAGE, as_version=4).cells[:OWN]
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
