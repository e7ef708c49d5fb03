"""The template of a chapter: which parts there are, and in which order."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

IDEAS = "(the chapter's own sections)"


@dataclass(frozen=True)
class Part:
    """A part of a chapter.

    Attributes:
        titles: the headings it may have.
        holds: what its text must hold, in this order.
        needed: the chapters that must have it.
        allowed: the chapters where the heading means this part. In others it is one of
            the chapter's own.
    """

    titles: tuple[str, ...]
    holds: tuple[str, ...] = ()
    needed: range = range(100)
    allowed: range = range(100)


WHERE_WE_ARE = "Where we are"
PROMISES = "By the end, you'll be able to"
FROM_THE_SOURCES = "From the sources"
CLASS = Part(
    ("The class", "The classes", "The function", "The functions", "The model"),
    ("import",),
    needed=range(1, 13),
    allowed=range(1, 100),
)
PARTS = [
    Part((WHERE_WE_ARE,), (PROMISES,)),
    Part((IDEAS,)),
    CLASS,
    Part(("Common bugs",)),
    Part(("What you can do now",), ("](",)),
    Part(("Exercises",), ("### Exercise",)),
    Part((FROM_THE_SOURCES,), needed=range(1, 9), allowed=range(1, 100)),
    Part(("Further reading",), ("](http", "Next: [")),
]
OFF_THE_PATH = {"Exercises", FROM_THE_SOURCES, "Further reading"}
OPTIONAL = " *(optional)*"  # ends the heading of a section off the core path

# The two code cells before the rest: a tag that each must carry.
SETUP_TAGS = ["remove-cell", "hide-input"]  # the bootstrap, unseen in the book; imports

# What folds a cell away in the book, in Colab and in JupyterLab.
SOLUTION_METADATA = {
    "cellView": "form",
    "jupyter": {"source_hidden": True},
    "mystnb": {"code_prompt_show": "Show the solution"},
    "tags": ["hide-cell"],
}
CHECKS_METADATA = SOLUTION_METADATA | {
    "mystnb": {"code_prompt_show": "Show the checks"}
}
CHECKS = "# @title Checks"  # the first line of such a cell

# A question, the cell that answers it, and why, the last two folded in the book.
PROMPT = "> **Before you run the next cell.** "
ANSWER = "Show what happens"
WHY = "<details><summary>Why?</summary>"


def chapter_of(path: Path) -> int | None:
    """The chapter that a file belongs to by its name; None for any other page."""
    match = re.match(r"(\d+)_", path.name)
    return int(match.group(1)) if match else None


def parts_of(titles: Collection[str], chapter: int | None) -> list[Part]:
    """The parts that a chapter with these sections must have."""
    number = 1 if chapter is None else chapter
    return [
        part
        for part in PARTS
        if number in part.needed
        or (number in part.allowed and not set(part.titles).isdisjoint(titles))
    ]


def is_core(title: str) -> bool:
    """Whether a section is on the core path of a chapter."""
    return title not in OFF_THE_PATH and not title.endswith(OPTIONAL)
