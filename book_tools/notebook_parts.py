"""Cells and sections of a notebook and parts of its Markdown, for the rules.

Markdown is parsed by MyST's own parser with the book's settings: what a rule calls a
link, a label or a formula is what the page makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import yaml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from nbformat import NotebookNode

from book_tools.toc import ROOT

SETTINGS = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["parse"]
PARSER = create_md_parser(
    MdParserConfig(enable_extensions=set(SETTINGS["myst_enable_extensions"])),
    RendererHTML,
)


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


def tags(cell: NotebookNode) -> list[str]:
    """The cell's tags."""
    return cell.metadata.get("tags", [])


def is_solution(cell: NotebookNode) -> bool:
    """True for a code cell whose first line calls it the solution of an exercise."""
    return cell.cell_type == "code" and cell.source.startswith("# @title Solution")


def chapter_number(notebook: NotebookNode) -> int | None:
    """The N of the title `# N. Title` in the first cell; None where there is none."""
    first = notebook.cells[0].source if notebook.cells else ""
    match = re.match(r"# (\d+)\. ", first)
    return int(match.group(1)) if match else None


@lru_cache(maxsize=4096)
def tokens(markdown: str) -> tuple[Token, ...]:
    """The blocks of a text, those inside `:::` boxes included, in order."""
    found: list[Token] = []
    for token in PARSER.parse(markdown):
        found.append(token)
        if token.type == "colon_fence":
            found += tokens(token.content)
    return tuple(found)


def pieces(markdown: str) -> Iterator[Token]:
    """Every block of a text, each followed by what it holds: words, code, links."""
    for token in tokens(markdown):
        yield token
        yield from token.children or ()


def headings(markdown: str) -> list[tuple[int, str]]:
    """Level and text of every heading."""
    found = tokens(markdown)
    return [
        (int(token.tag[1]), text.content)
        for token, text in zip(found, found[1:], strict=False)
        if token.type == "heading_open"
    ]


def slug(heading: str) -> str:
    """The anchor that MyST and GitHub make of a heading."""
    text = re.sub(r"[*`$\\{}]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def sections(notebook: NotebookNode) -> list[Section]:
    """The notebook split at its level-2 headings; what stands before has title "".

    A cell that holds a level-2 heading belongs to the last one in it.
    """
    found = [Section("")]
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            titles = [text for level, text in headings(cell.source) if level == 2]
            found += [Section(title) for title in titles]
        found[-1].cells.append((index, cell))
    return found


def section(notebook: NotebookNode, title: str) -> Section:
    """The first section with a title; an empty one where there is none."""
    found = (part for part in sections(notebook) if part.title == title)
    return next(found, Section(title))
