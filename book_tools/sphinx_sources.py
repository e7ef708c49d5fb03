"""Sphinx extension: links between the cells and the items of the source documents.

Every cell that carries ids of `book/sources.yml` gets an anchor, and below it a quiet
link to what the documents say. A chapter shows such links only in the section that it
folds away, "From the sources". Two pages lead the other way, with links to the very
cells: `book/sources` lists every item, `book/errata` the mistakes and the cells that
show them. Both are written as Markdown where the page says `{{ items }}`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book_tools.ledger import (
    MISTAKES,
    SOURCES,
    Cell,
    cell_source,
    items_of,
    read_cells,
    read_documents,
)
from book_tools.template import FROM_THE_SOURCES, WHERE_WE_ARE
from book_tools.toc import notebook_pages

FOLD = (
    '<details class="from-the-sources">'
    "<summary>Show what the five documents say differently</summary>"
)
SOURCES_PAGE, ERRATA_PAGE = "book/sources", "book/errata"

# verdict: sign, word, what introduces the truth of an item
VERDICTS = {
    "correct": ("✓", "correct", "Checked"),
    "correct-with-caveat": ("±", "correct, with a caveat", "Caveat"),
    "ambiguous": ("?", "ambiguous", "Made precise"),
    "wrong": ("✗", "wrong", "What is true"),
    "unverifiable-here": ("○", "cannot be checked here", "Why"),
}


# --- the two pages --------------------------------------------------------------------


def list_items(
    page: str, documents: Iterable[Mapping[str, Any]], cells: Sequence[Cell]
) -> str:
    """The items of a page as Markdown: how many there are, then section by section.

    Args:
        page: one of the two; that of the errata takes mistakes and what shows them.
        documents: as in `book/sources.yml`.
        cells: those that carry ids.
    """
    errata = page == ERRATA_PAGE
    verdicts = [name for name in VERDICTS if name in MISTAKES or not errata]
    cells = [cell for cell in cells if cell.shows or not errata]
    rows, parts = [], []
    for document in documents:
        title = f"{document['short']}: {document['title']}"
        counts = Counter(item["verdict"] for item in items_of(document))
        rows.append([title, *(counts[name] for name in verdicts)])
        parts += [f"## {title}", document["source"]]
        for section in document["sections"]:
            items = [item for item in section["items"] if item["verdict"] in verdicts]
            if items:
                cards = [card(item, cells, errata) for item in items]
                parts += [
                    summary(section["title"], items, errata),
                    *cards,
                    "</details>",
                ]
    totals = [sum(column) for column in list(zip(*rows, strict=True))[1:]]
    head = ["Document", *(VERDICTS[name][0] for name in verdicts), "Items"]
    table = [head, ["---", *["--:"] * (len(verdicts) + 1)]]
    table += [[*row, sum(row[1:])] for row in [*rows, ["All", *totals]]]
    lines = "\n".join(" | ".join(map(str, row)) for row in table)
    return "\n\n".join([f":::{{container}} source-counts\n{lines}\n:::", *parts])


def summary(title: str, items: Sequence[Mapping[str, str]], unfolded: bool) -> str:
    """What stands above the items of a section, and folds them away."""
    count = Counter(item["verdict"] for item in items)
    counts = ", ".join(
        f"{count[verdict]} {word.replace(', ', ' ')}"
        for verdict, (_, word, _) in VERDICTS.items()
        if count[verdict]
    )
    return (
        f'<details class="source-section"{" open" * unfolded}><summary>'
        f'<span class="source-section-title">{escape(title)}</span> '
        f"<small>{counts}</small></summary>"
    )


def card(item: Mapping[str, str], cells: Sequence[Cell], erratum: bool) -> str:
    """What a document says, whether it holds, what is true, and links to the cells."""
    sign, word, lead = VERDICTS[item["verdict"]]
    kind = item["kind"].replace("-", " ")
    noun = "line" if item["lines"].isdigit() else "lines"
    name = label(item["id"])
    links = cell_links([cell for cell in cells if item["id"] in cell.ids])
    return f"""\
:::{{container}} source-item verdict-{item["verdict"]}
:name: {name.replace("source", "erratum") if erratum else name}

{with_links(item["id"])} [{sign} {word}]{{.source-verdict}} {kind}, \
{noun} {item["lines"].replace("-", "–")}

{with_links(item["says"])}

**{lead}:** {with_links(item["truth"])}

