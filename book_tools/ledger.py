"""The items of the five source documents, and the cells of the book that treat them.

`book/sources.yml` lists every statement, equation, picture, listing and number of the
documents: where it is, what it says, whether that holds, and what is true. A cell that
treats some of them carries their ids in its metadata, `"ledger": ["S3-12"]`.
"""

from __future__ import annotations

import ast
import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from book_tools.notebook_parts import headings
from book_tools.template import FROM_THE_SOURCES, WHERE_WE_ARE
from book_tools.toc import ROOT, notebook_pages

SOURCES = Path("book/sources.yml")
MISTAKES = ("wrong", "ambiguous")  # verdicts: a code cell has to show these


@dataclass(frozen=True)
class Cell:
    """A cell that carries ids."""

    page: str  # as in _toc.yml, such as book/04_masks
    index: int
    kind: str  # "code" or "markdown"
    ids: tuple[str, ...]
    anchor: str  # the label of the cell, unique in the book
    title: str  # of the page
    heading: str  # the nearest one above the cell
    named: bool  # the page shows the ids below the cell
    shows: bool  # running it again fails once what it shows is no longer so


def read_documents(root: Path = ROOT) -> list[dict[str, Any]]:
    """The documents with their sections, and the items of each section."""
    return yaml.safe_load((root / SOURCES).read_text(encoding="utf-8"))


def items_of(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """The items of all sections of a document, in its order."""
    return [item for section in document["sections"] for item in section["items"]]


def read_cells(root: Path = ROOT) -> list[Cell]:
    """Every cell of the book that carries ids, in the order of the book."""
    found = []
    for path in notebook_pages(root):
        page = path.relative_to(root).with_suffix("").as_posix()
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found += cells_with_ids(page, cells)
    return found


def cells_with_ids(page: str, cells: Sequence[Mapping[str, Any]]) -> Iterator[Cell]:
    """The cells of one notebook that carry ids.

    A chapter names them in one section only.

    Args:
        page: the notebook as the table of contents names it.
        cells: the cells of the notebook's JSON.
    """
    checks = functions_that_fail(cells)
    chapter = page.rpartition("/")[2].lstrip("0123456789_").replace("_", "-")
    levels = [
        headings(cell_source(cell)) if cell["cell_type"] == "markdown" else []
        for cell in cells
    ]
    quiet = (2, WHERE_WE_ARE) in itertools.chain(*levels)
    titles, section, taken = [], "", Counter[str]()
    for index, cell in enumerate(cells):
        source, kind, metadata = cell_source(cell), cell["cell_type"], cell["metadata"]
        for level, text in levels[index]:
            titles.append(text)
            section = text if level == 2 else section
        if ids := metadata.get("ledger"):
            anchor = f"{chapter}-{ids[0]}".lower()
            taken[anchor] += 1
            number = f"-{taken[anchor]}" if taken[anchor] > 1 else ""
            compared = "nbval-ignore-output" not in metadata.get("tags", [])
            yield Cell(
                page=page,
                index=index,
                kind=kind,
                ids=tuple(ids),
                anchor=anchor + number,
                title=titles[0] if titles else page,
                heading=titles[-1] if titles else page,
                named=section == FROM_THE_SOURCES or not quiet,
                shows=kind == "code" and can_fail(source, checks, compared),
            )


def cell_source(cell: Mapping[str, Any]) -> str:
    """The source of a cell as one string; notebooks store a list of lines, too."""
    return "".join(cell["source"])


def can_fail(source: str, checks: Collection[str] = (), compared: bool = True) -> bool:
    """Whether running code again fails once what it shows is no longer so.

    It does where it asserts something about a name, or where it prints an error that it
    catches: without the error the line would be missing.

    Args:
        source: of a cell.
        checks: names of functions that assert: a call of one counts.
        compared: whether the replay of the chapters compares what the cell prints.
    """
    for node in _nodes_that_run(source):
        match node:
            case ast.Assert(test=test):
                if any(isinstance(part, ast.Name) for part in ast.walk(test)):
                    return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name in checks or name.startswith("assert_"):
                    return True
            case ast.ExceptHandler(body=body):
                if compared and "print(" in "".join(map(ast.unparse, body)):
                    return True
    return False


def functions_that_fail(cells: Sequence[Mapping[str, Any]]) -> set[str]:
    """The names of the functions defined in a notebook that assert something."""
    return {
        part.name
        for cell in cells
        if cell["cell_type"] == "code"
        for part in _statements(cell_source(cell))
        if isinstance(part, ast.FunctionDef)
        and can_fail("\n".join(map(ast.unparse, part.body)), compared=False)
    }


def _nodes_that_run(source: str) -> Iterator[ast.AST]:
    """The nodes that run with a cell: not those in a function that it only defines."""
    waiting: list[ast.AST] = [*_statements(source)]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            yield node
            waiting += ast.iter_child_nodes(node)


def _statements(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except SyntaxError:  # a magic: nothing that shows a mistake
        return []


def problems(
    documents: Sequence[Mapping[str, Any]], cells: Sequence[Cell]
) -> Iterator[str]:
    """What keeps the book from covering the documents, a sentence for each fault."""
    items = {item["id"]: item for document in documents for item in items_of(document)}
    for cell in cells:
        where = f"{cell.page}, cell {cell.index} ({cell.kind})"
        for name, count in Counter(cell.ids).items():
            if name not in items:
                yield f"{where}: unknown id {name!r}"
            if count > 1:
                yield f"{where}: the id {name!r} is repeated"
    for name, item in items.items():
        carrying = [cell for cell in cells if name in cell.ids]
        if not carrying:
            yield f"{name} is in no cell: {item['says']}"
        elif item["verdict"] in MISTAKES and not any(c.shows for c in carrying):
            yield (
                f"{name} is {item['verdict']}, but no code cell with it asserts what "
                f"is true, or catches and prints the error: {item['says']}"
            )
