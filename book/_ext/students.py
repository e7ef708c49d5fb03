"""Write the notebooks as students get them, into _build/student.

    make student

They have no solutions, no outputs, and no link to the book's own copy in Colab. The
pages that they link to lie beside them.
"""

from __future__ import annotations

import shutil

import nbformat

from book._ext.notebook_parts import code_cells
from book._ext.toc import ROOT, notebook_pages

FOLDER = ROOT / "_build" / "student"


def for_students(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Take out of a notebook what a student is to find out."""
    cells = notebook.cells
    notebook.cells = [cell for cell in cells if "# @title Solution" not in cell.source]
    for _, cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    notebook.cells[0].source = notebook.cells[0].source.split(" · [Open")[0]
    return notebook


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for page in (ROOT / "book").glob("*.md"):
        shutil.copy(page, FOLDER)
    for path in notebook_pages():
        nbformat.write(for_students(nbformat.read(path, 4)), FOLDER / path.name)
    print(FOLDER)
