"""The page of the source documents leads to the very cells, and back."""

from __future__ import annotations

import html
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import docutils_namespace

from book_tools.page_pieces import inline, place_texts, plain
from book_tools.source_places import Place, notebook_places
from book_tools.source_table import parse_table
from book_tools.sphinx_sources import mark_text_cells, marked_places

TABLE = """
chapters: {masks: Masks, training: Training}
waiting: [training]
documents:
- short: S0
  title: A document
  source: A blog post.
  sections:
  - title: Opening
    items:
"""
ITEM = """
    - id: %s
      lines: "3-4"
      kind: claim
      verdict: %s
      chapter: %s
      says: It says `so`, $x_i$.
      truth: It is so.
"""
ITEMS = (
    ITEM % ("S0-01", "correct", "masks")
    + ITEM % ("S0-02", "wrong", "masks")
    + ITEM % ("S0-03", "correct", "training")
)
CONF = """
extensions = ["myst_nb", "book_tools.sphinx_sources"]
nb_execution_mode = "off"
exclude_patterns = ["_build", "jupyter_execute"]
html_theme = "basic"
"""


def cell(kind: str, source: str, *ids: str, tags: list[str] | None = None) -> Any:
    metadata: dict[str, Any] = {"ledger": list(ids)} if ids else {}
    metadata |= {"tags": tags} if tags else {}
    made = {"cell_type": kind, "metadata": metadata, "source": source}
    name = re.sub(r"\W+", "-", f"{kind}-{source}")
    extra = {"execution_count": 1, "outputs": []} if kind == "code" else {}
    return {**made, "id": name[:60], **extra}


CELLS = [
    cell("markdown", "# 4. Masks\n\nText.", "S0-01"),
    cell("markdown", "## Mistakes"),
    cell("code", "assert shown", "S0-02"),
    cell("code", "assert hidden", "S0-02", tags=["hide-cell"]),
    cell("markdown", "Closing words."),
]


