"""What the book is held to, and the cells that show it.

`book/sources.yml` lists every statement, equation, picture, listing and number of five
documents: where it is, what it says, whether that holds, and what is true.
`book/questions.yml` lists what learners ask in public. A cell that treats an item or
answers a question carries its id in its metadata, `"covers": ["S3-12", "why-root"]`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import yaml

from book._ext.notebook_parts import headings
from book._ext.toc import ROOT, chapter_of, notebook_pages

SOURCES, QUESTIONS = Path("book/sources.yml"), Path("book/questions.yml")
ITEM = re.compile(r"S\d-\d\d")
MISTAKES = ("wrong", "ambiguous")  # verdicts: a code cell has to show these
HIDDEN = re.compile("# @title (Checks|Solution)")
FROM_THE_SOURCES = "From the sources"  # the section of a chapter that names items


class Cell(NamedTuple):
    """A cell that carries ids of items, or of questions."""

    page: str  # as in _toc.yml, such as book/04_masks
    index: int
    kind: str  # "code" or "markdown"
    ids: tuple[str, ...]
    anchor: str  # a label of the cell, unique in the book
    title: str  # of the page
    heading: str  # the nearest one above the cell
    named: bool  # the page shows the ids below the cell
    executed: bool  # it was run, and prints or asserts something
    shown: bool  # a reader sees what it prints, and opens no check or solution for it
    shows: bool  # running it again fails once what it shows is no longer so


def read(path: Path, root: Path = ROOT) -> list[dict[str, Any]]:
    """The documents with their sections and items, or the questions by topic."""
    return yaml.safe_load((root / path).read_text(encoding="utf-8"))


def items_of(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """The items of all sections of a document, in its order."""
    return [item for section in document["sections"] for item in section["items"]]


def read_cells(root: Path = ROOT) -> list[Cell]:
    """Every cell of the book that carries ids, in the order of the book."""
    return [
        cell
        for path in notebook_pages(root)
        for cell in cells_with_ids(
            path.relative_to(root), nbformat.read(path, as_version=4).cells
        )
    ]


def cells_with_ids(path: Path, cells: Sequence[Mapping[str, Any]]) -> Iterator[Cell]:
    """The cells of one notebook that carry ids; twice, where it is of both kinds.

    Args:
        path: of the notebook, from the root of the project.
        cells: of the notebook.
    """
    helpers = functions_that_fail(cells)
    name = path.stem.lstrip("0123456789_").replace("_", "-")
    titles, section, taken = [path.stem], "", Counter[str]()
    for index, cell in enumerate(cells):
        source, kind, metadata = cell["source"], cell["cell_type"], cell["metadata"]
        for level, text in headings(source) if kind == "markdown" else ():
            titles.append(text)
            section = text if level == 2 else section
        for prefix, ids in by_kind(metadata.get("covers", [])):
            anchor = f"{name}-{prefix}{ids[0]}".lower()
            taken[anchor] += 1
            compared = "nbval-ignore-output" not in metadata.get("tags", [])
            yield Cell(
                page=path.with_suffix("").as_posix(),
                index=index,
                kind=kind,
                ids=ids,
                anchor=anchor + (f"-{taken[anchor]}" if taken[anchor] > 1 else ""),
                title=titles[min(1, len(titles) - 1)],
                heading=titles[-1],
                named=section == FROM_THE_SOURCES or chapter_of(path) is None,
                executed=bool(cell.get("execution_count"))
                and bool(cell["outputs"] or "assert" in source),
                shown=bool(cell.get("outputs")) and not HIDDEN.match(source),
                shows=kind == "code" and can_fail(source, helpers, compared),
            )


def by_kind(ids: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The ids of items and those of questions, each with the start of an anchor."""
    items = tuple(name for name in ids if ITEM.fullmatch(name))
    questions = tuple(name for name in ids if not ITEM.fullmatch(name))
    if items:
        yield "", items
    if questions:
        yield "answers-", questions


def can_fail(source: str, helpers: Collection[str] = (), compared: bool = True) -> bool:
    """Whether running code again fails once what it shows is no longer so.

    It does where it asserts something about a name, or where it prints an error that it
    catches: without the error the line would be missing.

    Args:
        source: of a cell.
        helpers: names of functions that assert: a call of one counts.
        compared: whether the replay of the chapters compares what the cell prints.
    """
    for node in _nodes_that_run(source):
        match node:
            case ast.Assert(test=test):
                if any(isinstance(part, ast.Name) for part in ast.walk(test)):
                    return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name in helpers or name.startswith("assert_"):
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
        for part in _statements(cell["source"])
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
    documents: Sequence[Mapping[str, Any]],
    questions: Sequence[Mapping[str, Any]],
    cells: Sequence[Cell],
) -> Iterator[str]:
    """What keeps the cells from covering everything, a sentence for each fault."""
    items = {item["id"]: item for document in documents for item in items_of(document)}
    mistakes = {name for name, item in items.items() if item["verdict"] in MISTAKES}
    asked = {question["id"] for question in questions}
    for cell in cells:
        where = f"{cell.page}, cell {cell.index}"
        for name, count in Counter(cell.ids).items():
            if count > 1 or name not in items.keys() | asked:
                yield f"{where}: the id {name!r} is unknown or repeated"
    for name in items.keys() | asked:
        carrying = [cell for cell in cells if name in cell.ids]
        if not carrying:
            yield f"{name} is in no cell"
        elif name in asked and not all(cell.executed for cell in carrying):
            yield f"{name}: a cell that should answer it shows nothing"
        elif name in asked and not any(cell.shown for cell in carrying):
            yield f"{name}: a check or a solution answers it, and no cell that is seen"
        elif name in mistakes and not any(cell.shows for cell in carrying):
            yield f"{name} is a mistake, and no cell with it can fail"
