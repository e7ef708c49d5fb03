"""What a page folds away: opened by whoever looks for it, and on paper.

A chapter folds its section "From the sources", and names the items of the documents
nowhere else.
"""

from __future__ import annotations

import os

import lxml.html
import pytest
from tiny_book import Book, cell

WHY = "<details><summary>Why?</summary>\n\nBecause.\n\n</details>"
CELLS = [
    cell("markdown", "# 4. Masks"),
    cell("markdown", "## Where we are\n\nText.", "S0-01"),
    cell("markdown", WHY, "S0-01"),
    cell("code", "assert hidden", "S0-02", tags=("hide-cell",)),
    cell("markdown", "## From the sources\n\nSo says one.\n\n### More", "S0-01"),
    cell("code", "assert shown", "S0-02"),
    cell("markdown", "## Further reading\n\nWords."),
]
ANCHORS = ["s0-01", "s0-01-2", "s0-02", "s0-01-3", "s0-02-2"]
browser = pytest.mark.skipif(
    os.environ.get("BOOK_SKIP_BROWSER") == "1", reason="BOOK_SKIP_BROWSER is set"
)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    made = Book(tmp_path_factory.mktemp("book"), CELLS)
    assert made.build()[1] == ""
    return made


@pytest.fixture
def chapter(book):
    return lxml.html.fromstring(book.page("04_masks"))


def test_one_section_is_folded_below_its_heading(chapter):
    [fold] = chapter.xpath("//details[@class='from-the-sources']")
    assert fold.getparent().get("id") == "from-the-sources"
    assert fold.getprevious().tag == "h2"
    text = fold.text_content()
    for inside in ("Show what the five", "So says one.", "More", "assert shown"):
        assert inside in text
    assert "assert hidden" not in text and "Further reading" not in text


def test_every_cell_can_be_linked_to_and_only_folded_ones_name_items(book, chapter):
    sources = book.page("sources")
    for anchor in ANCHORS:
        assert f'href="04_masks.html#masks-{anchor}"' in sources
        assert len(chapter.xpath(f"//*[@id='masks-{anchor}']")) == 1, anchor
    named = chapter.xpath("//p[@class='source-link']")
    folded = chapter.xpath("//details//p[@class='source-link']")
    assert [part.text_content() for part in named] == [
        "Sources: S0-01",
        "Sources: S0-02",
    ]
    assert named == folded


# --- in a browser ---------------------------------------------------------------------


def address(book: Book, name: str) -> str:
    return (book.root / f"_build/book/{name}.html").as_uri()


def is_open(page) -> dict[str, bool]:
    """What can be seen of each folded text."""
    texts = {"Because.": "why", "assert hidden": "cell", "So says one.": "sources"}
    return {
        name: page.get_by_text(text).first.is_visible() for text, name in texts.items()
    }


@browser
@pytest.mark.parametrize(
    ("anchor", "opened"),
    [
        ("masks-s0-01", None),
        ("masks-s0-01-2", None),  # leads to the question, not to the answer
        ("masks-s0-02", "cell"),
        ("masks-s0-02-2", "sources"),
        ("more", "sources"),
        ("from-the-sources", "sources"),
        ("further-reading", None),
    ],
)
def test_a_link_opens_what_it_leads_to(book, page, anchor, opened):
    expected = {name: name == opened for name in ("why", "cell", "sources")}
    page.goto(address(book, "04_masks"))
    assert not any(is_open(page).values())
    page.evaluate("(name) => { location.hash = name }", anchor)
    page.wait_for_timeout(50)
    assert is_open(page) == expected
    page.reload()
    assert is_open(page) == expected
    assert page.locator(f"[id='{anchor}']").evaluate(IN_VIEW)


IN_VIEW = """(part) => {
  const { top } = part.getBoundingClientRect();
  return top >= -1 && top < window.innerHeight;
}"""


@browser
def test_paper_shows_everything(book, page):
    page.goto(address(book, "04_masks"))
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert all(is_open(page).values())
    assert not page.get_by_text("Show what the five").is_visible()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert not any(is_open(page).values())
