"""The search of the pages: what learners type finds the sections that answer it."""

from __future__ import annotations

import json
import re
from urllib.parse import quote, urlsplit

import pytest
import yaml
from built_site import SITE
from docutils import nodes
from playwright.sync_api import Page, expect
from quick_cases import some_now

from book._ext.page_rules import wait_until
from book._ext.sphinx_search import ENTRIES, names, prose
from book._ext.toc import ROOT

QUERIES = yaml.safe_load((ROOT / "tests" / "search_queries.yml").read_text("utf-8"))
SIZE = 1_200_000  # bytes of the entries, which are loaded when somebody searches

built = pytest.mark.usefixtures("browser_wanted", "current_pages")
PHONE = pytest.mark.browser_context_args(viewport={"width": 390, "height": 844})


@pytest.fixture(scope="module")
def entries() -> list[list]:
    text = (SITE / "_static" / ENTRIES).read_text("utf-8")
    assert len(text.encode()) < SIZE
    return json.loads(text.split("=", 1)[1].rstrip(";\n"))["entries"]


def open_page(page: Page, name: str = "book/04_masks.html") -> None:
    page.goto(f"{SITE.resolve().as_uri()}/{name}")


def type_in(page: Page, query: str):
    """What the field in the bar says, and the sections below it."""
    page.locator(".search input").fill(query)
    page.locator(".search input").focus()
    wait_until(page, "Boolean(window.bookSearch)")
    page.evaluate("bookSearch.ready")
    return page.locator(".found [role=status]"), page.locator(".found [role=option]")


def first_sections(page: Page) -> dict[str, list[str]]:
    """The first three that are found for each query, by the script of the pages."""
    type_in(page, "mask")
    found = page.evaluate(
        """queries => queries.map(query =>
          bookSearch.find(query).slice(0, 3).map(bookSearch.address))""",
        list(QUERIES),
    )
    short = [
        [re.sub(r"^book/|\.html", "", address) for address in addresses]
        for addresses in found
    ]
    return dict(zip(QUERIES, short, strict=True))


# --- what is found --------------------------------------------------------------


@built
def test_learners_find_their_section_among_the_first_three(page: Page, entries):
    anchors = {entry[1] for entry in entries}
    wanted = {address for right in QUERIES.values() for address in right}
    assert {name for name in wanted if name.split("#")[1] not in anchors} == set()

    open_page(page)
    first = first_sections(page)
    missed = {q: first[q] for q in QUERIES if not set(first[q]) & set(QUERIES[q])}
    assert len(QUERIES) == 40 and len(missed) <= 2, missed


@built
@pytest.mark.parametrize(
    ("query", "page_found"),
    some_now(
        [
            ("masks", "04_masks"),
            ("dropout", "05_layer_norm_and_residuals"),
            ("encoder", "06_encoder"),
            ("training", "10_training"),
            ("incremental decoding", "12_incremental_decoding"),
            ("reading attention", "14_reading_attention"),
            ("other people's code", "16_other_peoples_code"),
        ],
        *(2, 6),
    ),
)
def test_the_chapter_with_the_words_in_its_title_comes_first(query, page_found, page):
    open_page(page)
    type_in(page, query)
    [first, *_] = page.evaluate("q => bookSearch.find(q)", query)
    address = page.evaluate("bookSearch.address", first)
    assert address.startswith(f"book/{page_found}.html#")
    assert first["kind"] == "page"


@built
def test_imports_and_outputs_are_no_part_of_any_entry(entries):
    code = re.compile(
        r"\bimport torch\b|from \w+(\.\w+)+ import|transformer_lib\.\w+ import"
    )
    assert [entry[3] for entry in entries if code.search(" ".join(entry[3:]))] == []


@built
def test_every_entry_leads_to_a_place_of_its_page(entries):
    text = (SITE / "_static" / ENTRIES).read_text("utf-8")
    pages = json.loads(text.split("=", 1)[1].rstrip(";\n"))["pages"]
    html = [(SITE / link).read_text("utf-8") for link, _ in pages]
    lost = [e[:2] for e in entries if f'id="{e[1]}"' not in html[e[0]]]
    assert lost == []


