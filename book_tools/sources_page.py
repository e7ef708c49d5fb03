"""The page "Where each section went": the directive that writes it.

Document by document and section by section: what an item says, whether it holds,
what is true, and links to the very cells of the book that treat it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from book_tools.ledger import Coverage, is_covered
from book_tools.page_pieces import (
    DIGEST,
    VERDICTS,
    digest,
    inline,
    item_card,
    item_label,
    lead_in,
    place_links,
    simple_table,
)
from book_tools.source_table import Document, Item, Section, Table

MEANING = {
    "correct": "true as it stands",
    "correct-with-caveat": "true once a condition or a detail is added",
    "ambiguous": "true in one reading, false in another",
    "wrong": "false, or code that fails",
    "unverifiable-here": "rests on data or hardware that the book does not have",
}


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
        section += nodes.paragraph("", "", *inline(self.env, f"{doc.source} {counts}"))
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
        covered = is_covered(item, self.coverage[item.id])
        state = "is-covered" if covered else "is-waiting"
        card = item_card(self.env, item, item_label(item.id), state)
        card += self._where(item, covered)
        return card

    def _where(self, item: Item, covered: bool) -> nodes.paragraph:
        where = nodes.paragraph(classes=["source-where"])
        places = self.coverage[item.id]
        if places:
            where += [*lead_in("In the book"), *place_links(self.env, places)]
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
