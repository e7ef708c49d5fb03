"""Cells, sections and headings of a notebook."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from nbformat import NotebookNode

PARSER = MarkdownIt()

CLASS = ("The class", "The classes", "The function", "The functions", "The model")
DONE = "What you can do now"  # ends the core path
OPTIONAL = " *(optional)*"  # ends the heading of a section off the core path


@dataclass
class Section:
    """A level-2 heading and the cells below it, each with its index."""

    title: str
    cells: list[tuple[int, NotebookNode]] = field(default_factory=list)

    def of_type(self, cell_type: str) -> list[tuple[int, NotebookNode]]:
        """The section's cells of one type: "code" or "markdown"."""
        return [pair for pair in self.cells if pair[1].cell_type == cell_type]


def code_cells(notebook: NotebookNode) -> list[tuple[int, NotebookNode]]:
    """Index and cell of every code cell."""
    return Section("", [*enumerate(notebook.cells)]).of_type("code")


def tags(cell: NotebookNode) -> list[str]:
    """The cell's tags."""
    return cell.metadata.get("tags", [])


def printed(cell: NotebookNode) -> str:
    """What a code cell prints: its streams, and the text forms of its values."""
    return "".join(
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in cell.outputs
    )


@lru_cache(maxsize=4096)
def headings(markdown: str) -> tuple[tuple[int, str], ...]:
    """Level and text of every heading."""
    return tuple(
        (int(token.tag[1]), text.content)
        for token, text in pairwise(PARSER.parse(markdown))
        if token.type == "heading_open"
    )


def slug(heading: str) -> str:
    """The anchor that MyST and GitHub make of a heading."""
    text = re.sub(r"[*`$\\{}]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def sections(notebook: NotebookNode) -> list[Section]:
    """The notebook split at its level-2 headings; what stands before has title "".

    A cell that holds a level-2 heading belongs to the last one in it.
    """
    split = [Section("")]
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            titles = [text for level, text in headings(cell.source) if level == 2]
            split += [Section(title) for title in titles]
        split[-1].cells.append((index, cell))
    return split


def section(notebook: NotebookNode, title: str) -> Section:
    """The first section with a title; an empty one where there is none."""
    for part in sections(notebook):
        if part.title == title:
            return part
    return Section(title)
