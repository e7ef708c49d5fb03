"""Rules about the parts of a chapter, and the list of all rules.

A rule takes a notebook and yields a message for each thing it finds wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from nbformat import NotebookNode

from book_tools import cell_rules, link_rules, output_rules, repository, term_rules
from book_tools.normal_form import chapter_number, read
from book_tools.notebook_parts import (
    BEFORE_IDEAS,
    MATH,
    Section,
    headings,
    is_solution,
    markdown_cells,
    printed_text,
    sections,
    tags,
    without_code,
)

AFTER_IDEAS = [
    "The library's version",
    "Common mistakes",
    "Summary",
    "Exercises",
    "Further reading",
]
PROMISES = ["**You will build**", "**You will learn**", "**You need**"]
EXERCISE = re.compile(r"Exercise (\d+)\.(\d+) — \S.*")
CHECK = re.compile(r"\bcheck_\w+(?=\()")


def _section(notebook: NotebookNode, title: str) -> Section:
    found = (section for section in sections(notebook) if section.title == title)
    return next(found, Section(title))


def title(notebook: NotebookNode) -> Iterator[str]:
    """The first cell is the title: number, link to Colab and the question."""
    if not chapter_number(notebook):
        yield "cell 0: must start with a title such as '# 1. Embeddings'"
        return
    text = re.sub(r"^# .*|\[Open this chapter in Colab\]\(.*?\)", "", _first(notebook))
    if not text.strip():
        yield "cell 0: no sentence with the question that the chapter answers"


def _first(notebook: NotebookNode) -> str:
    return notebook.cells[0].source if notebook.cells else ""


def template(notebook: NotebookNode) -> Iterator[str]:
    """All parts are there, once, and in order."""
    found = [section.title for section in sections(notebook)[1:]]
    parts = BEFORE_IDEAS + AFTER_IDEAS
    for part in parts:
        if found.count(part) != 1:
            yield f"section '## {part}': found {found.count(part)} times, expected once"
    order = [title for title in found if title in parts]
    for before, after in pairwise(order):
        if parts.index(before) > parts.index(after):
            yield f"section '## {after}' must stand before '## {before}'"
    ideas = [title for title in found if title not in parts]
    if not 3 <= len(ideas) <= 6:
        yield f"{len(ideas)} idea sections, expected three to six: {ideas}"
    framed = [title for title in found if title in ideas + ["Setup", AFTER_IDEAS[0]]]
    for name in framed[: framed.index("Setup")] if "Setup" in framed else []:
        yield f"section '## {name}' must stand after Setup"
    if AFTER_IDEAS[0] in framed:
        for name in framed[framed.index(AFTER_IDEAS[0]) + 1 :]:
            yield f"section '## {name}' must stand before '## {AFTER_IDEAS[0]}'"


def promises(notebook: NotebookNode) -> Iterator[str]:
    """The opening says what you will build and learn, and what you need."""
    cells = _section(notebook, BEFORE_IDEAS[0]).of_type("markdown")
    text = "\n".join(cell.source for _, cell in cells)
    places = [text.find(promise) for promise in PROMISES]
    for promise, place in zip(PROMISES, places, strict=True):
        if place < 0:
            yield f"section '## {BEFORE_IDEAS[0]}': {promise} is missing"
    if -1 not in places and places != sorted(places):
        yield f"section '## {BEFORE_IDEAS[0]}': expected the order {PROMISES}"


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
    if len(cells) != 2:
        yield f"section '## Setup': {len(cells)} code cells, expected two"
    wanted = ["remove-cell", "hide-input"]
    for (index, cell), tag in zip(cells, wanted, strict=False):
        if tag not in tags(cell):
            yield f"cell {index}: must carry the tag {tag!r}"
    for section in sections(notebook)[:2]:
        for index, _ in section.of_type("code"):
            yield f"cell {index}: code before Setup"


def stamped(notebook: NotebookNode, address: str, file_name: str) -> Iterator[str]:
    """The bootstrap cell and the Colab link name the repository in _config.yml.

    Args:
        notebook: the notebook to read.
        address: the repository in _config.yml.
        file_name: the notebook's name, such as 01_embeddings.ipynb.
    """
    cells = _section(notebook, "Setup").of_type("code")
    if not cells or cells[0][1].source != repository.bootstrap(address):
        yield f"the first code cell must be:\n{repository.bootstrap(address)}"
    link = repository.colab_link(address, file_name)
    if f"[Open this chapter in Colab]({link})" not in _first(notebook):
        yield f"cell 0: must hold [Open this chapter in Colab]({link})"


def exercises(notebook: NotebookNode) -> Iterator[str]:
    """Three to five, each a task, a stub that checks, and a hidden solution."""
    section = _section(notebook, "Exercises")
    cells = section.cells
    number, found = chapter_number(notebook), 0
    for place, (index, cell) in enumerate(cells):
        names = [text for level, text in headings(cell.source) if level == 3]
        if cell.cell_type != "markdown" or not names:
            continue
        for name in names:
            found += 1
            wanted = f"Exercise {number}.{found} — "
            if not (EXERCISE.fullmatch(name) and name.startswith(wanted)):
                yield f"cell {index}: heading {name!r}, expected '{wanted}short title'"
        following = [cell for _, cell in cells[place + 1 : place + 3]]
        if [cell.cell_type for cell in following] != ["code", "code"]:
            yield f"cell {index}: a stub and a solution must follow as code cells"
            continue
        yield from _stub(index + 1, following[0])
        yield from _solution(index + 2, following[1], f"{number}.{found}")
        if set(CHECK.findall(following[0].source)) - set(
            CHECK.findall(following[1].source)
        ):
            yield f"cell {index + 2}: solution does not pass the check of its stub"
    if not 3 <= found <= 5:
        yield f"{found} exercises, expected three to five"


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
    if not CHECK.search(cell.source):
        yield f"cell {index}: solution calls no check_ function"
    if "hide-cell" not in tags(cell):
        yield f"cell {index}: solution must carry the tag 'hide-cell'"
    wanted = {
        "cellView": "form",
        "jupyter": {"source_hidden": True},
        "mystnb": {"code_prompt_show": "Show the solution"},
    }
    for key, value in wanted.items():
        if cell.metadata.get(key) != value:
            yield f"cell {index}: solution must have metadata {key!r}: {value!r}"


def stray_solutions(notebook: NotebookNode) -> Iterator[str]:
    """A solution belongs to an exercise of its section."""
    for section in sections(notebook):
        for index, cell in section.of_type("code"):
            if is_solution(cell) and section.title != "Exercises":
                yield f"cell {index}: solution outside the Exercises"


def endings(notebook: NotebookNode) -> Iterator[str]:
    """A summary of five sentences at most, and three links at most."""
    for index, cell in _section(notebook, "Summary").of_type("markdown"):
        text = MATH.sub("x", without_code(cell.source))
        count = len(re.findall(r"[.?!](?=\s|$)", re.sub(r"\b(e\.g|i\.e)\.", "", text)))
        if count > 5:
            yield f"cell {index}: summary of {count} sentences, at most five"
    cells = _section(notebook, "Further reading").of_type("markdown")
    text = "\n".join(cell.source for _, cell in cells)
    count = len(re.findall(r"\]\(https?://|<https?://", text))
    if not 1 <= count <= 3:
        yield f"section '## Further reading': {count} links, expected one to three"


RULES = [
    title,
    template,
    promises,
    heading_levels,
    setup,
    exercises,
    stray_solutions,
    endings,
    *cell_rules.RULES,
    *output_rules.RULES,
    *link_rules.RULES,
]


def number_matches(notebook: NotebookNode, number: int) -> Iterator[str]:
    """The number in the title is the chapter's place in the table of contents."""
    if chapter_number(notebook) != number:
        yield f"title says {chapter_number(notebook)}, table of contents {number}"


def file_rules(path: Path, address: str) -> Iterator[str]:
    """What a notebook alone does not tell: its stored form, links and address."""
    notebook = read(path)
    yield from output_rules.stored_form(path)
    yield from link_rules.broken_links(notebook, path)
    yield from term_rules.unlinked_terms(notebook, path)
    yield from stamped(notebook, address, path.name)
