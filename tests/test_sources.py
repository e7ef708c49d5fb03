"""Every item of the sources and every question of a learner has an executed cell.

The replay of the chapters (`pytest book --nbval`) runs every cell again and compares
what it prints. These tests check that each item and question has cells, that each
mistake has one that would fail if it were none, and that the pages lead to them.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import lxml.html
import pytest
import yaml
from built_site import SITE, stale
from tiny_book import TABLE, Book, cell

from book_tools import cards
from book_tools.sphinx_cards import cell_links, mark_text_cells, site_name, with_links
from book_tools.toc import ROOT

DOCUMENTS, QUESTIONS = cards.read(cards.SOURCES), cards.read(cards.QUESTIONS)
ITEMS = [item for document in DOCUMENTS for item in cards.items_of(document)]
CELLS = cards.read_cells()

# --- the items and the questions ------------------------------------------------------


def test_every_item_and_every_question_has_its_cells() -> None:
    if problems := list(cards.problems(DOCUMENTS, QUESTIONS, CELLS)):
        pytest.fail("\n".join(problems), pytrace=False)
    assert len({cell.anchor for cell in CELLS}) == len(CELLS) > 400


def test_the_table_holds_every_item_and_no_verdict_was_lost() -> None:
    numbers = {doc["short"]: len(cards.items_of(doc)) for doc in DOCUMENTS}
    assert numbers == {"S0": 80, "S1": 54, "S2": 81, "S3": 91, "S4": 33}
    for doc in DOCUMENTS:
        ids = [item["id"] for item in cards.items_of(doc)]
        assert ids == [f"{doc['short']}-{n:02}" for n in range(1, len(ids) + 1)]
    verdicts = {"correct": 161, "correct-with-caveat": 76, "ambiguous": 35}
    verdicts |= {"wrong": 62, "unverifiable-here": 5}
    assert Counter(item["verdict"] for item in ITEMS) == verdicts
    for item in ITEMS:
        assert list(item) == ["id", "lines", "kind", "verdict", "says", "truth"]
        assert all(isinstance(text, str) and text.strip() for text in item.values())


def test_questions_are_asked_once_and_say_where() -> None:
    assert len({each["id"] for each in QUESTIONS}) == len(QUESTIONS) >= 200
    assert len({each["topic"] for each in QUESTIONS}) >= 18
    for each in QUESTIONS:
        assert each["question"].strip().endswith("?"), each["id"]
        assert each["asked"] and all(
            re.fullmatch(r"https?://[^\s/]+\.[^\s/]+/\S+", url) for url in each["asked"]
        ), each["id"]


def test_the_replay_of_the_chapters_is_strict() -> None:
    command = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--nbval " in command and "nbval-lax" not in command


# --- what covers an item --------------------------------------------------------------

ANSWER = cell("code", "print(1)", "why-root") | {"outputs": ["1"]}
TINY = [
    cell("markdown", "# 4. Masks\n\nText.", "S0-01"),
    cell("markdown", "## Mistakes\n```\n# no heading\n```"),
    cell("code", "assert shown", "S0-02"),
    cell("code", "assert hidden", "S0-02", tags=("hide-cell",)),
    cell("markdown", "## From the sources\n\nWords.", "S0-01"),
    ANSWER,
]
CAUGHT = "try:\n    f()\nexcept ValueError as error:\n    print(error)"
HELPER = "def same(a, b):\n    assert a == b\n"


def found(*cells: Any) -> list[cards.Cell]:
    return list(cards.cells_with_ids(Path("book/04_masks.ipynb"), cells or TINY))


@pytest.mark.parametrize(
    ("place", "changed", "message"),
    [
        (1, TINY[1], None),
        (5, cell("markdown", "Words"), "why-root is in no cell"),
        (5, ANSWER | {"outputs": []}, "a cell that should answer it shows nothing"),
        (5, ANSWER | {"execution_count": None}, "should answer it shows nothing"),
        (1, cell("markdown", "Words", "S0-99"), "'S0-99' is unknown or repeated"),
        (1, cell("markdown", "#", "S0-01", "S0-01"), "'S0-01' is unknown or repeated"),
        (2, cell("markdown", "assert x", "S0-02"), "S0-02 is a mistake, and no cell"),
        (2, cell("code", "print(mask())", "S0-02"), "S0-02 is a mistake, and no cell"),
    ],
)
def test_each_fault_is_named(place: int, changed: Any, message: str | None) -> None:
    cells = [*TINY[:place], changed, *TINY[place + 1 :]]
    if place == 2:
        del cells[3]
    questions = [{"id": "why-root"}]
    problems = list(cards.problems(yaml.safe_load(TABLE), questions, found(*cells)))
    assert problems == [] if message is None else message in problems[0]


@pytest.mark.parametrize(
    ("shows", "source"),
    [
        (True, "assert x == 1"),
        (True, "for x in y:\n    if x:\n        assert x, 'why'"),
        (True, "torch.testing.assert_close(a, b)"),
        (True, CAUGHT),
        (True, f"{HELPER}\nsame(x, y)"),
        (False, f"{HELPER}\nother(x, y)"),
        (False, "print('assert x == 1')  # assert x == 1"),
        (False, "assert 1 + 1 == 2"),
        (False, "def f(x):\n    assert x"),
        (False, "check = lambda: assert_close(a, b)"),
        (False, "try:\n    f()\nexcept ValueError:\n    pass"),
        (False, "%pip install x"),
    ],
)
def test_a_cell_shows_only_what_can_fail(shows: bool, source: str) -> None:
    [one] = found(cell("code", source, "S0-02"))
    assert one.shows == shows
    ignored = cell("code", CAUGHT, "S0-02", tags=("nbval-ignore-output",))
    assert not found(ignored)[0].shows  # its print is not compared


# --- a tiny book as pages -------------------------------------------------------------


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path, TINY[:5])


def test_every_link_leads_to_its_very_cell_and_back(book: Book) -> None:
    assert book.build()[1] == ""
    sources, masks, errata = map(book.page, ("sources", "04_masks", "errata"))
    assert 'href="04_masks.html#masks-s0-01"' in sources
    assert re.search(r'id="masks-s0-01"></span><h1>4. Masks', masks)
    assert re.search(r'id="masks-s0-02">\s*<div class="cell_input', masks)
    assert 'href="04_masks.html#masks-s0-02"' in errata
    assert "masks-s0-01" not in errata  # no mistake
    assert masks.count('href="sources.html#source-s0-01"') == 1  # the folded section
    assert re.search(r'class="source-item [^>]*wrong[^>]*id="source-s0-02"', sources)
    # A link to a hidden cell leads to the words that unfold it.
    assert re.search(r'id="masks-s0-02-2">\s*<details', masks)
    text = re.sub(r"<[^>]+>", "", sources)
    assert re.search(r"S0: A document\s+1\s+0\s+0\s+1\s+0\s+2\s+All", text)
    assert "S0-02 ✗ wrong open question, line 5" in text
    assert "4. Masks, Mistakes (code 1); 4. Masks, Mistakes (code 2)" in text


def test_the_pages_are_written_again_when_a_cell_or_the_table_changes(
    book: Book,
) -> None:
    pages = {"book/sources", "book/errata"}
    assert book.build()[0] == {"index", "book/04_masks"} | pages
    assert book.build()[0] == set()
    book.write([*TINY[:4], cell("markdown", "Closing words.", "S0-01", "S0-77")])
    read, warnings = book.build()
    assert read == {"book/04_masks"} | pages
    assert "masks-s0-01-2" in book.page("sources")
    path = book.root / "book/sources.yml"
    path.write_text(path.read_text().replace("It is not.", "It was."))
    assert book.build()[0] == pages
    assert "It was." in book.page("errata")


def test_texts_become_links() -> None:
    marked = json.loads(mark_text_cells(json.dumps({"cells": TINY}), found()))["cells"]
    assert marked[1:4] == TINY[1:4]
    assert marked[0]["source"].startswith("(masks-s0-01)=\n# 4. Masks\n")
    heading = cell("markdown", "# Why $d_k$ and [more](x.md)")
    shown = found(heading, cell("code", "x", "S1-20"))
    assert cell_links(shown) == "[Why $d_k$ and more (code)](#masks-s1-20)"
    assert with_links("see S0-02; S0-2") == "see [S0-02](#source-s0-02); S0-2"
    assert site_name("https://github.com/a/b/issues/7#issue-1") == "a/b 7"
    assert site_name("https://www.example.org/q/1") == "example.org"


# --- the built book -------------------------------------------------------------------


@pytest.fixture(scope="module")
def site() -> dict[str, Any]:
    if reason := stale(SITE, ROOT):
        pytest.fail(reason)
    names = {"book/sources", "book/errata", "book/questions"}
    names |= {cell.page for cell in CELLS}
    return {name: lxml.html.parse(SITE / f"{name}.html").getroot() for name in names}


@pytest.mark.parametrize(
    ("page", "prefix", "ids", "cells"),
    [
        ("sources", "source", [item["id"] for item in ITEMS], CELLS),
        (
            "errata",
            "erratum",
            [item["id"] for item in ITEMS if item["verdict"] in cards.MISTAKES],
            [cell for cell in CELLS if cell.shows],
        ),
        ("questions", "question", [each["id"] for each in QUESTIONS], CELLS),
    ],
)
def test_the_page_leads_to_every_cell(
    site: dict[str, Any], page: str, prefix: str, ids: list[str], cells: Any
) -> None:
    root = site[f"book/{page}"]
    listed = root.xpath(f"//div[starts-with(@id, '{prefix}-')]/@id")
    assert listed == [f"{prefix}-{name}".lower() for name in ids]
    for name, box in zip(ids, listed, strict=True):
        links = set(
            root.xpath(f"//div[@id='{box}']//a[contains(@href, '.html#')]/@href")
        )
        links = {link for link in links if not link.startswith(("sources", "http"))}
        carrying = [cell for cell in cells if name in cell.ids]
        assert links == {f"{c.page[5:]}.html#{c.anchor}" for c in carrying} != set()


def test_every_anchor_is_that_of_its_cell(site: dict[str, Any]) -> None:
    for one in CELLS:
        [place] = site[one.page].xpath(f"//*[@id='{one.anchor}']")
        if one.kind == "code":
            path = ROOT / f"{one.page}.ipynb"
            stored = json.loads(path.read_text("utf-8"))["cells"][one.index]
            around = place if len(place) else place.getparent()  # a second anchor
            squeezed = re.sub(r"\s", "", around.text_content())
            assert re.sub(r"\s", "", cards.cell_source(stored)) in squeezed, one.anchor


@pytest.mark.skipif(
    os.environ.get("BOOK_SKIP_BROWSER") == "1", reason="BOOK_SKIP_BROWSER is set"
)
def test_typing_leaves_the_questions_with_all_words(site, page) -> None:
    page.goto((SITE / "book/questions.html").resolve().as_uri())
    shown = page.locator(".question:visible")
    assert shown.count() == len(QUESTIONS)
    page.get_by_role("searchbox", name="Search the questions").fill("Mask nan")
    texts = [text.lower() for text in shown.all_text_contents()]
    assert 0 < len(texts) < len(QUESTIONS) / 4
    assert all("mask" in text and "nan" in text for text in texts)
