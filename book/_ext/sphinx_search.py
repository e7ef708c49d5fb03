"""Sphinx extension: what the search of the pages knows, one entry for each section.

It is built of what stands in a page to be read: prose, captions, what pictures say to
those who don't see them, terms, questions; and the names of the classes and functions
that a section writes. Code and its output are left out, imports above all. The pages
load the entries when somebody searches; `book/_static/search/search.js` ranks them.
It takes the place of Sphinx's own search.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx

from book._ext import cards
from book._ext.sphinx_html import OPTIONAL, is_optional
from book._ext.toc import ROOT, pages

ENTRIES = "search/entries.js"  # below _static
NAMES = re.compile(r"(?m)^(?:class|def) (\w+)")
# Pages made of what stands elsewhere, or of answers that one should find oneself;
# and sections that tell nothing new.
ONLY_HEADINGS = ("book/errata", "book/check_yourself", "book/exercises")
ELSEWHERE = re.compile(f"{cards.FROM_THE_SOURCES}|Further reading|Where we are")
ASIDES = re.compile(f"Exercise|{ELSEWHERE.pattern}")
NOT_READ = (nodes.raw, nodes.literal_block, nodes.math_block, nodes.Invisible)


class Entry(NamedTuple):
    """What the search can find: a section, a term, a question, an item of a source.

    Attributes:
        page: its number in the list of pages.
        anchor: leads to it in its page.
        kind: page (its head), section, optional, aside, term, question or source.
        title: its heading.
        names: of the classes and functions written there.
        text: what it says, without what its subsections say.
    """

    page: int
    anchor: str
    kind: str
    title: str
    names: str
    text: str


# --- what is read ---------------------------------------------------------------------


def plain_formula(latex: str) -> str:
    r"""A formula as it might be typed: \sqrt{d_{model}} gives √d_model."""
    text = latex.replace(r"\sqrt", "√").replace(r"\times", "×").replace(r"\cdot", "·")
    text = re.sub(r"\\(?:text|mathrm|mathbf|operatorname)\b", "", text)
    return re.sub(r"[{}\\]", "", text)


def prose(node: nodes.Node) -> str:
    """What stands in a node to be read, but not what its sections and cards say."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, nodes.math):
        return plain_formula(node.astext())
    if isinstance(node, nodes.image):
        return node.get("alt", "")
    if isinstance(node, (*NOT_READ, nodes.section)) or is_card(node):
        return ""
    if node.get("nb_element") == "cell_code":
        shown = node.get("cell_metadata", {}).get("mystnb", {})
        caption = shown.get("figure", {}).get("caption", "")
        return f"{caption} {shown.get('image', {}).get('alt', '')}"
    between = "" if isinstance(node, nodes.TextElement) else " "
    return between.join(map(prose, node.children))


def is_card(node: nodes.Node) -> bool:
    """Whether a link leads to this answer, or to this item of a source."""
    kinds = {"answer", "source-item"}
    return isinstance(node, nodes.container) and not kinds.isdisjoint(node["classes"])


def one_line(text: str) -> str:
    """A text without the breaks of its lines."""
    return " ".join(text.split())


def own(section: nodes.section, kind: type[nodes.Node]) -> Iterator[nodes.Node]:
    """The nodes of a kind in a section, but not in its subsections."""
    for node in section.findall(kind):
        above = node.parent
        while not isinstance(above, nodes.section):
            above = above.parent
        if above is section:
            yield node


def names(section: nodes.section) -> str:
    """The classes and functions that the cells of a section write."""
    code = [
        block.astext()
        for cell in own(section, nodes.container)
        if cell.get("nb_element") == "cell_code_source"
        for block in cell.findall(nodes.literal_block)
    ]
    return " ".join(dict.fromkeys(NAMES.findall("\n".join(code))))


def kind_of(page: str, section: nodes.section, title: str) -> str:
    """Which kind of entry a section is."""
    if isinstance(section.parent, nodes.document):
        return "page"
    if page == "book/glossary":
        return "term"
    if ASIDES.match(title) or page in (*ONLY_HEADINGS, "book/questions", "book/pencil"):
        return "aside"
    while isinstance(section, nodes.section):  # or a part of an optional one
        if is_optional(section):
            return "optional"
        section = section.parent
    return "section"


def entries(
    page: str, number: int, doctree: nodes.document, questions: dict[str, str]
) -> Iterator[Entry]:
    """The entries of a page.

    Args:
        page: its name.
        number: its place in the list of pages.
        doctree: what stands in it.
        questions: the text of each, by the anchor of its answer.
    """
    for section in doctree.findall(nodes.section):
        title = one_line(prose(section[0]))
        kind = kind_of(page, section, title)
        title = title.removesuffix(OPTIONAL)
        text = one_line(" ".join(map(prose, section.children[1:])))
        text = "" if page in ONLY_HEADINGS or ELSEWHERE.match(title) else text
        yield Entry(number, section["ids"][0], kind, title, names(section), text)
        for card in own(section, nodes.container):
            if not is_card(card) or page in ONLY_HEADINGS:
                continue
            anchor = card["ids"][0]
            paragraphs = [one_line(prose(part)) for part in card.children]
            if question := questions.get(anchor):
                text = " ".join(paragraphs[:-1])  # the last one: where to run it
                yield Entry(number, anchor, "question", question, "", text)
            else:
                title, says, *_ = paragraphs
                yield Entry(number, anchor, "source", title, "", says)


# --- Sphinx ---------------------------------------------------------------------------


def replace_search(app: Sphinx) -> None:
    """Let Sphinx build no index of its own."""
    app.builder.search = False


def search_page(app: Sphinx) -> list[tuple[str, dict[str, str], str]]:
    """The page that shows all that is found."""
    return [("search", {"title": "Search"}, "search.html")]


def write_entries(app: Sphinx, error: Exception | None) -> None:
    """Write the entries as a script: a page in a folder can read no other data."""
    if error or app.builder.format != "html":
        return
    questions = {
        f"question-{question['id']}": one_line(question["question"])
        for question in cards.read(cards.QUESTIONS, ROOT)
    }
    listed = pages(ROOT)
    titles = [app.env.titles[page].astext() for page in listed]
    links = [app.builder.get_target_uri(page) for page in listed]
    found = [
        entry
        for number, page in enumerate(listed)
        for entry in entries(page, number, app.env.get_doctree(page), questions)
    ]
    data = {"pages": list(zip(links, titles, strict=True)), "entries": found}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    path = Path(app.outdir, "_static", ENTRIES)
    path.write_text(f"window.bookEntries={text};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the events."""
    app.connect("builder-inited", replace_search)
    app.connect("html-collect-pages", search_page)
    app.connect("build-finished", write_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
