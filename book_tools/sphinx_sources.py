"""Sphinx extension: links between the cells and the table of source documents.

Every notebook cell whose metadata names ids of `book/sources.yml` gets an anchor,
and below it a quiet link to what the documents say. Two directives write the other
direction, with links to the very cells: `source-table` every item of the documents
and its verdict, `errata` the mistakes alone. Their pages are written again when the
table or what a cell shows changes, and only then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from book_tools.errata_page import Errata
from book_tools.ledger import Coverage, read_coverage
from book_tools.page_pieces import DIGEST, digest, item_link, joined
from book_tools.source_places import Place, cell_source
from book_tools.source_table import TABLE, LedgerError, load_table
from book_tools.sources_page import SourceTable


def marked_places(coverage: Coverage, docname: str) -> dict[Place, list[str]]:
    """The cells of a notebook that carry ids, each with its ids."""
    found: dict[Place, list[str]] = {}
    for name, places in coverage.items():
        for place in places:
            if place.docname == docname:
                found.setdefault(place, []).append(name)
    return found


def mark_text_cells(notebook: str, marked: Mapping[Place, Sequence[str]]) -> str:
    """Put an anchor into every Markdown cell that carries ids, and a link at its end.

    Args:
        notebook: The JSON of the notebook.
        marked: Its cells that carry ids.

    Returns:
        The JSON with the sources of these cells changed. No cell is added, so that
        the numbers of cells in a warning stay those of the notebook.
    """
    data = json.loads(notebook)
    for place, ids in marked.items():
        if place.cell_type == "markdown":
            cell = data["cells"][place.cell]
            text = cell_source(cell)
            link = f"```{{source-link}} {' '.join(ids)}\n```"
            cell["source"] = f"({place.anchor})=\n{text}\n\n{link}"
    return json.dumps(data, ensure_ascii=False)


def mark_code_cells(env: BuildEnvironment, doctree: nodes.document) -> None:
    """Give every code cell that carries ids its anchor, and a link below it."""
    marked = marked_places(env.app.book_ledger[1], env.docname)
    code = {place.cell: place for place in marked if place.cell_type == "code"}
    for cell in list(doctree.findall(nodes.container)):
        if cell.get("nb_element") == "cell_code" and cell["cell_index"] in code:
            place = code[cell["cell_index"]]
            cell["ids"].append(place.anchor)
            env.domains["std"].note_hyperlink_target(
                place.anchor, env.docname, place.anchor
            )
            below = cell.parent.index(cell) + 1
            cell.parent.insert(below, source_link(env, marked[place]))


def source_link(env: BuildEnvironment, ids: Iterable[str]) -> nodes.paragraph:
    """The line below a cell, Sources: S3-12, S3-20."""
    links = [item_link(env, name) for name in ids]
    line = nodes.paragraph(classes=["source-link"])
    line += [nodes.Text("Sources: "), *joined(links, ", ")]
    return line


class SourceLink(SphinxDirective):
    """The link below a cell to the items of the documents that it treats."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Write the line."""
        return [source_link(self.env, self.arguments[0].split())]


# --- Sphinx ------------------------------------------------------------------


def on_builder_inited(app: Sphinx) -> None:
    """Read the table and the metadata of all cells, once a build."""
    root = Path(app.srcdir)
    try:
        table = load_table(root / TABLE)
        coverage = read_coverage(table, root)
    except LedgerError as error:
        raise ExtensionError(f"table of the source documents:\n{error}") from error
    app.book_ledger = (table, coverage)


def on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Mark the Markdown cells of a notebook before it is parsed."""
    marked = marked_places(app.book_ledger[1], docname)
    if marked and str(app.env.doc2path(docname)).endswith(".ipynb"):
        source[0] = mark_text_cells(source[0], marked)


def on_doctree_read(app: Sphinx, doctree: nodes.document) -> None:
    """Mark the code cells of a notebook once it is parsed."""
    mark_code_cells(app.env, doctree)


def on_env_get_outdated(
    app: Sphinx, env: BuildEnvironment, added: set, changed: set, removed: set
) -> list[str]:
    """Write the pages again if the table or the ids of any cell have changed."""
    now = digest(*app.book_ledger)
    return [
        docname
        for docname, metadata in env.metadata.items()
        if metadata.get(DIGEST, now) != now and docname not in removed
    ]


def on_page_context(app: Sphinx, page: str, *_: Any) -> None:
    """Give the pages made from the table their script."""
    if DIGEST in app.env.metadata.get(page, {}):
        app.add_js_file("sources.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the events and directives."""
    app.add_directive("source-link", SourceLink)
    app.add_directive("source-table", SourceTable)
    app.add_directive("errata", Errata)
    app.connect("builder-inited", on_builder_inited)
    app.connect("env-get-outdated", on_env_get_outdated)
    app.connect("source-read", on_source_read)
    app.connect("doctree-read", on_doctree_read)
    app.connect("html-page-context", on_page_context)
    app.add_css_file("sources.css")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
