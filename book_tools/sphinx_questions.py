"""Sphinx extension: the page of questions, with links to the cells that answer them.

The page `book/questions` gets all questions, grouped by topic, where it says
`{{ questions }}`, and their numbers where it says `{{ counts }}`. Every cell that
answers one gets an anchor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from sphinx.application import Sphinx

from book_tools.questions import (
    QUESTIONS,
    AnsweringCell,
    Question,
    read_answering_cells,
    read_questions,
)
from book_tools.toc import notebook_pages

PAGE = "book/questions"


def list_questions(
    questions: Iterable[Question], cells: Sequence[AnsweringCell]
) -> str:
    """All questions as Markdown: a heading for each topic, a card for each question."""
    parts = []
    for topic, group in groupby(questions, key=lambda question: question.topic):
        parts.append(f"## {topic}")
        parts += [card(question, cells) for question in group]
    return "\n\n".join(parts)


def counts(questions: Sequence[Question], cells: Sequence[AnsweringCell]) -> str:
    """How many questions there are, and how many cells answer them."""
    topics = {question.topic for question in questions}
    return (
        f"{len(questions)} questions on {len(topics)} topics, answered by "
        f"{len(cells)} cells of the book"
    )


def card(question: Question, cells: Iterable[AnsweringCell]) -> str:
    """A question, its answer, and where the answer runs and the question was asked."""
    shown = [cell for cell in cells if question.id in cell.ids]
    run = "; ".join(f"[{cell_name(cell)}](#{cell.anchor})" for cell in shown)
    asked = ", ".join(f"[{address_name(url)}]({url})" for url in question.asked)
    return f"""\
:::{{container}} question
:name: question-{question.id}

**{question.question}**

{question.answer.strip()}

Run it: {run}. Asked at {asked}.
:::"""


def cell_name(cell: AnsweringCell) -> str:
    """The chapter and the section of a cell; a heading may hold a link."""
    text = cell.title + (f", {cell.heading}" if cell.heading != cell.title else "")
    return re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text.replace(" *(optional)*", ""))


def address_name(address: str) -> str:
    """A repository with the number of its thread, or the name of the site."""
    parts = urlsplit(address)
    if parts.hostname == "github.com":
        match parts.path.strip("/").split("/"):
            case [owner, name, "issues" | "pull" | "discussions", number, *_]:
                return f"{owner}/{name} {number}"
            case [owner, name, *_]:
                return f"{owner}/{name}"
    return (parts.hostname or "").removeprefix("www.")


# --- Sphinx ---------------------------------------------------------------------------


def on_builder_inited(app: Sphinx) -> None:
    """Read the cells that answer questions, once a build."""
    app.book_answers = read_answering_cells(Path(app.srcdir))


def on_source_read(app: Sphinx, page: str, source: list[str]) -> None:
    """Write the questions into their page."""
    if page != PAGE:
        return
    root = Path(app.srcdir)
    questions = read_questions(root)
    for mark, text in (
        ("{{ questions }}", list_questions(questions, app.book_answers)),
        ("{{ counts }}", counts(questions, app.book_answers)),
    ):
        source[0] = source[0].replace(mark, text)
    for path in (root / QUESTIONS, *notebook_pages(root)):
        app.env.note_dependency(str(path))


def on_doctree_read(app: Sphinx, doctree: nodes.document) -> None:
    """Give every cell that answers a question its anchor."""
    page = app.env.docname
    marked = {cell.index: cell for cell in app.book_answers if cell.page == page}
    for node in doctree.findall(nodes.container):
        cell = marked.get(node.get("cell_index"))
        if cell and node.get("nb_element") == "cell_code":
            node["ids"].append(cell.anchor)
            app.env.domains["std"].note_hyperlink_target(cell.anchor, page, cell.anchor)


def on_page_context(app: Sphinx, page: str, *_: Any) -> None:
    """Give the page its script."""
    if page == PAGE:
        app.add_js_file("questions.js", loading_method="defer")
        app.add_css_file("questions.css")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the events."""
    app.connect("builder-inited", on_builder_inited)
    app.connect("source-read", on_source_read)
    app.connect("doctree-read", on_doctree_read)
    app.connect("html-page-context", on_page_context)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
