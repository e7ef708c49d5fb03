"""The built pages in a real browser, with the network cut.

Input is `_build/html`, which `make book` writes. Another folder is tested with
`BOOK_SITE=folder`. `BOOK_SKIP_BROWSER=1` leaves these tests out.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from built_site import SITE, stale
from playwright.sync_api import Browser, BrowserContext, Page

from book_tools import browser
from book_tools.page_rules import complaints
from book_tools.sphinx_book import STAMP
from book_tools.toc import ROOT, chapters, pages

if os.environ.get("BOOK_SKIP_BROWSER") == "1":
    pytest.skip("BOOK_SKIP_BROWSER is set", allow_module_level=True)


PAGES = pages()
CHAPTERS = [f"book/{path.stem}" for path in chapters()]
ON_CHAPTERS = pytest.mark.parametrize("name", CHAPTERS)
ON_PAGES = pytest.mark.parametrize("name", [*PAGES, "search"])


# --- fixtures: one browser and one server for all -----------------------------


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    if reason := stale(SITE, ROOT):
        pytest.fail(reason)
    with browser.serve(SITE) as address:
        yield address


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    try:
        browser.find_browser()
    except FileNotFoundError as missing:
        pytest.fail(str(missing))
    with browser.chromium() as running:
        yield running


Opened = tuple[BrowserContext, browser.Trouble]


@pytest.fixture(scope="module")
def wide_and_light(window: Browser) -> Iterator[Opened]:
    with browser.open_context(window) as opened:
        yield opened


@pytest.fixture(scope="module")
def phone_and_dark(window: Browser) -> Iterator[Opened]:
    with browser.open_context(window, width=390, height=844, dark=True) as opened:
        yield opened


def watched(opened: Opened) -> Iterator[Page]:
    """A new page; at the end nothing may have gone wrong on it."""
    context, trouble = opened
    trouble.clear()
    page = context.new_page()
    yield page
    page.close()
    assert trouble.listed() == []


@pytest.fixture
def page(wide_and_light: Opened) -> Iterator[Page]:
    yield from watched(wide_and_light)


@pytest.fixture
def phone(phone_and_dark: Opened) -> Iterator[Page]:
    yield from watched(phone_and_dark)


# --- every page ----------------------------------------------------------------


def is_dark(page: Page) -> bool:
    """Whether the text is lighter than the page behind it, by far."""
    ink, paper = (
        sum(float(part) for part in re.findall(r"[\d.]+", color)[:3]) / 3
        for color in page.evaluate(
            """() => [getComputedStyle(document.querySelector("main")).color,
              getComputedStyle(document.body).backgroundColor]"""
        )
    )
    assert abs(ink - paper) > 120, f"ink {ink:.0f} on paper {paper:.0f}"
    return ink > paper


@ON_PAGES
def test_wide_and_light(name: str, base: str, page: Page) -> None:
    browser.visit(page, f"{base}/{name}.html")
    assert not is_dark(page)
    assert complaints(page) == []


@ON_PAGES
def test_phone_and_dark(name: str, base: str, phone: Page) -> None:
    browser.visit(phone, f"{base}/{name}.html")
    assert is_dark(phone)
    rules = "mathematics charts pictures width scrolling_parts code_colors"
    assert complaints(phone, [*rules.split(), "accessibility"]) == []


def test_the_switch_changes_the_colors_and_is_remembered(
    base: str, window: Browser
) -> None:
    with browser.open_context(window) as (context, _):
        page = context.new_page()
        page.goto(f"{base}/{PAGES[0]}.html")
        seen = set()
        for _ in range(3):  # light, dark, as the system
            page.locator(".theme-switch-button:visible").first.click()
            seen.add(is_dark(page))
            if is_dark(page):
                page.goto(f"{base}/{PAGES[1]}.html")
                assert is_dark(page)
        assert seen == {False, True}


# --- chapters ------------------------------------------------------------------


@ON_CHAPTERS
def test_buttons_lead_to_the_notebook(name: str, base: str, page: Page) -> None:
    page.goto(f"{base}/{name}.html")
    links = page.eval_on_selector_all(
        ".bd-header-article a", "(links) => links.map((link) => link.href)"
    )
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    slug = settings["repository"]["url"].removeprefix("https://github.com/")
    colab = f"https://colab.research.google.com/github/{slug}/blob/main/{name}.ipynb"
    assert colab in links
    assert f"{base}/_sources/{name}.ipynb" in links
    stored = (SITE / "_sources" / f"{name}.ipynb").read_bytes()
    assert stored == (ROOT / f"{name}.ipynb").read_bytes()


@ON_CHAPTERS
def test_solutions_are_folded_away_and_print_shows_all(
    name: str, base: str, phone: Page
) -> None:
    browser.visit(phone, f"{base}/{name}.html")
    solutions = phone.locator("details.hide", has_text="Show the solution")
    assert solutions.count() >= 3
    code = solutions.first.locator("pre").first
    assert not code.is_visible()
    phone.set_viewport_size({"width": 720, "height": 1000})
    phone.emulate_media(media="print", color_scheme="dark")
    phone.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert code.is_visible()
    assert not is_dark(phone)
    assert complaints(phone, ["width", "code_colors"]) == []
    for part in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".copybtn"):
        assert phone.locator(part).locator("visible=true").count() == 0, part
    cut = phone.evaluate(
        """() => [...document.querySelectorAll("article :is(pre, div.math, img, svg)")]
          .filter((part) => part.checkVisibility())
          .filter((part) => getComputedStyle(part).overflowX === "auto" ||
            part.getBoundingClientRect().right > window.innerWidth)
          .map((part) => part.outerHTML.slice(0, 90))"""
    )
    assert cut == []
    phone.evaluate("window.dispatchEvent(new Event('afterprint'))")
    phone.emulate_media(media="screen")
    assert is_dark(phone)
    assert phone.locator("article details[open]").count() == 0


@ON_CHAPTERS
def test_a_page_without_scripts_shows_its_pictures(
    name: str, base: str, window: Browser
) -> None:
    context = window.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{base}/{name}.html")
    assert page.locator("article h1").is_visible()
    for picture in page.locator(".vega-picture img").all():
        assert picture.is_visible()
    page.locator("details.hide > summary").last.press("Enter")
    assert page.locator("details.hide").last.locator("pre").first.is_visible()
    context.close()


@ON_CHAPTERS
def test_checks_and_answers_stand_out(name: str, base: str) -> None:
    text = (SITE / f"{name}.html").read_text(encoding="utf-8")
    assert '<span class="k">assert</span>' not in text
    assert text.count('<span class="k assert">assert</span>') > 0
    for kind in ("feedback-open", "feedback-right"):
        assert len(re.findall(rf'class="output [^"]*{kind}', text)) >= 3


# --- getting around ------------------------------------------------------------


def test_search_finds_a_word(base: str, page: Page) -> None:
    page.goto(f"{base}/search.html?q=softmax")
    page.wait_for_selector("#search-results li p.context")
    found = page.eval_on_selector_all(
        "#search-results li a", "(links) => links.map((link) => link.pathname)"
    )
    assert "/book/02_scaled_dot_product_attention.html" in found
    page.wait_for_load_state("networkidle")  # it reads every page for its excerpt
    page.goto(f"{base}/search.html?q=zzyzx")
    page.wait_for_function("document.body.innerText.includes('did not match')")
    assert page.locator("#search-results li").count() == 0


def test_search_opens_with_the_keyboard(base: str, page: Page) -> None:
    page.goto(f"{base}/{PAGES[0]}.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=softmax")
    page.wait_for_selector("#search-results li")
    page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("name", [*CHAPTERS[:1], "search"])
def test_pages_open_from_the_folder(name: str, page: Page, base: str) -> None:
    query = "?q=softmax" if name == "search" else ""
    browser.visit(page, f"{(SITE / name).resolve().as_uri()}.html{query}")
    if name == "search":
        page.wait_for_selector("#search-results li")
    assert complaints(page, ["mathematics", "pictures"]) == []


def test_the_address_of_the_site_leads_to_the_first_page(base: str, page: Page) -> None:
    page.goto(base)
    page.wait_for_url(f"**/{PAGES[0]}.html")


def test_keyboard_skips_to_the_text_and_shows_where_it_is(
    base: str, page: Page
) -> None:
    page.goto(f"{base}/{PAGES[1]}.html")
    focused = "document.activeElement"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.textContent").strip() == "Skip to main content"
    page.wait_for_function(f"{focused}.getBoundingClientRect().top >= 0")
    for _ in range(12):
        page.keyboard.press("Tab")
        outline = page.evaluate(f"getComputedStyle({focused}).outline")
        name = page.evaluate(f"{focused}.outerHTML.slice(0, 100)")
        assert "solid" in outline, name
        assert float(re.search(r"([\d.]+)px", outline)[1]) >= 2, name
    page.goto(f"{base}/{PAGES[1]}.html")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.url.endswith("#main-content")


class Links(HTMLParser):
    """The addresses a page leads to, and the places on it that can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.leads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key == "href" and tag == "a" and value:
                self.leads.append(value)
            if key == "id" and value:
                self.places.add(value)


