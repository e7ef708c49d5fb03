"""Rules about the parts of a chapter, and all rules together.

A rule takes a notebook (one about files, its path as well) and yields a message for
each thing it finds wrong.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from book_tools import (
    cell_rules,
    chapter_rules,
    definitions,
    exercise_rules,
    link_rules,
    output_rules,
    pencil_page,
    repository,
    term_rules,
)
from book_tools.notebook_parts import (
    chapter_number,
    code_cells,
    headings,
    markdown_cells,
    section,
    sections,
)
from book_tools.template import (
    IDEAS,
    chapter_of,
    parts_of,
)


def _first(notebook: NotebookNode) -> str:
    return notebook.cells[0].source if notebook.cells else ""


def template(notebook: NotebookNode) -> Iterator[str]:
    """All parts are there, once and in order, and hold what they must hold."""
    titles = [part.title for part in sections(notebook)[1:]]
    parts = parts_of(titles, chapter_number(notebook))
    names = {
        title: " or ## ".join(part.titles) for part in parts for title in part.titles
    }
    found: list[str] = []
    for title in titles:
        name = names.get(title, IDEAS)
        if name != IDEAS or found[-1:] != [IDEAS]:
            found.append(name)
    for line in difflib.ndiff([names[part.titles[0]] for part in parts], found):
        if line.startswith("- "):
            yield f"section '## {line[2:]}' is missing, or not where it belongs"
        if line.startswith("+ "):
            yield f"section '## {line[2:]}' is repeated, or not where it belongs"
    for part in parts:
        for title in part.titles:
            cells = section(notebook, title).of_type("markdown")
            text, start = "\n".join(cell.source for _, cell in cells), 0
            for phrase in part.holds if cells else []:
                start = text.find(phrase, start)
                if start < 0:
                    yield f"section '## {title}': {phrase} is missing, or out of order"
                    break


def heading_levels(notebook: NotebookNode) -> Iterator[str]:
    """One level-1 heading, and no level skipped below it."""
    previous = 0
    for index, cell in markdown_cells(notebook):
        for level, text in headings(cell.source):
            if level == 1 and previous:
                yield f"cell {index}: second level-1 heading {text!r}"
            if level > previous + 1:
                yield f"cell {index}: heading {text!r} skips level {previous + 1}"
            previous = level


def number(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """The number in the title is the one in the name of the file."""
    number = chapter_number(notebook)
    if number is None or path.name[:2] != f"{number:02d}":
        yield f"title says {number}, the file is {path.name}"


def stamped(
    notebook: NotebookNode, path: Path, address: str | None = None
) -> Iterator[str]:
    """The bootstrap cell and the Colab link name the repository in _config.yml.

    Args:
        notebook: the notebook to read.
        path: where it is stored.
        address: the repository; by default the one in _config.yml.
    """
    address = address or repository.address()
    _, first = next(code_cells(notebook), (0, None))
    if first is None or first.source != repository.bootstrap(address):
        yield f"the first code cell must be:\n{repository.bootstrap(address)}"
    link = repository.colab_link(address, path.name)
    if f"[Open this chapter in Colab]({link})" not in _first(notebook):
        yield f"cell 0: must hold [Open this chapter in Colab]({link})"


RULES = [  # for every notebook
    heading_levels,
    *cell_rules.RULES,
    *output_rules.RULES,
    *link_rules.RULES,
]
FILE_RULES = [
    *output_rules.FILE_RULES,
    *link_rules.FILE_RULES,
    *definitions.FILE_RULES,
]
CHAPTER_RULES = [  # and for every chapter
    template,
    cell_rules.asserts,
    *chapter_rules.RULES,
    exercise_rules.ladder,
    pencil_page.pencil,
]
CHAPTER_FILE_RULES = [number, stamped, *term_rules.FILE_RULES]


def complaints(path: Path) -> list[str]:
    """What all rules find wrong with a notebook, each after the rule's name.

    A page whose name starts with no number is no chapter: it needs no exercises.

    Args:
        path: where the notebook is stored, beside what it links to.
    """
    notebook = nbformat.read(path, as_version=4)
    rules, file_rules = [*RULES], [*FILE_RULES]
    if chapter_of(path) is not None:
        rules += CHAPTER_RULES
        file_rules += CHAPTER_FILE_RULES
    found = [(rule, rule(notebook)) for rule in rules]
    found += [(rule, rule(notebook, path)) for rule in file_rules]
    return [
        f"{rule.__name__}: {message}"
        for rule, messages in found
        for message in messages
    ]
