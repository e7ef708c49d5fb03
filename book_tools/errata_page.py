"""The page of errata: the directive that writes it.

Document by document: what is wrong in it or can be read in two ways, what is true,
and links to the very cells that assert it or catch the error. Mistakes that no cell
shows yet are named at the end of their document.
"""

from __future__ import annotations

from collections.abc import Sequence

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from book_tools.ledger import Coverage, is_covered
from book_tools.page_pieces import (
    DIGEST,
    digest,
    inline,
    item_card,
    item_link,
    joined,
    lead_in,
    place_links,
    simple_table,
)
from book_tools.source_table import Document, Item, Table


def errata_label(name: str) -> str:
    """The label of an item on the page of errata: S3-20 gives erratum-s3-20."""
    return f"erratum-{name.lower()}"


class Errata(SphinxDirective):
    """The mistakes of the documents with links to the cells that show them."""

    def run(self) -> list[nodes.Node]:
        """Write the counts, then each document."""
        self.table: Table = self.env.app.book_ledger[0]
        self.coverage: Coverage = self.env.app.book_ledger[1]
        self.env.metadata[self.env.docname][DIGEST] = digest(*self.env.app.book_ledger)
        return [*self._overview(), *map(self._document, self.table.documents)]

    def _shown(self, items: Sequence[Item]) -> list[Item]:
        return [item for item in items if is_covered(item, self.coverage[item.id])]

    def _overview(self) -> list[nodes.Node]:
        found = mistakes(list(self.table.items.values()))
        shown = len(self._shown(found))
        text = (
            f"The {len(self.table.documents)} documents hold {len(found)} such items: "
            f"{counts(found)}. The chapters written so far show {shown} of them; "
            f"{len(found) - shown} wait for a later chapter."
        )
        rows = [
            [f"{doc.short}: {doc.title}", *self._row(mistakes(doc.items))]
            for doc in self.table.documents
        ]
        head = ["Document", "Items", "Shown", "Waiting"]
        table = simple_table(head, [*rows, ["All", *self._row(found)]])
        return [nodes.paragraph(text, text), table]

    def _row(self, found: Sequence[Item]) -> list[str]:
        shown = len(self._shown(found))
        return [str(len(found)), str(shown), str(len(found) - shown)]

    def _document(self, doc: Document) -> nodes.section:
        title = f"{doc.short}: {doc.title}"
        section = nodes.section(ids=[f"errata-{doc.short.lower()}"], names=[])
        section += nodes.title(title, title)
        found = mistakes(doc.items)
        shown = self._shown(found)
        text = f"{doc.source} {counts(found)}; shown here: {counts(shown)}."
        section += nodes.paragraph("", "", *inline(self.env, text))
        section += nodes.bullet_list(
            "", *map(self._erratum, shown), classes=["source-items"]
        )
        if waiting := [item for item in found if item not in shown]:
            section += self._waiting(waiting)
        return section

    def _erratum(self, item: Item) -> nodes.list_item:
        card = item_card(self.env, item, errata_label(item.id))
        places = [place for place in self.coverage[item.id] if place.shows]
        where = nodes.paragraph(classes=["source-where"])
        where += [*lead_in("Shown in"), *place_links(self.env, places)]
        card += where
        return card

    def _waiting(self, items: Sequence[Item]) -> nodes.paragraph:
        groups = []
        for chapter, title in self.table.chapters.items():
            links = [item_link(self.env, i.id) for i in items if i.chapter == chapter]
            if links:
                group = nodes.inline("", f"{title} (")
                group += [*joined(links, ", "), nodes.Text(")")]
                groups.append(group)
        text = nodes.paragraph()
        text += [*lead_in("Waiting for a later chapter"), *joined(groups, "; ")]
        text += nodes.Text(".")
        return text


def mistakes(items: Sequence[Item]) -> list[Item]:
    """The items that are wrong, or true in one reading only."""
    return [item for item in items if item.is_mistake]


def counts(items: Sequence[Item]) -> str:
    """Count the verdicts in words: 5 wrong and 2 ambiguous."""
    wrong = sum(item.verdict == "wrong" for item in items)
    return f"{wrong} wrong and {len(items) - wrong} ambiguous"
