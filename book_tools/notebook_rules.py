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

from book_tools import cell_rules, link_rules, output_rules, repository, term_rules
from book_tools.notebook_parts import (
    Section,
    chapter_number,
    headings,
    is_solution,
    markdown_cells,
    printed_text,
    sections,
    tags,
)
from book_tools.template import IDEAS, SETUP_TAGS, SOLUTION_METADATA, template_of

CHECK = re.compile(r"\bcheck_\w+(?=\()")


def _section(notebook: NotebookNode, title: str) -> Section:
    found = (section for section in sections(notebook) if section.title == title)
    return next(found, Section(title))


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
    titles = [section.title for section in sections(notebook)[1:]]
    parts = template_of(titles)
    found: list[str] = []
    for name in titles:
        part = name if name in parts else IDEAS
        if part != IDEAS or found[-1:] != [IDEAS]:
            found.append(part)
    for line in difflib.ndiff(list(parts), found):
        if line.startswith("- "):
            yield f"section '## {line[2:]}' is missing, or not where it belongs"
        if line.startswith("+ "):
            yield f"section '## {line[2:]}' is repeated, or not where it belongs"
    for part, phrases in parts.items():
        cells = _section(notebook, part).of_type("markdown")
        text, start = "\n".join(cell.source for _, cell in cells), 0
        for phrase in phrases if cells else []:
            start = text.find(phrase, start)
            if start < 0:
                yield f"section '## {part}': {phrase} is missing, or out of order"
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
    cells = _section(notebook, "Setup").of_type("code")
    if len(cells) != len(SETUP_TAGS):
        yield f"section '## Setup': {len(cells)} code cells, not {len(SETUP_TAGS)}"
    for (index, cell), tag in zip(cells, SETUP_TAGS, strict=False):
        if tag not in tags(cell):
            yield f"cell {index}: must carry the tag {tag!r}"
    for section in sections(notebook):
        if section.title == "Setup":
            return
        for index, _ in section.of_type("code"):
            yield f"cell {index}: code before Setup"


def exercises(notebook: NotebookNode) -> Iterator[str]:
    """Each is a task, a stub that checks, and a hidden solution that passes."""
    cells = _section(notebook, "Exercises").cells
    found = 0
    for n, (index, cell) in enumerate(cells):
        names = [text for level, text in headings(cell.source) if level == 3]
        if cell.cell_type != "markdown" or not names:
            continue
        found += 1
        number = f"{chapter_number(notebook)}.{found}"
        if not re.fullmatch(rf"Exercise {re.escape(number)} — \S.*", names[0]):
            yield f"cell {index}: heading {names[0]!r}, not 'Exercise {number} — Title'"
        following = [cell for _, cell in cells[n + 1 : n + 3]]
        if [cell.cell_type for cell in following] != ["code", "code"]:
            yield f"cell {index}: a stub and a solution must follow as code cells"
            continue
        stub, solution = following
        yield from _stub(index + 1, stub)
        yield from _solution(index + 2, solution, number)
        if set(CHECK.findall(stub.source)) - set(CHECK.findall(solution.source)):
            yield f"cell {index + 2}: solution does not pass the check of its stub"
    for section in sections(notebook):
        for index, cell in section.of_type("code"):
            if is_solution(cell) and section.title != "Exercises":
                yield f"cell {index}: solution outside the Exercises"


def _stub(index: int, cell: NotebookNode) -> Iterator[str]:
    if is_solution(cell):
        yield f"cell {index}: solution without a stub before it"
        return
    lines = cell.source.rstrip().splitlines() or [""]
    if not CHECK.search(cell.source) or not re.search(r"check_\w+\(|^\)", lines[-1]):
        yield f"cell {index}: stub must end with the call of its check_ function"
    printed = "".join(printed_text(output) for output in cell.outputs)
    if "not attempted yet" not in printed.lower():
        yield f"cell {index}: stub must print 'not attempted yet'"


def _solution(index: int, cell: NotebookNode, number: str) -> Iterator[str]:
    first = cell.source.partition("\n")[0]
    if first != f"# @title Solution {number}":
        yield f"cell {index}: first line {first!r}, not '# @title Solution {number}'"
    for key, value in SOLUTION_METADATA.items():
        if cell.metadata.get(key) != value:
            yield f"cell {index}: solution must have metadata {key!r}: {value!r}"


def number(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """The number in the title is the one in the name of the file."""
    if path.name[:2] != f"{chapter_number(notebook) or 0:02d}":
        yield f"title says {chapter_number(notebook)}, the file is {path.name}"


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
    cells = _section(notebook, "Setup").of_type("code")
    if not cells or cells[0][1].source != repository.bootstrap(address):
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
FILE_RULES = [*output_rules.FILE_RULES, *link_rules.FILE_RULES]
CHAPTER_RULES = [title, template, setup, exercises, cell_rules.asserts]
CHAPTER_FILE_RULES = [number, stamped, *term_rules.FILE_RULES]


def complaints(path: Path) -> list[str]:
    """What all rules find wrong with a notebook, each after the rule's name.

    A page whose name starts with no number is no chapter: it needs no exercises.

    Args:
        path: where the notebook is stored, beside what it links to.
    """
    notebook = nbformat.read(path, as_version=4)
    is_chapter = re.match(r"\d+_", path.name)
    rules = [*RULES, *(CHAPTER_RULES if is_chapter else [])]
    file_rules = [*FILE_RULES, *(CHAPTER_FILE_RULES if is_chapter else [])]
    found = [(rule, rule(notebook)) for rule in rules]
    found += [(rule, rule(notebook, path)) for rule in file_rules]
    return [
        f"{rule.__name__}: {message}"
        for rule, messages in found
        for message in messages
    ]
