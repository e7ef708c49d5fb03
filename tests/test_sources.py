"""Every item of the sources and every question of a learner has an executed cell.

The replay of the chapters (`pytest book --nbval`) runs every cell again and compares
what it prints. These tests check that each item and question has cells, that each
mistake has one that would fail if it were none, and that the pages lead to them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import lxml.html
import pytest
from built_site import SITE
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from book._ext import cards
from book._ext.toc import ROOT

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
    verdicts = {"correct": 156, "correct-with-caveat": 84, "ambiguous": 35}
    verdicts |= {"wrong": 59, "unverifiable-here": 5}
    assert Counter(item["verdict"] for item in ITEMS) == verdicts
    for item in ITEMS:
        assert list(item) == ["id", "lines", "kind", "verdict", "says", "truth"]
        assert all(isinstance(text, str) and text.strip() for text in item.values())


def test_questions_are_asked_once_and_say_where() -> None:
    assert len({each["id"] for each in QUESTIONS}) == len(QUESTIONS) >= 200
    assert len({each["topic"] for each in QUESTIONS}) >= 18
    for each in QUESTIONS:
        assert each["question"].strip().endswith("?"), each["id"]
        assert each["asked"], each["id"]
        for url in each["asked"]:
            assert re.fullmatch(r"https?://[^\s/]+\.[^\s/]+/\S+", url), each["id"]


# --- what covers an item --------------------------------------------------------------

NAMED = {"covers": ["S0-02"]}
ANSWER = {"metadata": {"covers": ["why-root"]}, "execution_count": 1}
OUTPUT = [new_output("stream", text="1")]
CAUGHT = "try:\n    f()\nexcept ValueError as error:\n    print(error)"
HELPER = "def same(a, b):\n    assert a == b\n"


def problems(*cells: Any) -> list[str]:
    """What is wrong with a book of these cells, one question and one mistake."""
    documents = [{"sections": [{"items": [{"id": "S0-02", "verdict": "wrong"}]}]}]
    found = cards.cells_with_ids(Path("book/04_masks.ipynb"), cells)
    return list(cards.problems(documents, [{"id": "why-root"}], list(found)))


SHOWN = new_code_cell("assert x", metadata=NAMED)
ANSWERED = new_code_cell("print(1)", outputs=OUTPUT, **ANSWER)


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ([SHOWN, ANSWERED], None),
        ([SHOWN], "why-root is in no cell"),
        ([ANSWERED], "S0-02 is in no cell"),
        ([SHOWN, new_code_cell("print(1)", **ANSWER)], "should answer it shows"),
        ([SHOWN, ANSWERED | {"execution_count": None}], "should answer it shows"),
        ([SHOWN, ANSWERED | {"source": "# @title Solution 4.1\nf()"}], "a solution"),
        ([SHOWN, ANSWERED | {"source": "# @title Checks\nf()"}], "a check or"),
        ([SHOWN, ANSWERED, SHOWN | {"metadata": {"covers": ["S0-99"]}}], "'S0-99' is"),
        ([SHOWN | {"metadata": {"covers": ["S0-02"] * 2}}, ANSWERED], "or repeated"),
        ([new_markdown_cell("assert x", metadata=NAMED), ANSWERED], "is a mistake"),
    ],
)
def test_each_fault_is_named(cells: list[Any], fault: str | None) -> None:
    found = problems(*cells)
    assert found == [] if fault is None else fault in found[0]


@pytest.mark.parametrize(
    ("shows", "source"),
    [
        (True, "for x in y:\n    if x:\n        assert x, 'why'"),
        (True, "torch.testing.assert_close(a, b)"),
        (True, CAUGHT),
        (True, f"{HELPER}\nsame(x, y)"),
        (False, f"{HELPER}\nother(x, y)"),
        (False, "print('assert x == 1')  # assert x == 1"),
        (False, "assert 1 + 1 == 2"),
        (False, "try:\n    f()\nexcept ValueError:\n    pass"),
        (False, "%pip install x"),
    ],
)
def test_a_cell_shows_only_what_can_fail(shows: bool, source: str) -> None:
    assert (not problems(new_code_cell(source, metadata=NAMED), ANSWERED)) == shows
    ignored = NAMED | {"tags": ["nbval-ignore-output"]}  # its print is not compared
    assert problems(new_code_cell(CAUGHT, metadata=ignored), ANSWERED)


# --- the built book -------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(current_pages) -> dict[str, Any]:
    names = {"book/sources", "book/errata", "book/questions"}
    names |= {cell.page for cell in CELLS}
    return {name: lxml.html.parse(SITE / f"{name}.html").getroot() for name in names}


MISTAKEN = [item["id"] for item in ITEMS if item["verdict"] in cards.MISTAKES]


@pytest.mark.parametrize(
    ("page", "prefix", "ids", "cells"),
    [
        ("sources", "source", [item["id"] for item in ITEMS], CELLS),
        ("errata", "erratum", MISTAKEN, [cell for cell in CELLS if cell.shows]),
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
        links = root.xpath(f"//div[@id='{box}']//a[contains(@href, '.html#')]/@href")
        links = {link for link in links if not link.startswith(("sources", "http"))}
        carrying = [cell for cell in cells if name in cell.ids]
        assert links == {f"{c.page[5:]}.html#{c.anchor}" for c in carrying} != set()


def test_the_cells_among_the_sources_lead_back(site: dict[str, Any]) -> None:
    named = [cell for cell in CELLS if cell.named and "-answers-" not in cell.anchor]
    for page in {cell.page for cell in named}:
        links = site[page].xpath("//p[@class='source-link']/a/@href")
        ids = [name for cell in named if cell.page == page for name in cell.ids]
        assert links == [f"sources.html#source-{name}".lower() for name in ids] != []


def test_every_anchor_is_that_of_its_cell(site: dict[str, Any]) -> None:
    for one in CELLS:
        [place] = site[one.page].xpath(f"//*[@id='{one.anchor}']")
        if one.kind == "code":
            path = ROOT / f"{one.page}.ipynb"
            stored = json.loads(path.read_text("utf-8"))["cells"][one.index]
            around = place if len(place) else place.getparent()  # a second anchor
            squeezed = re.sub(r"\s", "", around.text_content())
            assert re.sub(r"\s", "", "".join(stored["source"])) in squeezed, one.anchor


def test_typing_leaves_the_questions_with_all_words(site, page) -> None:
    page.goto((SITE / "book/questions.html").resolve().as_uri())
    shown = page.locator(".question:visible")
    assert shown.count() == len(QUESTIONS)
    page.get_by_role("searchbox", name="Search the questions").fill("Mask nan")
    texts = [text.lower() for text in shown.all_text_contents()]
    assert 0 < len(texts) < len(QUESTIONS) / 4
    assert all("mask" in text and "nan" in text for text in texts)
