"""The page of exercises lists those of all chapters."""

from __future__ import annotations

import nbformat
import pytest

from book_tools.exercise_list import MARK, PAGE, Exercise, listing, read_exercises
from book_tools.toc import ROOT, chapters

EXERCISES = list(read_exercises())


def test_the_page_holds_the_list() -> None:
    notebook = nbformat.read(ROOT / PAGE, as_version=4)
    [cell] = [c for c in notebook.cells if c.metadata.get("generated") == MARK]
    if cell.source != listing(EXERCISES):
        pytest.fail("run python -m book_tools.exercise_list", pytrace=False)


def test_every_chapter_has_exercises_and_ends_with_an_open_one() -> None:
    by_file: dict[str, list[Exercise]] = {}
    for one in EXERCISES:
        by_file.setdefault(one.file, []).append(one)
    assert list(by_file) == [path.name for path in chapters()]
    assert all(group[-1].minutes == "open" for group in by_file.values())
    assert all(len(group) >= 4 for group in by_file.values())


def test_a_line_links_to_its_exercise() -> None:
    heading = "Exercise 4.1 — The decoder's mask"
    one = Exercise("4. Masks", "04_masks.ipynb", heading, "●○○", "5 minutes")
    assert listing([one]).splitlines() == [
        "### [4. Masks](04_masks.ipynb)",
        "",
        "- ●○○ [4.1 The decoder's mask](04_masks.ipynb#exercise-41--the-decoders-mask)"
        ", 5 minutes",
    ]
