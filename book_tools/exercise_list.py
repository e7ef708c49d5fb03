"""The page of exercises: a list of them all, made of the chapters.

    python -m book_tools.exercise_list

writes the list into the cell of `book/exercises.ipynb` whose metadata says
`"generated": "exercises"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat

from book_tools.exercise_rules import LEVEL
from book_tools.notebook_parts import headings, section, slug
from book_tools.notebooks import stored_text
from book_tools.template import chapter_of
from book_tools.toc import ROOT, notebook_pages

PAGE = Path("book/exercises.ipynb")
MARK = "exercises"
HEADING = re.compile(r"Exercise (\d+)\.(\d+) — (.+)")


@dataclass(frozen=True)
class Exercise:
    """An exercise as the page lists it.

    Attributes:
        chapter: the title of its chapter.
        file: the chapter's notebook.
        heading: such as "Exercise 4.1 — A mask for padding".
        dots: how hard it is, one to three filled dots.
        minutes: how long it takes; "open" without an end.
    """

    chapter: str
    file: str
    heading: str
    dots: str
    minutes: str


def read_exercises(root: Path = ROOT) -> Iterator[Exercise]:
    """All exercises of all chapters, in the order of the book."""
    for path in notebook_pages(root):
        if chapter_of(path) is None:
            continue
        notebook = nbformat.read(path, as_version=4)
        chapter = headings(notebook.cells[0].source)[0][1]
        for _, cell in section(notebook, "Exercises").of_type("markdown"):
            for level, text in headings(cell.source):
                dots, _, minutes = _level(cell.source).partition(" ")
                if level == 3 and HEADING.fullmatch(text):
                    yield Exercise(chapter, path.name, text, dots, minutes)


def _level(source: str) -> str:
    return next(filter(LEVEL.fullmatch, source.splitlines()), " ")


def listing(exercises: Iterable[Exercise]) -> str:
    """The exercises in Markdown: a heading for each chapter, a line for each one."""
    lines: list[str] = []
    chapter = None
    for one in exercises:
        match = HEADING.fullmatch(one.heading)
        if one.chapter != chapter:
            chapter = one.chapter
            lines += ["", f"### [{chapter}]({one.file})", ""]
        link = f"[{match[1]}.{match[2]} {match[3]}]({one.file}#{slug(one.heading)})"
        lines.append(f"- {one.dots} {link}, {one.minutes}")
    return "\n".join(lines).strip()


def update(root: Path = ROOT) -> bool:
    """Write the list into its page; say whether the page has changed."""
    path = root / PAGE
    notebook = nbformat.read(path, as_version=4)
    [cell] = [c for c in notebook.cells if c.metadata.get("generated") == MARK]
    cell.source = listing(read_exercises(root))
    text = stored_text(notebook)
    changed = text != path.read_text(encoding="utf-8")
    if changed:
        path.write_text(text, encoding="utf-8")
    return changed


if __name__ == "__main__":
    update()
