"""The questions of learners, and the cells of the book that answer them by running.

`book/questions.yml` lists the questions by topic: where each was asked in public, and
its answer. A code cell that shows an answer carries the question's id in its metadata,
`"answers": ["scale-by-root-d"]`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from book_tools.notebook_parts import headings
from book_tools.toc import ROOT, notebook_pages

QUESTIONS = Path("book/questions.yml")
SENTENCE_END = re.compile(r"[.?!:][)\"*`]*(?= [A-Z`$*\"(]|$)")
MOST_SENTENCES = 3


@dataclass(frozen=True)
class Question:
    """What learners ask.

    Attributes:
        id: what a cell names it by.
        topic: the section of the page that it stands in.
        question: one sentence.
        asked: addresses of the pages where somebody asked it.
        answer: two or three sentences, in Markdown.
    """

    id: str
    topic: str
    question: str
    asked: tuple[str, ...]
    answer: str


@dataclass(frozen=True)
class AnsweringCell:
    """A code cell that answers questions.

    Attributes:
        page: as in `_toc.yml`, such as book/04_masks.
        index: of the cell in its notebook.
        ids: of the questions.
        anchor: the label of the cell, unique in the book.
        title: of the page.
        heading: the nearest one above the cell.
        executed: whether the cell was run, and shows or asserts something.
    """

    page: str
    index: int
    ids: tuple[str, ...]
    anchor: str
    title: str
    heading: str
    executed: bool


def read_questions(root: Path = ROOT) -> list[Question]:
    """All questions, topic by topic."""
    entries = yaml.safe_load((root / QUESTIONS).read_text(encoding="utf-8"))
    return [Question(**{**entry, "asked": tuple(entry["asked"])}) for entry in entries]


def read_answering_cells(root: Path = ROOT) -> list[AnsweringCell]:
    """Every cell of the book that answers a question, in the order of the book."""
    found: list[AnsweringCell] = []
    for path in notebook_pages(root):
        page = path.relative_to(root).with_suffix("").as_posix()
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found += answering_cells(page, cells)
    return found


def answering_cells(
    page: str, cells: Sequence[Mapping[str, Any]]
) -> Iterator[AnsweringCell]:
    """The cells of one notebook that answer a question.

    Args:
        page: the notebook as the table of contents names it.
        cells: the cells of the notebook's JSON.
    """
    name = page.rpartition("/")[2].lstrip("0123456789_").replace("_", "-")
    titles: list[str] = []
    taken = Counter[str]()
    for index, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            titles += [text for _, text in headings(source)]
        elif ids := cell["metadata"].get("answers"):
            taken[ids[0]] += 1
            number = f"-{taken[ids[0]]}" if taken[ids[0]] > 1 else ""
            yield AnsweringCell(
                page=page,
                index=index,
                ids=tuple(ids),
                anchor=f"{name}-answers-{ids[0]}{number}",
                title=titles[0] if titles else page,
                heading=titles[-1] if titles else page,
                executed=cell["execution_count"] is not None
                and bool(cell["outputs"] or re.search(r"\bassert", source)),
            )


def problems(
    questions: Sequence[Question], cells: Sequence[AnsweringCell]
) -> Iterator[str]:
    """What is wrong with questions and answers, a sentence for each fault."""
    for name, count in Counter(question.id for question in questions).items():
        if count > 1:
            yield f"the question {name!r} is listed {count} times"
    known = {question.id for question in questions}
    for cell in cells:
        where = f"{cell.page}, cell {cell.index}"
        for name in cell.ids:
            if name not in known:
                yield f"{where}: answers {name!r}, but there is no such question"
        if not cell.executed:
            yield f"{where}: answers {', '.join(cell.ids)}, but shows nothing"
    for question in questions:
        if not any(question.id in cell.ids and cell.executed for cell in cells):
            yield f"{question.id}: no executed cell answers it"
        if not question.question.endswith("?"):
            yield f"{question.id}: {question.question!r} does not end with '?'"
        sentences = len(SENTENCE_END.findall(question.answer.strip()))
        if not 1 <= sentences <= MOST_SENTENCES:
            yield f"{question.id}: the answer has {sentences} sentences, not 2"
        for address in question.asked or [""]:
            if not re.fullmatch(r"https?://[^\s/]+\.[^\s/]+/\S+", address):
                yield f"{question.id}: {address!r} is no address of a page"