**{"Shown in" if erratum else "In the book"}:** {links}
:::"""


def label(name: str) -> str:
    """What a link leads to an item by: S3-12 gives source-s3-12."""
    return f"source-{name.lower()}"


def with_links(text: str) -> str:
    """Turn every id in a text into a link to its item."""
    return re.sub(r"\bS\d-\d\d\b", lambda m: f"[{m[0]}](#{label(m[0])})", text)


def cell_links(cells: Iterable[Cell]) -> str:
    """Links to cells, named by chapter, heading and type, and numbered if equal."""
    named: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        text = cell.title + (f", {cell.heading}" if cell.heading != cell.title else "")
        text = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text)  # a heading may hold a link
        kind = "code" if cell.kind == "code" else "text"
        named.setdefault((text, kind), []).append(cell.anchor)
    return "; ".join(
        f"[{text} ({kind}{f' {number}' if len(anchors) > 1 else ''})](#{anchor})"
        for (text, kind), anchors in named.items()
        for number, anchor in enumerate(anchors, start=1)
    )


# --- the cells ------------------------------------------------------------------------


def mark_text_cells(notebook: str, cells: Iterable[Cell]) -> str:
    """Put an anchor into every Markdown cell that carries ids, and a link at its end.

    No cell is added, so that the numbers of cells in a warning stay the notebook's.
    """
    data = json.loads(notebook)
    for cell in cells:
        if cell.kind == "markdown":
            stored = data["cells"][cell.index]
            text = cell_source(stored)
            if text.startswith("<"):  # HTML cannot be pointed to, a box around it can
                text = f"::::::{{container}}\n:name: {cell.anchor}\n\n{text}\n::::::"
            else:
                text = f"({cell.anchor})=\n{text}"
            link = f"```{{source-link}} {' '.join(cell.ids)}\n```"
            stored["source"] = f"{text}\n\n{link}" if cell.named else text
    return json.dumps(data, ensure_ascii=False)


class SourceLink(SphinxDirective):
    """The line below a cell that leads to the items it treats."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Write the line."""
        return [source_link(self.env.docname, self.arguments[0].split())]


def source_link(page: str, ids: Iterable[str]) -> nodes.paragraph:
    """The line Sources: S3-12, S3-20. Sphinx resolves its links, or names the wrong."""
    line = nodes.paragraph("", "Sources: ", classes=["source-link"])
    target = {"refdomain": "std", "reftype": "ref", "refdoc": page}
    for number, name in enumerate(ids):
        line += nodes.Text(", " if number else "")
        line += addnodes.pending_xref(
            *("", nodes.inline("", name)),
            **target,
            reftarget=label(name),
            refexplicit=True,
            refwarn=True,
        )
    return line


# --- Sphinx ---------------------------------------------------------------------------


def on_builder_inited(app: Sphinx) -> None:
    """Read the ids of all cells, once a build."""
    app.book_cells = read_cells(Path(app.srcdir))


def on_source_read(app: Sphinx, page: str, source: list[str]) -> None:
    """Write the items of the two pages; mark the Markdown cells of a notebook."""
    root = Path(app.srcdir)
    if page in (SOURCES_PAGE, ERRATA_PAGE):
        items = list_items(page, read_documents(root), app.book_cells)
        source[0] = source[0].replace("{{ items }}", items)
        for path in (root / SOURCES, *notebook_pages(root)):
            app.env.note_dependency(str(path))
    elif cells := [cell for cell in app.book_cells if cell.page == page]:
        source[0] = mark_text_cells(source[0], cells)


def on_doctree_read(app: Sphinx, doctree: nodes.document) -> None:
    """Give every code cell that carries ids its anchor, and a link below it."""
    page = app.env.docname
    marked = {cell.index: cell for cell in app.book_cells if cell.page == page}
    for node in list(doctree.findall(nodes.container)):
        cell = marked.get(node.get("cell_index"))
        if cell and node.get("nb_element") == "cell_code":
            node["ids"].append(cell.anchor)
            app.env.domains["std"].note_hyperlink_target(cell.anchor, page, cell.anchor)
            if cell.named:
                below = node.parent.index(node) + 1
                node.parent.insert(below, source_link(page, cell.ids))
    titled = {part[0].astext(): part for part in doctree.findall(nodes.section)}
    if WHERE_WE_ARE in titled and FROM_THE_SOURCES in titled:
        fold(titled[FROM_THE_SOURCES])


def fold(section: nodes.Element) -> None:
    """Fold away what stands below the heading of a section."""
    section.insert(1, nodes.raw("", FOLD, format="html"))
    section += nodes.raw("", "</details>", format="html")


def on_page_context(app: Sphinx, page: str, *_: Any) -> None:
    """Give the two pages their script."""
    if page in (SOURCES_PAGE, ERRATA_PAGE):
        app.add_js_file("sources.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the events and the directive."""
    app.add_directive("source-link", SourceLink)
    app.connect("builder-inited", on_builder_inited)
    app.connect("source-read", on_source_read)
    app.connect("doctree-read", on_doctree_read)
    app.connect("html-page-context", on_page_context)
    app.add_css_file("sources.css")
    return {"version": "3", "parallel_read_safe": True, "parallel_write_safe": True}
