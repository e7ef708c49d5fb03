"""Sphinx extension: how the parts of a text become HTML.

- The answer of a grader is marked as open, wrong or right, and a cell whose code the
  reader owns from there as such, so that they can be seen.
- An output in columns isn't wrapped: it gets smaller on a phone, and where it still
  doesn't fit, it says that it scrolls.
- The head of a chapter: its number, its question, its minutes and its notebook.
- A link to the glossary carries what the term means, for the margin.
- Folds have one short label, and sections a link to ask about them, where the book has
  an address.
- Wide tables have a box to scroll in. On a phone they become lists, in which each value
  has the heading of its column before it.
- What is off the core path is folded under its heading.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.writers.html5 import HTML5Translator

from book._ext import repository
from book._ext.notebook_parts import OPTIONAL as OPTIONAL_IN_MARKDOWN
from book._ext.sphinx_figures import figure_number
from book._ext.toc import chapter_of

# first sign of a grader's answer: class of the output that holds it
FEEDBACK = {"…": "feedback-open", "✗": "feedback-wrong", "✓": "feedback-right"}
IN_MARGIN = ("Checks", "Code")  # folds that the text doesn't speak of
GLOSSARY = "book/glossary"
OPTIONAL = OPTIONAL_IN_MARKDOWN.replace("*", "")
ATTRIBUTES = "html-attributes"  # of a node: what its tag has besides
LINE = 46  # characters that a row of a table has on a phone
NAME = 12  # characters of a first column that a second one stands well beside
PHONE, PAGE = 44, 76  # characters of an output that are legible on a phone, and fit


# --- before a page is written: its document tree --------------------------------------


def mark_cells(app: Sphinx, document: nodes.document, page: str) -> None:
    """Mark what a grader says, and the cells whose code the reader owns from there."""
    for output in document.findall(nodes.literal_block):
        text = output.astext()
        if kind := FEEDBACK.get(text[:1]):
            output["classes"].append(kind)
        elif "output" in output["classes"] and in_columns(text):
            width = max(map(len, text.splitlines()))
            output["classes"] += ["in-columns"] + ["scrolls"] * (width > PHONE)
            output[ATTRIBUTES] = {"style": f"--columns: {width}"}
    for cell in document.findall(nodes.container):
        if "defines" in cell.get("cell_metadata", ()):
            code = cell.astext().lstrip()
            cell["classes"].append("own-class" if "class " in code else "own-function")


def in_columns(text: str) -> bool:
    """Whether an output is a matrix, or has words below each other, and fits a page."""
    lines = text.splitlines()
    starts = [{m.end() for m in re.finditer(r"\S {2,}", line)} for line in lines]
    below = any(one & other for one, other in pairwise(starts))
    return ("[[" in text or below) and max(map(len, lines)) <= PAGE


def open_chapter(app: Sphinx, document: nodes.document, page: str) -> None:
    """Give the first lines of a chapter their looks (`TITLE` in chapter_rules.py)."""
    source = app.env.doc2path(page, base=False)
    if chapter_of(Path(source)) is None:
        return
    title, question, minutes = next(document.findall(nodes.section)).children[:3]

    number, words = title[0].split(". ", 1)
    label = nodes.inline("", f"Chapter {number}", classes=["number"])
    title[:1] = [label, nodes.Text(f" {words}")]

    [emphasis] = question
    question[:] = emphasis.children
    question["classes"].append("question")

    download = f' · <a href="../_sources/{source}" download>Download it</a>'
    minutes += nodes.raw("", download, format="html")
    minutes["classes"].append("meta")


@cache
def glosses(env: BuildEnvironment) -> dict[str, str]:
    """What each term of the glossary means, in plain text, by its anchor."""
    meanings = {}
    for entry in env.get_doctree(GLOSSARY).findall(nodes.section):
        meaning = entry[1].deepcopy()
        for link in list(meaning.findall(addnodes.pending_xref)):
            if chapter_of(Path(link["reftarget"])) is not None:
                link.parent.remove(link)
        plain = meaning.astext().replace(r"\times", "×")  # of a formula
        meanings[entry["ids"][0]] = " ".join(plain.split())
    return meanings


def gloss_links(app: Sphinx, document: nodes.document, page: str) -> None:
    """Let links to the glossary carry what the term means."""
    for link in document.findall(nodes.reference):
        target, _, anchor = link.get("refuri", "").partition("#")
        if link.get("internal") and target == "glossary.html" and anchor:
            link[ATTRIBUTES] = {"data-gloss": glosses(app.env)[anchor]}


def list_tables(app: Sphinx, document: nodes.document, page: str) -> None:
    """Mark what becomes a list on a phone, and give its cells their headings."""
    for table in document.findall(nodes.table):
        head, *rows = (
            [cell.astext() for cell in row] for row in table.findall(nodes.row)
        )
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        if sum(widths) <= LINE or (len(widths) == 2 and widths[0] <= NAME):
            continue
        table["classes"].append("becomes-list")
        for row in list(table.findall(nodes.row))[1:]:
            for cell, heading in zip(row, head, strict=True):
                cell[ATTRIBUTES] = {"data-heading": heading}


# --- while it is written --------------------------------------------------------------


class Translator(HTML5Translator):
    """Writes the HTML of the pages."""

    def starttag(
        self,
        node: nodes.Element,
        tagname: str,
        suffix: str = "\n",
        empty: bool = False,
        **attributes: str,
    ) -> str:
        """Begin an element, with the attributes that an extension gave its node."""
        attributes |= node.get(ATTRIBUTES, {})
        return super().starttag(node, tagname, suffix, empty, **attributes)

    def visit_title(self, node: nodes.title) -> None:
        """Write a heading; what an optional section holds is folded under it."""
        if is_optional(node.parent):
            self.body.append('<details class="optional">\n<summary>')
        super().visit_title(node)

    def depart_title(self, node: nodes.title) -> None:
        """End the heading, and what is seen of a closed fold."""
        super().depart_title(node)
        if is_optional(node.parent):
            self.body += ["</summary>\n", *self.links_of_fold]

    def depart_section(self, node: nodes.section) -> None:
        """End a section, and its fold."""
        if is_optional(node):
            self.body.append("</details>\n")
        super().depart_section(node)

    def visit_table(self, node: nodes.table) -> None:
        """Put a table into a box to scroll in."""
        self.body.append('<div class="table-box">')
        super().visit_table(node)

    def depart_table(self, node: nodes.table) -> None:
        """End the table, and its box."""
        super().depart_table(node)
        self.body.append("</div>")

    def add_fignumber(self, node: nodes.Element) -> None:
        """Begin the caption of a figure with its number."""
        if not isinstance(node, nodes.figure):
            return
        page = self.builder.current_docname
        number = figure_number(self.builder.env, page, node["ids"][0])
        self.body.append(f'<span class="caption-number">{number}. </span>')

    def add_permalink_ref(self, node: nodes.Element, title: str) -> None:
        """Write the link of a heading to itself, and one to ask about its section."""
        start = len(self.body)
        super().add_permalink_ref(node, title)
        if isinstance(node, nodes.section) and self.section_level in (2, 3):
            page = self.builder.env.doc2path(self.builder.current_docname, base=False)
            self.body.append(ask_link(page, node[0].astext(), node["ids"][0]))
        if is_optional(node):  # no link may stand in what is clicked itself
            self.links_of_fold = self.body[start:]
            del self.body[start:]


def is_optional(part: nodes.Element) -> bool:
    """Whether a part of a page is a section off the core path."""
    return isinstance(part, nodes.section) and part[0].astext().endswith(OPTIONAL)


def ask_link(page: str, section: str, anchor: str) -> str:
    """A link to ask about a section; nothing while the book has no address."""
    url = repository.address()
    if url == repository.UNKNOWN:
        return ""
    link = escape(repository.question_link(url, page, section, anchor))
    label = "Something unclear here?"
    return f'<a class="unclear" href="{link}" title="{label}">?</a>'


def visit_fold(self: HTML5Translator, node: HideCodeCellNode) -> None:
    """Begin a fold; its label, which says "Show the checks", holds when it is open."""
    label = re.sub("^Show (the )?", "", node["prompt_show"])
    label = label[0].upper() + label[1:]
    classes = "hide in-margin" if label in IN_MARGIN else "hide"
    self.body.append(f'<details class="{classes}">\n<summary>{label}</summary>\n')


def depart_fold(self: HTML5Translator, node: HideCodeCellNode) -> None:
    """End a fold."""
    self.body.append("</details>\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    for change in (mark_cells, open_chapter, gloss_links, list_tables):
        app.connect("doctree-resolved", change)
    app.set_translator("html", Translator)
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_fold))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
