"""Write the notebooks as students get them, into _build/student.

    make student

They have no solutions, no outputs, and no link to the book's own copy in Colab, where
the solutions are. The pages that they link to lie beside them.
"""

from __future__ import annotations

import re

import nbformat

from book._ext.toc import ROOT, notebook_pages

FOLDER = ROOT / "_build" / "student"
COLAB = r"\[[^]]*\]\(https://colab\.[^)]*\)"


def without_colab(text: str) -> str:
    """Take out of Markdown every link to Colab: an item of a line, or its sentence."""
    text = re.sub(rf" · {COLAB}", "", text)
    return re.sub(rf" ?[^.\n]*{COLAB}[^.\n]*\.?", "", text)


def for_students(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Take out of a notebook what a student is to find out."""
    cells = notebook.cells
    notebook.cells = [cell for cell in cells if "# @title Solution" not in cell.source]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        else:
            cell.source = without_colab(cell.source)
    return notebook


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for page in (ROOT / "book").glob("*.md"):
        text = without_colab(page.read_text(encoding="utf-8"))
        (FOLDER / page.name).write_text(text, encoding="utf-8")
    for path in notebook_pages():
        nbformat.write(for_students(nbformat.read(path, 4)), FOLDER / path.name)
    print(FOLDER)