class Book:
    """A book of one notebook and the page of the sources, built by Sphinx."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "book").mkdir()
        (root / "conf.py").write_text(CONF)
        (root / "_toc.yml").write_text("root: index\nchapters:\n- file: book/04_masks")
        (root / "index.md").write_text(
            "# Book\n\n```{toctree}\nbook/04_masks\nbook/sources\n```\n"
        )
        (root / "book/sources.md").write_text("# Sources\n\n```{source-table}\n```\n")
        items = ITEM % ("S0-01", "correct", "masks") + ITEM % (
            "S0-02",
            "wrong",
            "masks",
        )
        items += ITEM % ("S0-03", "correct", "training")
        (root / "book/sources.yml").write_text(TABLE + items)
        self.write(CELLS)

    def write(self, cells: list[dict[str, Any]]) -> None:
        notebook: dict[str, Any] = {"cells": cells, "nbformat": 4, "nbformat_minor": 5}
        notebook["metadata"] = {"language_info": {"name": "python"}}
        (self.root / "book/04_masks.ipynb").write_text(json.dumps(notebook))

    def build(self) -> set[str]:
        """Build, and give the pages that were read; a warning is an error."""
        out, warnings = self.root / "_build", io.StringIO()
        with docutils_namespace():
            app = Sphinx(
                str(self.root), str(self.root), str(out), str(out / "trees"), "html",
                confoverrides={"nitpicky": True}, status=None, warning=warnings,
            )  # fmt: skip
            read: set[str] = set()
            app.connect("source-read", lambda app, docname, source: read.add(docname))
            app.build()
        assert "WARNING" not in warnings.getvalue(), warnings.getvalue()
        return read

    def page(self, name: str) -> str:
        return html.unescape((self.root / f"_build/book/{name}.html").read_text())


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path)


def test_every_link_leads_to_its_very_cell_and_back(book: Book) -> None:
    book.build()
    sources, masks = book.page("sources"), book.page("04_masks")
    assert 'href="04_masks.html#masks-s0-01"' in sources
    assert re.search(r'id="masks-s0-01"></span><h1>4. Masks', masks)
    assert 'href="04_masks.html#masks-s0-02"' in sources
    assert re.search(r'id="masks-s0-02">\s*<div class="cell_input', masks)
    assert 'href="sources.html#source-s0-02"' in masks
    assert re.search(
        r'<li class="source-item verdict-wrong[^>]*id="source-s0-02"', sources
    )


def test_a_link_to_a_hidden_cell_leads_to_its_visible_toggle(book: Book) -> None:
    book.build()
    assert 'href="04_masks.html#masks-s0-02-2"' in book.page("sources")
    assert re.search(r'id="masks-s0-02-2">\s*<details', book.page("04_masks"))


def test_the_page_says_verdict_counts_and_what_waits(book: Book) -> None:
    book.build()
    text = re.sub(r"<[^>]+>", "", book.page("sources"))
    assert "hold 3 items: 2 are covered by the chapters written so far, 1 wait" in text
    assert "3 items, 2 covered and 1 waiting: 2 correct, 1 wrong." in text
    assert "✗ wrong" in text
    assert "In a later chapter: Training" in text
    assert "4. Masks, Mistakes (code 1); 4. Masks, Mistakes (code 2)" in text


def test_only_a_change_of_ids_or_table_writes_the_page_again(book: Book) -> None:
    assert book.build() == {"index", "book/04_masks", "book/sources"}
    assert book.build() == set()
    other = [*CELLS[:2], cell("code", "assert shown == 2", "S0-02"), *CELLS[3:]]
    book.write(other)
    assert book.build() == {"book/04_masks"}
    book.write([*CELLS[:4], cell("markdown", "Closing words.", "S0-03")])
    assert book.build() == {"book/04_masks", "book/sources"}
    path = book.root / "book/sources.yml"
    path.write_text(path.read_text().replace("It is so.", "It was so."))
    assert book.build() == {"book/sources"}


def test_an_unknown_id_stops_the_build(book: Book) -> None:
    book.write([cell("markdown", "# 4. Masks", "S0-77")])
    with pytest.raises(ExtensionError, match="cell 0 .*unknown id 'S0-77'"):
        book.build()


def test_marking_changes_no_number_and_no_code_of_a_notebook() -> None:
    table = parse_table(yaml.safe_load(TABLE + ITEMS))
    places, _ = notebook_places("book/04_masks", CELLS)
    coverage: dict[str, list[Place]] = {name: [] for name in table.items}
    for place, ids in places:
        coverage[ids[0]].append(place)
    marked = marked_places(coverage, "book/04_masks")
    assert list(marked.values()) == [["S0-01"], ["S0-02"], ["S0-02"]]
    assert marked_places(coverage, "book/01_embeddings") == {}
    cells = json.loads(mark_text_cells(json.dumps({"cells": CELLS}), marked))["cells"]
    assert cells[1:] == CELLS[1:]
    assert cells[0]["source"].startswith("(masks-s0-01)=\n# 4. Masks\n")


def test_equal_links_are_numbered() -> None:
    places = [Place("d", "T", "H", n, kind, "a") for n, kind in enumerate(["code"] * 2)]
    assert place_texts(places) == ["T, H (code 1)", "T, H (code 2)"]
    assert place_texts(places[:1]) == ["T, H (code)"]
    assert place_texts([Place("d", "T", "T", None, "page", "")]) == ["T"]


def test_a_heading_in_a_link_has_no_markup() -> None:
    assert plain(r"Why $\sqrt{d_k}$, `softmax` and [more](x.md)") == (
        "Why √d_k, softmax and more"
    )


def test_code_mathematics_and_ids_are_told_from_text() -> None:
    page = SimpleNamespace(docname="book/sources")
    parts = inline(page, "a `b_c` and $x_i$, see S0-02; -1e9 * 2")
    kinds = [type(node).__name__ for node in parts]
    assert kinds == ["Text", "literal", "Text", "math", "Text", "pending_xref", "Text"]
    assert (
        "".join(node.astext() for node in parts) == "a b_c and x_i, see S0-02; -1e9 * 2"
    )
