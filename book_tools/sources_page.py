"""The page "Where each section went": the directive that writes it.

Document by document and section by section: what an item says, whether it holds,
what is true, and links to the very cells of the book that treat it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from book_tools.ledger import Coverage, is_covered
from book_tools.source_places import Place
from book_tools.source_table import Document, Item, Section, Table

DIGEST = "ledger-digest"  # key in the metadata of the page that holds the table

# verdict: sign, word, what introduces the second paragraph of an item
VERDICTS = {
    "correct": ("✓", "correct", "Checked"),
    "correct-with-caveat": ("±", "correct, with a caveat", "Caveat"),
    "ambiguous": ("?", "ambiguous", "Made precise"),
    "wrong": ("✗", "wrong", "What is true"),
    "unverifiable-here": ("○", "cannot be checked here", "Why"),
}
MEANING = {
    "correct": "true as it stands",
    "correct-with-caveat": "true once a condition or a detail is added",
    "ambiguous": "true in one reading, false in another",
    "wrong": "false, or code that fails",
    "unverifiable-here": "rests on data or hardware that the book does not have",
}
INLINE = re.compile(r"(`[^`]+`|\$[^$]+\$|\bS\d-\d\d\b)")


class SourceTable(SphinxDirective):
    """The table of the documents with links to the cells, section by section."""

    def run(self) -> list[nodes.Node]:
        """Write the counts, then each document."""
        self.table: Table = self.env.app.book_ledger[0]
        self.coverage: Coverage = self.env.app.book_ledger[1]
        self.env.metadata[self.env.docname][DIGEST] = digest(*self.env.app.book_ledger)
        overview = self._overview()
        return [*overview, *(self._document(doc) for doc in self.table.documents)]

    def _covered(self, items: Iterable[Item]) -> int:
        return sum(is_covered(i, self.coverage[i.id]) for i in items)

    def _overview(self) -> list[nodes.Node]:
        items = list(self.table.items.values())
        covered = self._covered(items)
        text = (
            f"The {len(self.table.documents)} documents hold {len(items)} items: "
            f"{covered} are covered by the chapters written so far, "
            f"{len(items) - covered} wait for a later chapter."
        )
        documents = simple_table(
            ["Document", "Items", "Covered", "Waiting"],
            [
                [f"{doc.short}: {doc.title}", *self._count_row(doc.items)]
                for doc in self.table.documents
            ]
            + [["All", *self._count_row(items)]],
        )
        count = Counter(item.verdict for item in items)
        verdicts = simple_table(
            ["Verdict", "Items", "Meaning"],
            [
                [f"{sign} {word}", str(count[verdict]), MEANING[verdict]]
                for verdict, (sign, word, _) in VERDICTS.items()
            ],
        )
        return [nodes.paragraph(text, text), documents, verdicts]

    def _count_row(self, items: Sequence[Item]) -> list[str]:
        covered = self._covered(items)
        return [str(len(items)), str(covered), str(len(items) - covered)]

    def _document(self, doc: Document) -> nodes.section:
        title = f"{doc.short}: {doc.title}"
        section = nodes.section(ids=[f"document-{doc.short.lower()}"], names=[])
        section += nodes.title(title, title)
        covered = self._covered(doc.items)
        counts = (
            f"{len(doc.items)} items, {covered} covered and "
            f"{len(doc.items) - covered} waiting: {verdict_counts(doc.items)}."
        )
        section += nodes.paragraph("", "", *inline(f"{doc.source} {counts}"))
        for part in doc.sections:
            section += self._section(part)
        return section

    def _section(self, part: Section) -> list[nodes.Node]:
        summary = (
            '<details class="source-section"><summary>'
            f'<span class="source-section-title">{escape(part.title)}</span> '
            f"<small>{verdict_counts(part.items)}</small></summary>"
        )
        cards = nodes.bullet_list(classes=["source-items"])
        cards += [self._item(item) for item in part.items]
        return [
            nodes.raw("", summary, format="html"),
            cards,
            nodes.raw("", "</details>", format="html"),
        ]

    def _item(self, item: Item) -> nodes.list_item:
        label = item_label(item.id)
        standard = self.env.domains["std"]
        standard.note_hyperlink_target(label, self.env.docname, label)
        sign, word, lead = VERDICTS[item.verdict]
        covered = is_covered(item, self.coverage[item.id])
        card = nodes.list_item(
            ids=[label],
            classes=[
                "source-item",
                f"verdict-{item.verdict}",
                "is-covered" if covered else "is-waiting",
            ],
        )
        head = nodes.paragraph(classes=["source-head"])
        head += nodes.reference("", item.id, refid=label, classes=["source-id"])
        head += nodes.inline("", f"{sign} {word}", classes=["source-verdict"])
        head += nodes.inline(
            "", f"{item.kind.replace('-', ' ')}, {line_range(item.lines)}"
        )
        says = nodes.paragraph("", "", *inline(item.says))
        truth = nodes.paragraph("", "", *lead_in(lead), *inline(item.truth))
        card += [head, says, truth, self._where(item, covered)]
        return card

    def _where(self, item: Item, covered: bool) -> nodes.paragraph:
        where = nodes.paragraph(classes=["source-where"])
        places = self.coverage[item.id]
        if places:
            named = zip(places, place_texts(places), strict=True)
            links = [place_link(self.env, place, text) for place, text in named]
            where += [*lead_in("In the book"), *joined(links, "; ")]
        if not covered:
            waiting = item.chapter in self.table.waiting
            when = "In a later chapter" if waiting else "Not yet in the chapter"
            chapter = self.table.chapters[item.chapter]
            where += nodes.Text(f"{'; ' if places else ''}{when}: {chapter}")
        return where


def verdict_counts(items: Sequence[Item]) -> str:
    """Count the verdicts in words: 5 correct, 2 wrong."""
    count = Counter(item.verdict for item in items)
    return ", ".join(
        f"{count[verdict]} {word.replace(', ', ' ')}"
        for verdict, (_, word, _) in VERDICTS.items()
        if count[verdict]
    )


def line_range(lines: str) -> str:
    """Say which lines of the document's plain text an item stands in."""
    noun = "line" if lines.isdigit() else "lines"
    return f"{noun} {lines.replace('-', '–')}"