def dead_links(site: Path) -> list[str]:
    """Links from page to page whose page or place does not exist."""
    pages = {path: Links(path.read_text("utf-8")) for path in site.rglob("*.html")}
    dead = []
    for path, links in pages.items():
        for lead in links.leads:
            parts = urlsplit(lead)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve()
            target = target if parts.path else path
            place = unquote(parts.fragment)
            known = target in pages and (not place or place in pages[target].places)
            if not known and (place or not target.exists()):
                dead.append(f"{path.relative_to(site)}: {lead}")
    return dead


def test_no_link_leads_nowhere(base: str) -> None:
    assert dead_links(SITE.resolve()) == []


# --- the checks themselves can fail ---------------------------------------------

BROKEN = {  # rule: what is done to the page, a word of the complaint
    "mathematics": [
        ("document.querySelector('mjx-container').remove()", "not typeset"),
        (
            "document.querySelector('mjx-container').append("
            "document.createElement('mjx-merror'))",
            "error in a formula",
        ),
        ("document.querySelector('article p').append('\\\\(x')", "left in the text"),
    ],
    "charts": [
        (
            "document.querySelector('article').innerHTML +="
            " '<div class=vega-chart aria-labelledby=c></div>'",
            "c is not drawn",
        ),
        (
            "document.querySelector('article').innerHTML +="
            " '<div class=vega-chart aria-labelledby=c><svg width=9 height=9></svg>"
            "<input type=range name=head></div>'",
            "does not answer",
        ),
    ],
    "pictures": [
        ("document.body.append(new Image())", "picture without words"),
        (
            "new Promise((done) => { const img = new Image(); img.alt = 'A map.';"
            " img.onerror = done; img.src = 'data:image/png,no';"
            " document.body.append(img) })",
            "picture not loaded",
        ),
    ],
    "width": [
        ("document.querySelector('article p').style.width = '2000px'", "pixels wide")
    ],
    "structure": [
        (
            "document.querySelector('article h2').outerHTML = '<h4>x</h4>'",
            "skips from 1 to 4",
        ),
        ("document.querySelector('article h2').outerHTML = '<h1>x</h1>'", "of level 1"),
        ("document.documentElement.lang = ''", "no language"),
        ("document.title = ''", "no title"),
    ],
    "hidden_cells": [
        (
            "document.querySelector('article').innerHTML +="
            ' \'<details><summary tabindex=-1 onkeydown="event.preventDefault()">'
            "Show</summary>x</details>'",
            "does not open",
        ),
        (
            "document.querySelector('article').innerHTML +="
            " '<details><summary aria-label=Toggle>Show</summary>x</details>'",
            "own words",
        ),
    ],
    "scrolling_parts": [
        (
            "document.querySelector('article').innerHTML +="
            " '<div style=\"overflow: auto; width: 9px\"><pre>wide text</pre></div>'",
            "no key scrolls",
        )
    ],
    "code_colors": [
        (
            "document.querySelector('article').innerHTML +="
            " '<pre style=\"color: #999; background: #aaa\">pale</pre>'",
            "pale",
        )
    ],
    "accessibility": [
        ("document.body.append(document.createElement('button'))", "button-name"),
        ("document.querySelector('article p').style.color = '#ccc'", "color-contrast"),
    ],
}


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_can_fail(rule: str, base: str, page: Page) -> None:
    for number, (harm, word) in enumerate(BROKEN[rule]):
        browser.visit(page, f"{base}/book/notation.html")
        assert number or complaints(page, [rule]) == []
        page.evaluate(harm)
        assert word in " ".join(complaints(page, [rule])), harm


