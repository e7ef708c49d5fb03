"""Cells, headings and sections of a notebook, for the rules that read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nbformat import NotebookNode

HEADING = re.compile(r"^(#{1,6}) +(.+?) *$", re.MULTILINE)
FENCE = re.compile(r"^(```+|~~~+).*?^\1 *$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
MATH = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)

BEFORE_IDEAS = ["What you will build", "Setup"]  # the sections a chapter opens with


@dataclass
class Section:
    """A level-2 heading and the cells below it, each with its index."""

    title: str
    cells: list[tuple[int, NotebookNode]] = field(default_factory=list)

    def of_type(self, cell_type: str) -> list[tuple[int, NotebookNode]]:
        """The section's cells of one type: "code" or "markdown"."""
        return [pair for pair in self.cells if pair[1].cell_type == cell_type]


def code_cells(notebook: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    """Index and cell of every code cell."""
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            yield index, cell


def markdown_cells(notebook: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    """Index and cell of every Markdown cell."""
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            yield index, cell


def outputs(notebook: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    """Index of the cell and output, for every output."""
    for index, cell in code_cells(notebook):
        for output in cell.outputs:
            yield index, output


def printed_text(output: NotebookNode) -> str:
    """What an output prints: its stream, or the text form of its value."""
    return output.get("text") or output.get("data", {}).get("text/plain", "")


def without_code(markdown: str) -> str:
    """Markdown less its code, fenced and inline, where `#` and `[` mean nothing."""
    return CODE_SPAN.sub("", FENCE.sub("", markdown))


def headings(markdown: str) -> list[tuple[int, str]]:
    """Level and text of every heading."""
    found = HEADING.findall(FENCE.sub("", markdown))
    return [(len(hashes), text) for hashes, text in found]


def slug(heading: str) -> str:
    """The anchor that MyST and GitHub make of a heading."""
    text = re.sub(r"[*`$\\{}]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def sections(notebook: NotebookNode) -> list[Section]:
    """The notebook cut at its level-2 headings; what stands before has title "".

    A cell that holds a level-2 heading belongs to the last one in it.
    """
    found = [Section("")]
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            titles = [text for level, text in headings(cell.source) if level == 2]
            found += [Section(title) for title in titles]
        found[-1].cells.append((index, cell))
    return found


def tags(cell: NotebookNode) -> list[str]:
    """The cell's tags."""
    return cell.metadata.get("tags", [])


def is_solution(cell: NotebookNode) -> bool:
    """True for a code cell whose first line calls it the solution of an exercise."""
    return cell.cell_type == "code" and cell.source.startswith("# @title Solution")
