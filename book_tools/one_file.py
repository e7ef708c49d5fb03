"""Write the chapter that builds the whole Transformer as one plain Python file.

    python -m book_tools.one_file            writes one_sitting.py
    python -m book_tools.one_file PATH       writes another file

The file holds the chapter's code in its order and prints what the chapter prints. Its
headings become comments; the bootstrap cell, drawn diagrams and exercises are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from book_tools.notebook_parts import headings, sections, tags
from book_tools.template import SETUP_TAGS
from book_tools.toc import ROOT

CHAPTER = ROOT / "book" / "00_one_sitting.ipynb"
LEFT_OUT = {"Exercises"}
WIDTH = 72


def one_file(notebook: NotebookNode) -> str:
    """Return a chapter's code as the text of one Python file."""
    [(_, title)] = headings(notebook.cells[0].source)
    start = f'"""{title}: a chapter of the book as one plain Python file."""'
    return "\n\n\n".join([start, *_parts(notebook)]) + "\n"


def _parts(notebook: NotebookNode) -> Iterator[str]:
    for section in sections(notebook):
        code = [
            cell.source
            for index, cell in section.of_type("code")
            if _belongs(index, cell)
        ]
        if not code or section.title in LEFT_OUT:
            continue
        if section.title:
            rule = "-" * (WIDTH - len(section.title) - 6)
            yield f"# --- {section.title} {rule}"
        yield from code


def _belongs(index: int, cell: NotebookNode) -> bool:
    """Whether a cell goes into the file: neither the bootstrap nor a diagram."""
    if index <= len(SETUP_TAGS):
        return "remove-cell" not in tags(cell)
    return "hide-input" not in tags(cell)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m book_tools.one_file",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", nargs="?", type=Path, default=Path("one_sitting.py"))
    path = parser.parse_args(arguments).path
    text = one_file(nbformat.read(CHAPTER, as_version=4))
    path.write_text(text, encoding="utf-8", newline="\n")
    print(f"wrote {path}; try: python {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
