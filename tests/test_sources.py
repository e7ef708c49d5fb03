"""Every item of the source documents is in the book, and the pages lead to it.

The replay of the chapters (`pytest book --nbval`) runs every cell again and compares
what it prints. These tests check that each item has cells, that each mistake has one
that would fail if it were none, and that the built pages lead to them and back.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from built_site import SITE, stale
from tiny_book import TABLE, Book, cell

from book_tools import ledger
from book_tools.sphinx_sources import cell_links, mark_text_cells, with_links
from book_tools.toc import ROOT

DOCUMENTS = ledger.read_documents()
ITEMS = [item for document in DOCUMENTS for item in ledger.items_of(document)]
CELLS = ledger.read_cells()

KINDS = {"advice", "claim", "code", "concept", "equation", "example", "figure"}
KINDS |= {"number", "open-question", "reference", "shape", "system"}

# --- the items ------------------------------------------------------------------------


def test_the_table_holds_every_item_of_the_five_documents() -> None:
    numbers = {doc["short"]: len(ledger.items_of(doc)) for doc in DOCUMENTS}
    assert numbers == {"S0": 80, "S1": 54, "S2": 81, "S3": 91, "S4": 33}
    assert len(ITEMS) == 339


def test_the_items_of_a_document_are_numbered_without_a_gap() -> None:
    for doc in DOCUMENTS:
        ids = [item["id"] for item in ledger.items_of(doc)]
        assert ids == [f"{doc['short']}-{n:02}" for n in range(1, len(ids) + 1)]


def test_no_verdict_was_lost() -> None:
    assert Counter(item["verdict"] for item in ITEMS) == {
        "correct": 161,
        "correct-with-caveat": 76,
        "ambiguous": 35,
        "wrong": 62,
        "unverifiable-here": 5,
    }


def test_every_item_is_complete() -> None:
    for item in ITEMS:
        assert list(item) == ["id", "lines", "kind", "verdict", "says", "truth"]
        assert all(isinstance(text, str) and text.strip() for text in item.values())
        assert item["kind"] in KINDS, item["id"]
        assert re.fullmatch(r"\d+(-\d+)?(, \d+(-\d+)?)*", item["lines"]), item["id"]


def test_the_texts_close_what_they_open_and_name_items_that_exist() -> None:
    texts = {item["id"]: f"{item['says']} {item['truth']}" for item in ITEMS}
    for name, text in texts.items():
        assert text.count("`") % 2 == text.count("$") % 2 == 0, name
    named = set(re.findall(r"\bS\d-\d\d\b", " ".join(texts.values())))
    assert named and named <= set(texts)


# --- the cells of the book ------------------------------------------------------------


def test_the_book_covers_every_item() -> None:
    if problems := list(ledger.problems(DOCUMENTS, CELLS)):
        pytest.fail("\n".join(problems), pytrace=False)


def test_the_replay_of_the_chapters_is_strict() -> None:
    command = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "pytest tests/test_site.py book tests --nbval " in command
    assert "nbval-lax" not in command


# --- a tiny book ----------------------------------------------------------------------

TINY = [
    cell("markdown", "# 4. Masks\n\nText.", "S0-01"),
    cell("markdown", "## Mistakes\n```\n# no heading\n```"),
    cell("code", "assert shown", "S0-02"),
    cell("code", "assert hidden", "S0-02", tags=("hide-cell",)),
    cell("markdown", "Closing words."),
]


def tiny_cells(*cells: Any) -> list[ledger.Cell]:
    return list(ledger.cells_with_ids("book/04_masks", cells or TINY))


def problems(*cells: Any) -> list[str]:
    return list(ledger.problems(yaml.safe_load(TABLE), tiny_cells(*cells)))


def test_a_covered_book_has_no_problems() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("place", "changed", "message"),
    [
        (0, cell("markdown", "# 4. Masks"), "S0-01 is in no cell: So."),
        (
            4,
            cell("markdown", "Words", "S0-99"),
            "cell 4 (markdown): unknown id 'S0-99'",
        ),
        (0, cell("markdown", "# 4", "S0-01", "S0-01"), "the id 'S0-01' is repeated"),
    ],
)
def test_each_fault_is_named(place: int, changed: Any, message: str) -> None:
    [problem] = problems(*TINY[:place], changed, *TINY[place + 1 :])
    assert problem.endswith(message)


@pytest.mark.parametrize(
    "weak",
    [cell("markdown", "assert x", "S0-02"), cell("code", "print(mask())", "S0-02")],
)
def test_what_cannot_fail_does_not_cover_a_mistake(weak: Any) -> None:
    [problem] = problems(TINY[0], weak)
    assert problem.startswith("S0-02 is wrong, but no code cell with it asserts")


def test_a_cell_knows_its_chapter_and_the_nearest_heading() -> None:
    first, second, third = tiny_cells()
    assert (first.title, first.heading, first.index) == ("4. Masks", "4. Masks", 0)
    assert (second.title, second.heading, second.index) == ("4. Masks", "Mistakes", 2)
    anchors = [first.anchor, second.anchor, third.anchor]
    assert anchors == ["masks-s0-01", "masks-s0-02", "masks-s0-02-2"]


# --- what counts as showing a mistake -------------------------------------------------

CAUGHT = "try:\n    f()\nexcept ValueError as error:\n    print(error)"
HELPER = "def same(a, b):\n    assert a == b"


@pytest.mark.parametrize(
    "source",
    [
        "assert x == 1",
        "for x in y:\n    if x:\n        assert x, 'why'",
        "torch.testing.assert_close(a, b)",
        CAUGHT,
        f"for _ in range(2):\n    {CAUGHT.replace(chr(10), chr(10) + '    ')}",
    ],
)
def test_a_cell_that_can_fail_shows(source: str) -> None:
    assert ledger.can_fail(source)


@pytest.mark.parametrize(
    "source",
    [
        "print('assert x == 1')  # assert x == 1",
        "'assert x'",
        "assert True, x",
        "assert 1 + 1 == 2",
        "def f(x):\n    assert x",
        "if x:\n    def f(x):\n        assert x",
        "check = lambda: assert_close(a, b)",
        "try:\n    f()\nexcept ValueError:\n    pass",
        "try:\n    print(f())\nfinally:\n    g()",
        "print(x == y)",
        "%pip install x",
    ],
)
def test_a_cell_that_cannot_fail_does_not_show(source: str) -> None:
    assert not ledger.can_fail(source)


def test_the_check_may_be_in_a_function_of_the_notebook() -> None:
    def shows(helper: str, call: str) -> bool:
        [found] = tiny_cells(cell("code", helper), cell("code", call, "S0-02"))
        return found.shows

    assert shows(HELPER, "same(x, y)")
    assert not shows(HELPER, "other(x, y)")
    assert not shows(HELPER.replace("assert a == b", "a == b"), "same(x, y)")


def test_what_is_printed_counts_only_where_it_is_compared() -> None:
    ignored = ("nbval-ignore-output",)
    first, second, third = tiny_cells(
        cell("code", CAUGHT, "S0-02"),
        cell("code", CAUGHT, "S0-02", tags=ignored),
        cell("code", "assert x", "S0-02", tags=ignored),
    )
    assert (first.shows, second.shows, third.shows) == (True, False, True)


# --- the tiny book as pages -----------------------------------------------------------


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path, TINY)


def test_every_link_leads_to_its_very_cell_and_back(book: Book) -> None:
    assert book.build()[1] == ""
    sources, masks, errata = map(book.page, ("sources", "04_masks", "errata"))
    assert 'href="04_masks.html#masks-s0-01"' in sources
    assert re.search(r'id="masks-s0-01"></span><h1>4. Masks', masks)
    assert 'href="04_masks.html#masks-s0-02"' in sources
    assert re.search(r'id="masks-s0-02">\s*<div class="cell_input', masks)
    assert 'href="04_masks.html#masks-s0-02"' in errata
    assert "masks-s0-01" not in errata  # no mistake
    assert 'href="sources.html#source-s0-02"' in masks
    assert re.search(r'class="source-item [^>]*wrong[^>]*id="source-s0-02"', sources)
    # A link to a hidden cell leads to the words that unfold it.
    assert re.search(r'id="masks-s0-02-2">\s*<details', masks)


def test_the_page_says_verdicts_and_names_the_cells(book: Book) -> None:
    book.build()
    text = re.sub(r"<[^>]+>", "", book.page("sources"))
    assert re.search(r"S0: A document\s+1\s+0\s+0\s+1\s+0\s+2\s+All", text)
    assert "Opening 1 correct, 1 wrong" in text
    assert "S0-02 ✗ wrong open question, line 5" in text
    assert "S0-01 ✓ correct claim, lines 3–4" in text
    assert "4. Masks, Mistakes (code 1); 4. Masks, Mistakes (code 2)" in text
    assert "What is true: It is not." in text


def test_the_pages_are_written_again_when_a_cell_or_the_table_changes(
    book: Book,
) -> None:
    pages = {"book/sources", "book/errata"}
    assert book.build()[0] == {"index", "book/04_masks"} | pages
    assert book.build()[0] == set()
    book.write([*TINY[:4], cell("markdown", "Closing words.", "S0-01")])
    assert book.build()[0] == {"book/04_masks"} | pages
    assert "masks-s0-01-2" in book.page("sources")
    path = book.root / "book/sources.yml"
    path.write_text(path.read_text().replace("It is not.", "It was."))
    assert book.build()[0] == pages
    assert "It was." in book.page("errata")


def test_an_unknown_id_is_a_warning(book: Book) -> None:
    book.write([cell("markdown", "# 4. Masks", "S0-77"), *TINY])
    assert "undefined label: 'source-s0-77'" in book.build()[1]


def test_marking_changes_no_number_and_no_code_of_a_notebook() -> None:
    marked = mark_text_cells(json.dumps({"cells": TINY}), tiny_cells())
    cells = json.loads(marked)["cells"]
    assert cells[1:] == TINY[1:]
    assert cells[0]["source"].startswith("(masks-s0-01)=\n# 4. Masks\n")


def test_a_heading_in_a_link_keeps_its_mathematics_and_loses_its_link() -> None:
    heading = cell("markdown", "# Why $d_k$ and [more](x.md)")
    [found] = tiny_cells(heading, cell("code", "x", "S1-20"))
    assert cell_links([found]) == "[Why $d_k$ and more (code)](#masks-s1-20)"


def test_ids_in_a_text_become_links() -> None:
    assert with_links("see S0-02; S0-2") == "see [S0-02](#source-s0-02); S0-2"


# --- the built book -------------------------------------------------------------------


class Elements(HTMLParser):
    """The text and the links in every element that has an id, by its id."""

    VOID = {"img", "br", "hr", "input", "meta", "link", "source", "wbr", "col"}

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text: dict[str, str] = {}
        self.links: dict[str, list[str]] = {}
        self.open: list[str | None] = []
        self.feed((SITE / page).read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if name := values.get("id"):
            self.text[name], self.links[name] = "", []
        if tag not in self.VOID:
            self.open.append(name)
        for name in filter(None, self.open):
            if tag == "a" and values.get("href"):
                self.links[name].append(values["href"])

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID and self.open:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        for name in filter(None, self.open):
            self.text[name] += data


@pytest.fixture(scope="module")
def site() -> dict[str, Elements]:
    if reason := stale(SITE, ROOT):
        pytest.fail(reason)
    pages = ["book/sources", "book/errata", *{cell.page for cell in CELLS}]
    return {page: Elements(f"{page}.html") for page in pages}


@pytest.mark.parametrize(
    ("listing", "prefix", "verdicts", "cells"),
    [
        ("book/sources", "source", {item["verdict"] for item in ITEMS}, CELLS),
        ("book/errata", "erratum", ledger.MISTAKES, [c for c in CELLS if c.shows]),
    ],
)
def test_the_page_leads_to_every_cell_of_every_item(
    site: dict[str, Elements], listing: str, prefix: str, verdicts: Any, cells: Any
) -> None:
    expected = {
        f"{prefix}-{item['id'].lower()}": [c for c in cells if item["id"] in c.ids]
        for item in ITEMS
        if item["verdict"] in verdicts
    }
    listed = [name for name in site[listing].text if re.match(prefix + r"-s\d", name)]
    assert listed == list(expected)
    for name, carrying in expected.items():
        links = {link for link in site[listing].links[name] if ".html#" in link}
        links = {link for link in links if not link.startswith("sources.html")}
        assert links == {f"{c.page[5:]}.html#{c.anchor}" for c in carrying}, name
        assert links


def test_every_anchor_is_that_of_its_cell(site: dict[str, Elements]) -> None:
    notebooks = {
        page: json.loads((ROOT / f"{page}.ipynb").read_text(encoding="utf-8"))
        for page in {cell.page for cell in CELLS}
    }
    assert len({found.anchor for found in CELLS}) == len(CELLS) > 200
    for found in CELLS:
        text = site[found.page].text[found.anchor]
        if found.kind == "code":
            stored = notebooks[found.page]["cells"][found.index]
            assert stored["execution_count"], f"{found.anchor} was never run"
            assert squeezed(ledger.cell_source(stored)) in squeezed(text), found.anchor


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)