def place_texts(places: Sequence[Place]) -> list[str]:
    """The words of the links: chapter, heading, text or code; numbered if equal."""
    texts = []
    for place in places:
        title, heading = plain(place.title), plain(place.heading)
        kind = {"code": " (code)", "markdown": " (text)", "page": ""}[place.cell_type]
        texts.append(f"{title}{'' if heading == title else f', {heading}'}{kind}")
    total, seen = Counter(texts), Counter[str]()
    for index, text in enumerate(texts):
        if total[text] > 1:
            seen[text] += 1
            texts[index] = f"{text[:-1]} {seen[text]})"
    return texts


def plain(markdown: str) -> str:
    """A heading without its markup, to stand in a link."""
    text = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", markdown)
    text = re.sub(r"\\sqrt\{(.+?)\}", r"√\1", text)
    return re.sub(r"[`$\\{}]|\*\*", "", text)


def digest(table: Table, coverage: Coverage) -> str:
    """A fingerprint of everything the page is made from, this module included."""
    parts = (repr(table), repr(sorted(coverage.items())), Path(__file__).read_text())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


# --- small pieces of a page --------------------------------------------------


def item_label(name: str) -> str:
    """The label of an item on the page of the table: S3-12 gives source-s3-12."""
    return f"source-{name.lower()}"


def inline(text: str) -> list[nodes.Node]:
    """Turn `code`, $mathematics$ and ids into nodes; the rest stays as it is."""
    parts: list[nodes.Node] = []
    for number, piece in enumerate(INLINE.split(text)):
        if number % 2 == 0:
            parts += [nodes.Text(piece)] if piece else []
        elif piece.startswith("`"):
            parts.append(nodes.literal(piece[1:-1], piece[1:-1]))
        elif piece.startswith("$"):
            parts.append(nodes.math(piece[1:-1], piece[1:-1]))
        else:
            parts.append(nodes.reference("", piece, refid=item_label(piece)))
    return parts


def lead_in(words: str) -> list[nodes.Node]:
    """The words in bold that introduce a paragraph."""
    return [nodes.strong("", f"{words}:"), nodes.Text(" ")]


def joined(links: Iterable[nodes.Node], separator: str) -> list[nodes.Node]:
    """Put the separator between the links."""
    pairs = [node for link in links for node in (nodes.Text(separator), link)]
    return pairs[1:]


def cross_reference(
    env: BuildEnvironment, kind: str, target: str, text: str
) -> addnodes.pending_xref:
    """A link that Sphinx resolves and, with -n, reports where it leads nowhere."""
    link = addnodes.pending_xref(
        "",
        refdomain="std",
        reftype=kind,
        reftarget=target,
        refexplicit=True,
        refwarn=True,
        refdoc=env.docname,
    )
    link += nodes.inline("", text)
    return link


def place_link(env: BuildEnvironment, place: Place, text: str) -> nodes.Node:
    """A link to the very cell, or to a whole page."""
    if place.cell is None:
        return cross_reference(env, "doc", f"/{place.docname}", text)
    return cross_reference(env, "ref", place.anchor, text)


def simple_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> nodes.table:
    """A table of plain text with one row of headings."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *(_row(row) for row in rows))
    return nodes.table("", group, classes=["source-counts"])


def _row(cells: Sequence[str]) -> nodes.row:
    return nodes.row(
        "", *(nodes.entry("", nodes.paragraph(cell, cell)) for cell in cells)
    )
