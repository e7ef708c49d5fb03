"""Every mistake of the documents has a cell that would fail if it were none.

The cells themselves are run by the replay of the chapters (`pytest book --nbval`),
which also compares what they print. That replay is the regression test of every
erratum. Here is checked that there is such a cell for each, that it can fail, and
that the page of errata leads to it.
"""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser

import pytest
from built_site import SITE, stale

from book_tools.demonstrations import demonstrations
from book_tools.errata_page import errata_label
from book_tools.ledger import read_coverage
from book_tools.source_places import Place, cell_source
from book_tools.source_table import ROOT, load_table

TABLE = load_table()
COVERAGE = read_coverage(TABLE)
MISTAKES = [item for item in TABLE.items.values() if item.is_mistake]
DUE = [item for item in MISTAKES if item.chapter not in TABLE.waiting]
SHOWN = {
    item.id: [place for place in COVERAGE[item.id] if place.shows] for item in MISTAKES
}


def stored(place: Place) -> dict:
    notebook = json.loads((ROOT / f"{place.docname}.ipynb").read_text("utf-8"))
    return notebook["cells"][place.cell]


# --- the cells -----------------------------------------------------------------


@pytest.mark.parametrize("item", DUE, ids=lambda item: item.id)
def test_a_cell_shows_the_mistake(item) -> None:
    if not SHOWN[item.id]:
        pytest.fail(
            f"no code cell with {item.id} asserts something or catches and prints an "
            f"error: {item.says}",
            pytrace=False,
        )
    for place in SHOWN[item.id]:
        cell = stored(place)
        assert cell["execution_count"], f"{place.anchor} was never run"
        assert all(out["output_type"] != "error" for out in cell["outputs"])


def test_the_tests_replay_all_chapters_strictly() -> None:
    command = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "pytest tests book --nbval " in command
    assert "nbval-lax" not in command


# --- what counts as showing ----------------------------------------------------


def shows(source: str, *tags: str, before: str = "") -> bool:
    cells = [
        {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": [text]}
        for text in (before, source)
    ]
    return 1 in demonstrations(cells)


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
    assert shows(source)


@pytest.mark.parametrize(
    "source",
    [
        "print('assert x == 1')  # assert x == 1",
        "'assert x'",
        "assert True, x",
        "assert 1 + 1 == 2",
        "def f(x):\n    assert x",
        "check = lambda: assert_close(a, b)",
        "try:\n    f()\nexcept ValueError:\n    pass",
        "try:\n    print(f())\nfinally:\n    g()",
        "print(x == y)",
        "%pip install x",
    ],
)
def test_a_cell_that_cannot_fail_does_not_show(source: str) -> None:
    assert not shows(source)


def test_the_check_may_stand_in_a_function_of_the_notebook() -> None:
    assert shows("same(x, y)", before=HELPER)
    assert not shows("same(x, y)", before=HELPER.replace("assert a == b", "a == b"))
    assert not shows("other(x, y)", before=HELPER)


def test_what_is_printed_counts_only_where_it_is_compared() -> None:
    assert not shows(CAUGHT, "nbval-ignore-output")
    assert shows("assert x", "nbval-ignore-output")
    assert not shows("assert x", "nbval-skip")
    assert not shows("assert x", "raises-exception")


# --- the built page ------------------------------------------------------------


class Cells(HTMLParser):
    """The text of every element that has an id, by its id."""

    VOID = {"img", "br", "hr", "input", "meta", "link", "source", "wbr", "col"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text: dict[str, str] = {}
        self.links: dict[str, list[str]] = {}
        self.open: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag not in self.VOID:
            self.open.append(values.get("id"))
        for name in filter(None, self.open):
            if tag == "a" and values.get("href"):
                self.links.setdefault(name, []).append(values["href"])

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID and self.open:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        for name in filter(None, self.open):
            self.text[name] = self.text.get(name, "") + data


@pytest.fixture(scope="module")
def errata() -> Cells:
    if reason := stale(SITE, ROOT):
        pytest.fail(reason)
    return Cells((SITE / "book/errata.html").read_text("utf-8"))


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", html.unescape(text))


def test_the_page_lists_what_is_shown_and_nothing_else(errata: Cells) -> None:
    listed = [name for name in errata.text if name.startswith("erratum-")]
    assert listed == [errata_label(name) for name, places in SHOWN.items() if places]
    assert len(listed) >= len(DUE) > 0


def test_what_waits_is_named_on_the_page(errata: Cells) -> None:
    for item in MISTAKES:
        document = f"errata-{item.id.partition('-')[0].lower()}"
        waiting = errata.text[document].partition("Waiting for a later chapter")[2]
        assert (item.id in waiting) == (not SHOWN[item.id])


def test_every_link_of_the_page_leads_to_the_cell_that_shows_it(errata: Cells) -> None:
    pages: dict[str, Cells] = {}
    for name, places in SHOWN.items():
        links = errata.links.get(errata_label(name), [])
        for place in places:
            page = f"{place.docname.rpartition('/')[2]}.html"
            assert f"{page}#{place.anchor}" in links, name
            if page not in pages:
                pages[page] = Cells((SITE / "book" / page).read_text("utf-8"))
            source = squeezed(cell_source(stored(place)))
            assert source in squeezed(pages[page].text.get(place.anchor, "")), (
                place.anchor
            )
