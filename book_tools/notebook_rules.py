"""Rules about the parts of a chapter, and all rules together.

A rule takes a notebook (one about files, its path as well) and yields a message for
each thing it finds wrong.
"""

from __future__ import annotations

import difflib
import re
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
    tags,
)
from book_tools.template import (
    IDEAS,
    SETUP_TAGS,
    chapter_of,
    is_new_form,
    parts_of,
)


def _first(notebook: NotebookNode) -> str:
    return notebook.cells[0].source if notebook.cells else ""


def title(notebook: NotebookNode) -> Iterator[str]:
    """The first cell is the title: number, link to Colab and the question."""
    if chapter_number(notebook) is None:
        yield "cell 0: must start with a title such as '# 1. Embeddings'"
        return
    text = re.sub(r"^# .*|\[Open this chapter in Colab\]\(.*?\)", "", _first(notebook))
    if not text.strip():
        yield "cell 0: no sentence with the question that the chapter answers"


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


def setup(notebook: NotebookNode) -> Iterator[str]:
    """Two cells: the bootstrap, unseen in the book, and the hidden imports."""
    cells = section(notebook, "Setup").of_type("code")
    if len(cells) != len(SETUP_TAGS):
        yield f"section '## Setup': {len(cells)} code cells, not {len(SETUP_TAGS)}"
    for (index, cell), tag in zip(cells, SETUP_TAGS, strict=False):
        if tag not in tags(cell):
            yield f"cell {index}: must carry the tag {tag!r}"
    for part in sections(notebook):
        if part.title == "Setup":
            return
        for index, _ in part.of_type("code"):
            yield f"cell {index}: code before Setup"


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
CHAPTER_RULES = [template, cell_rules.asserts]  # and for every chapter
CHAPTER_FILE_RULES = [number, stamped, *term_rules.FILE_RULES]
BY_PROMISES_RULES = [title, setup, exercise_rules.exercises]  # the first template
BY_CLASS_RULES = [  # the second
    *chapter_rules.RULES,
    exercise_rules.ladder,
    pencil_page.pencil,
]


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
        rules += BY_CLASS_RULES if is_new_form(notebook) else BY_PROMISES_RULES
        file_rules += CHAPTER_FILE_RULES
    found = [(rule, rule(notebook)) for rule in rules]
    found += [(rule, rule(notebook, path)) for rule in file_rules]
    return [
        f"{rule.__name__}: {message}"
        for rule, messages in found
        for message in messages
    ]