def test_a_cell_gives_its_names_and_what_its_picture_says():
    section, cell, source = nodes.section(), nodes.container(), nodes.container()
    cell["nb_element"], source["nb_element"] = "cell_code", "cell_code_source"
    cell["cell_metadata"] = {"mystnb": {"image": {"alt": "Two heads"}}}
    code = "import torch\n\nclass Head:\n    def run(self): ...\n\ndef split(): ..."
    source += nodes.literal_block(code, code)
    cell += source
    section += [cell, nodes.paragraph("", "Each head looks elsewhere.")]
    assert names(section) == "Head split"
    assert prose(section[0]).strip() == "Two heads"
    assert prose(section[1]) == "Each head looks elsewhere."


# --- the list under the field ---------------------------------------------------


@built
@PHONE
def test_a_list_opens_as_one_types_and_the_keyboard_leads_to_a_section(page: Page):
    open_page(page, "book/09_data_and_batches.html")
    _, options = type_in(page, "causal mask")
    expect(options.first).to_be_visible()
    expect(options.first.locator("mark").first).to_be_visible()
    box = page.locator(".found").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390

    field = page.locator(".search input")
    for _ in range(2):
        field.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    field.press("ArrowUp")
    expect(options.nth(1)).not_to_have_attribute("aria-selected", "true")
    address = options.first.get_attribute("href")
    field.press("Escape")
    expect(page.locator(".found")).to_be_hidden()

    type_in(page, "causal mask ")
    expect(options.first).to_be_visible()
    field.press("ArrowDown")
    field.press("Enter")
    page.wait_for_url(f"**/{address.removeprefix('../')}")
    place = page.locator(f"[id='{urlsplit(address).fragment}']")
    expect(place).to_be_in_viewport()


@built
def test_a_section_that_is_folded_away_is_opened(page: Page):
    open_page(page)
    _, options = type_in(page, "triu or tril")
    place = "#question-triu-or-tril"
    options.and_(page.locator(f"[href$='{place}']")).click()
    expect(page.locator(place)).to_be_visible()


@built
@pytest.mark.parametrize(
    ("query", "said"),
    some_now(
        [
            (")(", "Type a word"),
            ("the", "Type a word"),
            ("zyxzyxqq", "Nothing in the book has “zyxzyxqq”"),
            ("x" * 5000, "Nothing in the book has “" + "x" * 40 + "…”"),
            ("<img src=x onerror=alert(1)>qzqzqz", "as it is typed"),
            ("transfomer", "Nothing has “transfomer” as it is typed"),
        ],
        *(0, 4),
    ),
)
def test_odd_queries_get_a_sentence_and_a_way_on(query, said, page: Page):
    open_page(page, f"search.html?q={quote(query)}")
    status = page.locator(".all-found [role=status]")
    expect(status).to_contain_text(said)
    assert page.locator(".all-found img").count() == 0
    links = status.locator("a").all() + page.locator(".all-found [role=option]").all()
    assert links
    page.goto(links[0].evaluate("link => link.href"))
    expect(page.locator("h1").first).to_be_visible()


@built
def test_nothing_of_the_search_is_loaded_before_it_is_used(page: Page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    open_page(page)
    page.wait_for_timeout(300)
    assert not any("/search/" in url for url in asked)
    _, options = type_in(page, "dropout")
    expect(options.first).to_be_visible()
    assert any(url.endswith(ENTRIES) for url in asked)


@built
@pytest.mark.browser_context_args(java_script_enabled=False)
def test_without_scripts_the_page_of_the_search_lists_the_pages(page: Page):
    open_page(page, "search.html?q=mask")
    expect(page.get_by_text("The search needs scripts")).to_be_visible()
    chapter = page.locator("noscript, main").get_by_role("link", name="4. Masks")
    chapter.first.click()
    expect(page.locator("h1").first).to_contain_text("Masks")


@built
def test_the_search_of_sphinx_is_gone():
    assert not list(SITE.rglob("searchindex.js")) + list(SITE.rglob("searchtools.js"))
    assert "searchtools" not in (SITE / "search.html").read_text("utf-8")
