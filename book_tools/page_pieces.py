"""Small pieces of a page about the documents: cards, links, tables."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.environment import BuildEnvironment

from book_tools.ledger import Coverage
from book_tools.source_places import Place
from book_tools.source_table import Item, Table

DIGEST = "ledger-digest"  # key in the metadata of a page made from the table

# verdict: sign, word, what introduces the second paragraph of an item
VERDICTS = {
    "correct": ("✓", "correct", "Checked"),
    "correct-with-caveat": ("±", "correct, with a caveat", "Caveat"),
    "ambiguous": ("?", "ambiguous", "Made precise"),
    "wrong": ("✗", "wrong", "What is true"),
    "unverifiable-here": ("○", "cannot be checked here", "Why"),
}
INLINE = re.compile(r"(`[^`]+`|\$[^$]+\$|\bS\d-\d\d\b)")


def digest(table: Table, coverage: Coverage) -> str:
    """A fingerprint of all that the pages are made from, their modules included."""
    code = [
        path.read_text() for path in sorted(Path(__file__).parent.glob("*page*.py"))
    ]
    parts = (repr(table), repr(sorted(coverage.items())), *code)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def item_label(name: str) -> str:
    """The label of an item on the page of the table: S3-12 gives source-s3-12."""
    return f"source-{name.lower()}"


def item_link(env: BuildEnvironment, name: str) -> addnodes.pending_xref:
    """A link to an item on the page of the table."""
    return cross_reference(env, "ref", item_label(name), name)


def item_card(
    env: BuildEnvironment, item: Item, label: str, *classes: str
) -> nodes.list_item:
    """A card: what the document says, whether it holds, what is true.

    Args:
        env: The environment of the page that is being written.
        item: The item of the document.
        label: What a link leads to the card by; unique in the book.
        classes: More classes of the card.
    """
    env.domains["std"].note_hyperlink_target(label, env.docname, label)
    sign, word, lead = VERDICTS[item.verdict]
    kind = f"{item.kind.replace('-', ' ')}, {line_range(item.lines)}"
    head = nodes.paragraph(classes=["source-head"])
    head += [
        item_link(env, item.id),
        nodes.inline("", f"{sign} {word}", classes=["source-verdict"]),
        nodes.inline("", kind),
    ]
    says = nodes.paragraph("", "", *inline(env, item.says))
    truth = nodes.paragraph("", "", *lead_in(lead), *inline(env, item.truth))
    style = ["source-item", f"verdict-{item.verdict}", *classes]
    return nodes.list_item("", head, says, truth, ids=[label], classes=style)


def place_links(env: BuildEnvironment, places: Sequence[Place]) -> list[nodes.Node]:
    """Links to cells and pages, with their words, separated by semicolons."""
    named = zip(places, place_texts(places), strict=True)
    return joined([place_link(env, place, text) for place, text in named], "; ")


def inline(env: BuildEnvironment, text: str) -> list[nodes.Node]:
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
            parts.append(item_link(env, piece))
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