@pytest.mark.parametrize(
    ("harm", "word"),
    [
        ("fetch('https://example.org/x.js')", "asks the network for https://example"),
        ("fetch('missing.css')", "status 404"),
        ("console.error('no such head')", "says on the console no such head"),
        ("setTimeout(() => { throw Error('no axis') })", "throws no axis"),
    ],
)
def test_trouble_is_seen(harm: str, word: str, base: str, window: Browser) -> None:
    with browser.open_context(window) as (context, trouble):
        page = context.new_page()
        page.goto(f"{base}/{PAGES[0]}.html")
        assert trouble.listed() == []
        page.evaluate(f"() => {{ {harm} }}")
        page.wait_for_timeout(200)
        assert any(word in line for line in trouble.listed()), trouble.listed()


def test_stale_pages_are_refused(tmp_path: Path) -> None:
    site, root = tmp_path / "site", tmp_path / "root"
    (root / "book").mkdir(parents=True)
    site.mkdir()
    source = root / "book" / "index.md"
    source.write_text("# A book\n")
    assert "run make book first" in stale(site, root)
    (site / STAMP).touch()
    os.utime(source, (0, 0))
    assert stale(site, root) is None
    os.utime(source, (2**31, 2**31))
    assert stale(site, root) == "book/index.md is newer: run make book first"


def test_a_dead_link_is_seen(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text("<a href='two.html#here'>1</a><a href='#no'>2")
    (tmp_path / "two.html").write_text("<p id=here><a href='three.html'>3</a>")
    assert sorted(dead_links(tmp_path)) == ["one.html: #no", "two.html: three.html"]


def test_a_missing_browser_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="apt-get install chromium"):
        browser.find_browser()
