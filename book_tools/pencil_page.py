"""Collect the calculation of the pencil model on one page.

    python -m book_tools.pencil_page          write, run and store book/pencil.ipynb

Chapters 1 to 8 follow one sentence through a model so small that every number can be
checked by hand. The cells that do so carry `"pencil": true` in their metadata, or a
sentence that introduces the cell on this page. They are copied to `book/pencil.ipynb`,
which is run and stored like a chapter.
"""

from __future__ import annotations

import builtins
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book_tools.notebook_parts import code_cells, headings, printed_text
from book_tools.notebooks import execute, stored_text
from book_tools.output_rules import figure_alt
from book_tools.repository import address, bootstrap
from book_tools.template import chapter_of
from book_tools.toc import ROOT

PAGE = Path("book/pencil.ipynb")
CHAPTERS = range(1, 9)
INTRODUCTION = """\
# The whole calculation on one page

Five German words and the beginning of an English sentence go in, and a probability \
for every possible next word comes out. Everything in between is on this page: all the \
cells of chapters 1 to 8 that follow the pencil model, run one after the other. The \
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
KNOWN = {*dir(builtins), "math", "torch", "pencil"}


def chapters(root: Path = ROOT) -> Iterator[tuple[Path, NotebookNode]]:
    """Every chapter that has cells for this page, in order."""
    for path in sorted((root / PAGE.parent).glob("*_*.ipynb")):
        if chapter_of(path) in CHAPTERS:
            notebook = nbformat.read(path, as_version=4)
            if pencil_cells(notebook):
                yield path, notebook


def pencil_cells(notebook: NotebookNode) -> list[tuple[int, NotebookNode]]:
    """Index and cell of those that go to this page."""
    return [pair for pair in code_cells(notebook) if "pencil" in pair[1].metadata]


def page(root: Path = ROOT) -> NotebookNode:
    """The page as the chapters have it now, not yet run."""
    cells = []
    for path, notebook in chapters(root):
        [(_, title), *_] = headings(notebook.cells[0].source)
        cells.append(new_markdown_cell(f"## [{title}]({path.name})"))
        for _, cell in pencil_cells(notebook):
            if isinstance(cell.metadata["pencil"], str):
                cells.append(new_markdown_cell(cell.metadata["pencil"]))
            kept = {key: cell.metadata[key] for key in FOLDS if key in cell.metadata}
            cells.append(new_code_cell(cell.source, metadata=kept))
    start = [
        new_markdown_cell(INTRODUCTION),
        new_code_cell(bootstrap(address(root)), metadata={"tags": ["remove-cell"]}),
        new_code_cell(IMPORTS, metadata={"tags": ["hide-input"]}),
    ]
    return new_notebook(cells=[*start, *cells])


def differences(root: Path = ROOT) -> Iterator[str]:
    """What the stored page shows otherwise than the chapters do."""
    path = root / PAGE
    if not path.exists():
        yield f"{PAGE} is missing: python -m book_tools.pencil_page"
        return
    made = page(root)
    stored = nbformat.read(path, as_version=4)
    if [cell.source for cell in stored.cells] != [cell.source for cell in made.cells]:
        yield f"{PAGE} is not made of these chapters: python -m book_tools.pencil_page"
        return
    shown = [cell for _, cell in code_cells(stored)][2:]  # below bootstrap and imports
    given = [
        (chapter.name, index, cell)
        for chapter, notebook in chapters(root)
        for index, cell in pencil_cells(notebook)
    ]
    for here, (name, index, cell) in zip(shown, given, strict=True):
        if _text(here) != _text(cell):
            yield f"{name}, cell {index}: prints something else than on {PAGE}"


def _text(cell: NotebookNode) -> str:
    return "".join(map(printed_text, cell.outputs))


# --- the rule -------------------------------------------------------------------------


def pencil(notebook: NotebookNode) -> Iterator[str]:
    """A cell for this page needs nothing that other cells of its chapter define."""
    known = set(KNOWN)
    for index, cell in pencil_cells(notebook):
        try:
            needs, defines = names(cell.source)
        except SyntaxError as error:
            yield f"cell {index}: {error}"
            continue
        for name in sorted(needs - known - defines):
            yield f"cell {index}: no cell with 'pencil' before it defines {name!r}"
        known |= defines
        if any(figure_alt(output) is not None for output in cell.outputs):
            yield f"cell {index}: draws a figure; {PAGE} has none"


def names(source: str) -> tuple[set[str], set[str]]:
    """The global names that a source uses, and those that it defines."""
    top = symtable.symtable(source, "cell", "exec")
    needs = {name.get_name() for name in top.get_symbols() if name.is_referenced()}
    defines = {
        name.get_name()
        for name in top.get_symbols()
        if name.is_assigned() or name.is_imported()
    }
    waiting = top.get_children()
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        needs |= {name.get_name() for name in table.get_symbols() if name.is_global()}
    return needs, defines


RULES = [pencil]


# --- the command ----------------------------------------------------------------------


def main(root: Path = ROOT) -> int:
    """Write the page and run it; return the exit status."""
    made, path = page(root), root / PAGE
    before = path.read_text(encoding="utf-8") if path.exists() else None
    path.write_text(stored_text(made), encoding="utf-8", newline="\n")
    try:
        execute(path)
    except CellExecutionError as error:
        path.unlink()
        if before is not None:
            path.write_text(before, encoding="utf-8", newline="\n")
        print(f"{PAGE}: a cell failed, nothing is stored\n{error}", file=sys.stderr)
        return 1
    print(f"{PAGE}: {len(made.cells)} cells")
    return 0


if __name__ == "__main__":
    sys.exit(main())
