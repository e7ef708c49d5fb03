"""Sphinx extension: pages made of cards, with links to the cells that they speak of.

`book/sources` lists every item of `book/sources.yml`, `book/errata` the mistakes among
them with the cells that show these, `book/questions` what is in `book/questions.yml`,
`book/exercises` the exercises of all chapters, `book/check_yourself` questions on each
chapter, to which a line in the chapter leads. The lists are written as Markdown where
a page says `<!-- items -->` or the like. Every cell that carries ids gets an anchor,
and in the section "From the sources", which is folded away, a line that leads back.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat
from docutils import nodes
from sphinx.application import Sphinx

from book._ext import cards, checks
from book._ext.cards import Cell
from book._ext.notebook_parts import DONE, headings, section, slug
from book._ext.sphinx_book import load_files
from book._ext.toc import chapters, notebook_pages

# verdict: sign, word, what introduces the truth of an item
VERDICTS = {
    "correct": ("✓", "correct", "Checked"),
    "correct-with-caveat": ("±", "correct, with a caveat", "Caveat"),
    "ambiguous": ("?", "ambiguous", "Made precise"),
    "wrong": ("✗", "wrong", "What is true"),
    "unverifiable-here": ("○", "cannot be checked here", "Why"),
}
FOLD = (
    '<details class="from-the-sources">'
    "<summary>Show what the five documents say differently</summary>"
)


def card(name: str, kind: str, *paragraphs: str) -> str:
    """A box that a link can lead to."""
    text = "\n\n".join(paragraphs)
    return f":::{{container}} {kind}\n:name: {name}\n\n{text}\n:::"


def cell_links(cells: Iterable[Cell]) -> str:
    """Links to cells, named by chapter and heading, and a number where these repeat."""
    links, named = [], Counter[str]()
    for cell in cells:
        text = cell.title + (f", {cell.heading}" if cell.heading != cell.title else "")
        text = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text)  # a heading may hold a link
        text = text.replace(" *(optional)*", "")
        named[text] += 1
        number = f" ({named[text]})" if named[text] > 1 else ""
        links.append(f"[{text}{number}](#{cell.anchor})")
    return "; ".join(links)


# --- sources and errata ---------------------------------------------------------------


def list_items(root: Path, cells: Sequence[Cell], errata: bool) -> str:
    """How many items there are, then section by section.

    Args:
        root: of the project.
        cells: those that carry ids.
        errata: whether to take the mistakes alone, and the cells that show them.
    """
    verdicts = list(VERDICTS)
    if errata:
        verdicts = [name for name in VERDICTS if name in cards.MISTAKES]
        cells = [cell for cell in cells if cell.shows]
    counts, blocks = {}, []
    for document in cards.read(cards.SOURCES, root):
        title = f"{document['short']}: {document['title']}"
        counts[title] = Counter(item["verdict"] for item in cards.items_of(document))
        blocks += [f"## {title}", document["source"]]
        for group in document["sections"]:
            items = [item for item in group["items"] if item["verdict"] in verdicts]
            if items:
                blocks.append(summary(group["title"], items, errata))
                blocks += [item_card(item, cells, errata) for item in items]
                blocks.append("</details>")
    return "\n\n".join([count_items(counts, verdicts), *blocks])


def count_items(counts: dict[str, Counter[str]], verdicts: Sequence[str]) -> str:
    """A table: how many items of each verdict a document has."""
    signs = [VERDICTS[name][0] for name in verdicts]
    lines = [["Document", *signs, "Items"], ["---", *["--:"] * (len(signs) + 1)]]
    everything = sum(counts.values(), Counter())
    for title, count in {**counts, "All": everything}.items():
        numbers = [count[name] for name in verdicts]
        lines.append([title, *numbers, sum(numbers)])
    table = "\n".join(" | ".join(map(str, line)) for line in lines)
    return f":::{{container}} source-counts\n{table}\n:::"


def summary(title: str, items: Sequence[Mapping[str, str]], unfolded: bool) -> str:
    """What stands above the items of a section, and folds them away."""
    count = Counter(item["verdict"] for item in items)
    counts = ", ".join(
        f"{count[verdict]} {word.replace(', ', ' ')}"
        for verdict, (_, word, _) in VERDICTS.items()
        if count[verdict]
    )
    opened = " open" if unfolded else ""
    return (
        f'<details class="source-section"{opened}><summary>'
        f'<span class="source-section-title">{escape(title)}</span> '
        f"<small>{counts}</small></summary>"
    )


def item_card(item: Mapping[str, str], cells: Sequence[Cell], erratum: bool) -> str:
    """What a document says, whether it holds, what is true, and links to the cells."""
    sign, word, lead = VERDICTS[item["verdict"]]
    kind = item["kind"].replace("-", " ")
    noun = "line" if item["lines"].isdigit() else "lines"
    name = label(item["id"])
    return card(
        name.replace("source", "erratum") if erratum else name,
        f"source-item verdict-{item['verdict']}",
        f"{with_links(item['id'])} [{sign} {word}]{{.source-verdict}} {kind}, "
        f"{noun} {item['lines'].replace('-', '–')}",
        with_links(item["says"]),
        f"**{lead}:** {with_links(item['truth'])}",
        f"**{'Shown in' if erratum else 'In the book'}:** "
        + cell_links(cell for cell in cells if item["id"] in cell.ids),
    )


def label(name: str) -> str:
    """What a link leads to an item by: S3-12 gives source-s3-12."""
    return f"source-{name.lower()}"


def with_links(text: str) -> str:
    """Turn every id in a text into a link to its item."""
    return re.sub(r"\bS\d-\d\d\b", lambda m: f"[{m[0]}](#{label(m[0])})", text)


# --- questions and exercises ----------------------------------------------------------


def list_questions(root: Path, cells: Sequence[Cell]) -> str:
    """A heading for each topic, a box for each question, which unfolds its answer.

    A link to the answer opens the box, and so does finding a word in it.
    """
    blocks = []
    questions = cards.read(cards.QUESTIONS, root)
    for topic, of_topic in groupby(questions, itemgetter("topic")):
        blocks.append(f"## {topic}")
        blocks += [question_card(question, cells) for question in of_topic]
    return "\n\n".join(blocks)


def question_card(question: Mapping[str, Any], cells: Sequence[Cell]) -> str:
    """A question that unfolds its answer, the cells to run, and where it was asked."""
    answering = [cell for cell in cells if question["id"] in cell.ids]
    asked = ", ".join(f"[{site_name(url)}]({url})" for url in question["asked"])
    run = f"Run it: {cell_links(answering)}. Asked at {asked}."
    name = f"question-{question['id']}"
    return "\n\n".join(
        [
            "::::{container} question",
            f"<details><summary>{escape(question['question'].strip())}</summary>",
            card(name, "answer", question["answer"].strip(), run),
            "</details>",
            "::::",
        ]
    )


def count_questions(root: Path, cells: Sequence[Cell]) -> str:
    """How many questions there are, and how many cells answer them."""
    questions = cards.read(cards.QUESTIONS, root)
    topics = {question["topic"] for question in questions}
    ids = {question["id"] for question in questions}
    answering = [cell for cell in cells if not ids.isdisjoint(cell.ids)]
    return (
        f"{len(questions)} questions on {len(topics)} topics, answered by "
        f"{len(answering)} cells of the book"
    )


def site_name(address: str) -> str:
    """A repository with the number of its thread, or the name of the site."""
    thread = r"https://github\.com/([^/]+/[^/]+)(?:/(?:issues|pull|discussions)/(\d+))?"
    if match := re.match(thread, address):
        return " ".join(filter(None, match.groups()))
    return urlsplit(address).netloc.removeprefix("www.")


def list_exercises(root: Path, cells: Sequence[Cell]) -> str:
    """A heading for each chapter, a line for each exercise."""
    lines: list[str] = []
    for path in chapters(root):
        notebook = nbformat.read(path, as_version=4)
        title = headings(notebook.cells[0].source)[0][1]
        lines += ["", f"### [{title}]({path.name})", ""]
        for _, cell in section(notebook, "Exercises").of_type("markdown"):
            for heading in [text for level, text in headings(cell.source) if level > 2]:
                dots, time = re.search(r"(?m)^([●○]{3}) (.+)$", cell.source).groups()
                name = heading.removeprefix("Exercise ").replace(" —", "", 1)
                link = f"[{name}]({path.name}#{slug(heading)})"
                lines.append(f"- {dots} {link}, {time}")
    return "\n".join(lines).strip()


MARKS: dict[str, Callable[[Path, Sequence[Cell]], str]] = {
    "items": partial(list_items, errata=False),
    "mistakes": partial(list_items, errata=True),
    "questions": list_questions,
    "counts": count_questions,
    "exercises": list_exercises,
    "checks": checks.list_checks,
    "key": checks.list_keys,
}
SCRIPTS = {  # the page: what else it loads
    "book/sources": ["sources.js"],
    "book/errata": ["sources.js"],
    "book/questions": ["questions.js", "questions.css"],
    "book/exercises": [],
    "book/check_yourself": ["checks.js", "checks.css"],
}

# --- the cells ------------------------------------------------------------------------


def mark_text_cells(notebook: str, cells: Iterable[Cell]) -> str:
    """Put an anchor into every Markdown cell that carries ids, and a link at its end.

    No cell is added, so that the numbers of cells in a warning stay the notebook's.
    """
    data = json.loads(notebook)
    for cell in cells:
        if cell.kind == "markdown":
            stored = data["cells"][cell.index]
            text = "".join(stored["source"])
            if text.startswith("<"):  # HTML cannot be pointed to, a box around it can
                text = f"::::::{{container}}\n:name: {cell.anchor}\n\n{text}\n::::::"
            else:
                text = f"({cell.anchor})=\n{text}"
            stored["source"] = f"{text}\n\n{source_link(cell)}"
    return json.dumps(data, ensure_ascii=False)


def source_link(cell: Cell) -> str:
    """The line Sources: S3-12, S3-20 below a cell that names its items."""
    if not cell.named or "-answers-" in cell.anchor:
        return ""
    links = (f'<a href="sources.html#{label(name)}">{name}</a>' for name in cell.ids)
    return f'<p class="source-link">Sources: {", ".join(links)}</p>'


# --- Sphinx ---------------------------------------------------------------------------


def on_builder_inited(app: Sphinx) -> None:
    """Read the ids of all cells, once a build."""
    app.book_cells = cards.read_cells(Path(app.srcdir))


def of_page(app: Sphinx, page: str) -> Iterator[Cell]:
    """The cells of a page that carry ids."""
    return (cell for cell in app.book_cells if cell.page == page)


def on_source_read(app: Sphinx, page: str, source: list[str]) -> None:
    """Write the lists; mark the Markdown cells of a notebook."""
    root = Path(app.srcdir)
    if any(of_page(app, page)):
        source[0] = mark_text_cells(source[0], of_page(app, page))
    if page not in SCRIPTS:
        return
    for name, write in MARKS.items():
        if (mark := f"<!-- {name} -->") in source[0]:
            text = write(root, app.book_cells)
            if source[0].startswith("{\n"):  # a notebook
                text = json.dumps(text, ensure_ascii=False)[1:-1]
            source[0] = source[0].replace(mark, text)
    for path in (cards.SOURCES, cards.QUESTIONS, checks.ITEMS, *notebook_pages(root)):
        app.env.note_dependency(str(root / path))


def on_doctree_read(app: Sphinx, doctree: nodes.document) -> None:
    """Give every code cell that carries ids its anchor, and a link below it."""
    page = app.env.docname
    code_cells = {
        node.get("cell_index"): node
        for node in doctree.findall(nodes.container)
        if node.get("nb_element") == "cell_code"
    }
    for cell in of_page(app, page):
        if node := code_cells.get(cell.index):
            node["ids"].append(cell.anchor)
            app.env.domains["std"].note_hyperlink_target(cell.anchor, page, cell.anchor)
            link = nodes.raw("", source_link(cell), format="html")
            node.parent.insert(node.parent.index(node) + 1, link)
    for part in list(doctree.findall(nodes.section)):
        if part[0].astext() == cards.FROM_THE_SOURCES:
            part.insert(1, nodes.raw("", FOLD, format="html"))
            part += nodes.raw("", "</details>", format="html")
        elif part[0].astext() == DONE:
            part += nodes.raw("", checks.lead(page), format="html")


def on_page_context(app: Sphinx, page: str, *_: Any) -> None:
    """Give the pages their scripts and styles."""
    load_files(app, *SCRIPTS.get(page, []))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the events."""
    app.connect("builder-inited", on_builder_inited)
    app.connect("source-read", on_source_read)
    app.connect("doctree-read", on_doctree_read)
    app.connect("html-page-context", on_page_context)
    app.add_css_file("sources.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
