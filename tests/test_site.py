"""The built pages in a real browser, opened from the folder, with the network cut.

Input is `_build/html`, which `make book` writes. Another folder is tested with
`BOOK_SITE=folder`. `BOOK_SKIP_BROWSER=1` leaves these tests out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import lxml.html
import pytest
import yaml
from built_site import SITE, stale
from playwright.sync_api import Page

from book_tools import sphinx_book
from book_tools.page_rules import (
    RULES,
    accessibility,
    axe,
    charts,
    code,
    code_colors,
    complaints,
    diagrams,
    mathematics,
    pictures,
    visit,
    width,
)
from book_tools.sphinx_book import STAMP
from book_tools.toc import ROOT, chapters, pages

if os.environ.get("BOOK_SKIP_BROWSER") == "1":
    pytest.skip("BOOK_SKIP_BROWSER is set", allow_module_level=True)

PAGES = pages()
CHAPTERS = [f"book/{path.stem}" for path in chapters()]
ON_CHAPTERS = pytest.mark.parametrize("name", CHAPTERS)
ON_A_THIRD = pytest.mark.parametrize(  # the others with the slow tests
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * bool(number % 3))
        for number, name in enumerate(CHAPTERS)
    ],
)
SCROLLS = ["scrollable-region-focusable"]
DARK = pytest.mark.browser_context_args(
    viewport={"width": 390, "height": 844}, color_scheme="dark"
)


def address(name: str) -> str:
    return f"{SITE.resolve().as_uri()}/{name}.html"


@pytest.fixture(scope="module", autouse=True)
def current_pages():
    if reason := stale(SITE, ROOT):
        pytest.fail(reason)


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


def looks() -> Iterator[Any]:
    """Every page in two looks; each time one of them is with the slow tests."""
    for number, name in enumerate([*PAGES, "search"]):
        for dark, look in enumerate(("wide and light", "phone and dark")):
            marks = [DARK] * dark + [pytest.mark.slow] * ((number + dark) % 2)
            yield pytest.param(name, bool(dark), id=f"{name}-{look}", marks=marks)


@pytest.mark.parametrize(("name", "dark"), list(looks()))
def test_page(name, dark, page):
    visit(page, address(name))
    assert is_dark(page) == dark
    assert complaints(page) == []


def test_pages_hold_in_other_fonts_on_a_phone(launch):
    """Every other test meets DejaVu, which is wide; the fonts of a machine vary."""
    found = {}
    with launch("STIX") as browser:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        for name in PAGES:
            visit(page, address(name))
            focus = axe(page, {"include": "html"}, runOnly=SCROLLS)
            if wrong := [*width(page), *focus]:
                found[name] = wrong
    assert found == {}


def test_the_switch_changes_the_colors_and_is_remembered(page):
    page.goto(address(PAGES[0]))
    seen = set()
    for _ in range(3):  # light, dark, as the system
        page.locator(".theme-switch-button:visible").first.click()
        seen.add(is_dark(page))
        if is_dark(page):
            page.goto(address(PAGES[1]))
            assert is_dark(page)
    assert seen == {False, True}


def test_a_fragment_that_is_no_escape_opens_the_page(page):
    page.goto(f"{address('book/translator')}#%")
    page.evaluate("location.hash = '#%zz'")
    page.wait_for_timeout(100)  # whatever it throws is trouble


def test_the_first_page_opens_by_itself(page):
    page.goto(address("index"))
    page.wait_for_url(f"**/{PAGES[0]}.html")


# --- chapters ------------------------------------------------------------------


@ON_CHAPTERS
def test_buttons_lead_to_the_notebook(name):
    html = lxml.html.parse(SITE / f"{name}.html")
    links = html.xpath("//*[contains(@class, 'bd-header-article')]//a/@href")
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    slug = settings["repository"]["url"].removeprefix("https://github.com/")
    colab = f"https://colab.research.google.com/github/{slug}/blob/main/{name}.ipynb"
    assert colab in links
    assert f"../_sources/{name}.ipynb" in links
    stored = (SITE / "_sources" / f"{name}.ipynb").read_bytes()
    assert stored == (ROOT / f"{name}.ipynb").read_bytes()


@ON_A_THIRD
@DARK
def test_solutions_are_folded_away_and_print_shows_all(name, page):
    visit(page, address(name))
    solutions = page.locator("details.hide", has_text="Show the solution")
    solution = solutions.first.locator("pre").first
    for key, shown in ("Enter", True), ("Space", False):
        solutions.first.locator("summary").press(key)
        assert solution.is_visible() == shown
    assert page.locator("summary[aria-label]").count() == 0  # its own words name it
    page.set_viewport_size({"width": 720, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert solution.is_visible()
    assert not is_dark(page)
    assert complaints(page, [width]) == []
    for part in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".copybtn"):
        assert page.locator(part).locator("visible=true").count() == 0, part
    truncated = page.evaluate(
        """() => [...document.querySelectorAll("article :is(pre, div.math, img, svg)")]
          .filter((part) => part.checkVisibility())
          .filter((part) => getComputedStyle(part).overflowX === "auto" ||
            part.getBoundingClientRect().right > window.innerWidth)
          .map((part) => part.outerHTML.slice(0, 90))"""
    )
    assert truncated == []
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert is_dark(page)
    assert page.locator("article details[open]").count() == 0


@ON_A_THIRD
@pytest.mark.browser_context_args(java_script_enabled=False)
def test_a_page_without_scripts_shows_its_pictures(name, page, trouble):
    page.goto(address(name))
    assert page.locator("article h1").is_visible()
    for picture in page.locator(".vega-picture img").all():
        assert picture.is_visible()
    page.locator("details.hide > summary").last.press("Enter")
    assert page.locator("details.hide").last.locator("pre").first.is_visible()
    trouble[:] = [line for line in trouble if ".js?" not in line]  # scripts, of course


def cells_of_every_color() -> str:
    """Cells of the chapters that together hold every class of code and output."""
    seen, cells = set(), []
    for name in CHAPTERS:
        html = lxml.html.parse(SITE / f"{name}.html")
        for cell in html.xpath("//*[contains(@class, 'cell_') and .//pre]"):
            kind = cell.get("class")
            classes = {(kind, part) for part in cell.xpath(".//pre//@class")}
            if not classes <= seen:
                seen |= classes
                cells.append(lxml.html.tostring(cell, encoding="unicode"))
    return f"<div class=cell>{''.join(cells)}</div>"


@pytest.mark.parametrize(
    ("scheme", "media"), [("light", "screen"), ("dark", "screen"), ("dark", "print")]
)
def test_code_can_be_read(scheme, media, page, trouble):
    page.emulate_media(media=media, color_scheme=scheme)
    visit(page, address(PAGES[-1]))
    page.locator("article").evaluate(
        "(article, html) => { article.innerHTML = html }", cells_of_every_color()
    )
    assert page.locator("article pre .k").count() > 0
    assert complaints(page, [code_colors]) == []
    trouble.clear()  # pictures of other pages


@ON_CHAPTERS
def test_checks_and_answers_stand_out(name):
    text = (SITE / f"{name}.html").read_text(encoding="utf-8")
    assert '<span class="k">assert</span>' not in text
    assert '<span class="k assert">assert</span>' in text
    for kind in ("feedback-open", "feedback-right"):
        assert re.search(rf'class="output [^"]*{kind}', text)


# --- getting around ------------------------------------------------------------


def test_search_finds_a_word(page):
    page.goto(f"{address('search')}?q=softmax")
    page.wait_for_selector("#search-results li")
    found = page.eval_on_selector_all(
        "#search-results li a", "(links) => links.map((link) => link.href)"
    )
    assert address("book/02_scaled_dot_product_attention") in found
    page.goto(f"{address('search')}?q=zzyzx")
    page.wait_for_function("() => document.body.innerText.includes('did not match')")
    assert page.locator("#search-results li").count() == 0


def test_keyboard_skips_to_the_text_and_shows_where_it_is(page):
    page.goto(address(PAGES[1]))
    focused = "document.activeElement"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.textContent").strip() == "Skip to main content"
    page.wait_for_function(f"() => {focused}.getBoundingClientRect().top >= 0")
    for _ in range(12):
        page.keyboard.press("Tab")
        outline = page.evaluate(f"getComputedStyle({focused}).outline")
        name = page.evaluate(f"{focused}.outerHTML.slice(0, 100)")
        assert "solid" in outline, name
        assert float(re.search(r"([\d.]+)px", outline)[1]) >= 2, name
    page.goto(address(PAGES[1]))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.url.endswith("#main-content")


def dead_links(site: Path) -> list[str]:
    """Links from page to page whose page or anchor does not exist."""
    html = {path: lxml.html.parse(path) for path in site.rglob("*.html")}
    anchors = {path: set(parsed.xpath("//@id")) for path, parsed in html.items()}
    dead = []
    for path, parsed in html.items():
        for link in parsed.xpath("//a/@href"):
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve()
            target = target if parts.path else path
            anchor = unquote(parts.fragment)
            known = target in html and (not anchor or anchor in anchors[target])
            if parts.scheme or parts.netloc or known:
                continue
            if anchor or not target.exists():
                dead.append(f"{path.relative_to(site)}: {link}")
    return dead


def test_no_link_leads_nowhere():
    assert dead_links(SITE.resolve()) == []


# --- the checks themselves can fail ---------------------------------------------


def append(html: str) -> str:
    return (
        f"document.querySelector('article').insertAdjacentHTML('beforeend', `{html}`)"
    )


CHART = "<div class=vega-chart aria-labelledby=c>"
DIAGRAM = (
    "<svg class=diagram style='width: 9px'>"
    "<rect style='fill: var(--diagram-page)'></rect></svg>"
)
FIRST_FORMULA = "document.querySelector('mjx-container')"
BROKEN = [  # rule, what is done to the page, what the rule says
    (accessibility, append("<button></button>"), "button-name"),
    (accessibility, append("<p style='color: #ccc'>pale</p>"), "color-contrast"),
    (accessibility, append("<h5>far below</h5>"), "heading-order"),
    (accessibility, append("<details><summary /></details>"), "summary-name"),
    (
        code,  # after the theme's script, which makes what scrolls focusable, once
        "new Promise((done) => setTimeout(done, 400)).then(() => "
        + append("<pre style='overflow: auto; width: 40px'>a wide text</pre>")
        + ")",
        "scrollable-region-focusable",
    ),
    (
        code_colors,
        append("<pre style='color: #999; background: #aaa'>pale</pre>"),
        "color-contrast",
    ),
    (mathematics, f"{FIRST_FORMULA}.remove()", "not typeset"),
    (
        mathematics,
        f"{FIRST_FORMULA}.append(document.createElement('mjx-merror'))",
        "error in a formula",
    ),
    (mathematics, append("<p>\\\\(x</p>"), "left in the text"),
    (charts, append(f"{CHART}</div>"), "c is not drawn"),
    (
        charts,
        append(f"{CHART}<svg width=9 height=9></svg><input type=range name=h></div>"),
        "does not answer to its input h",
    ),
    (pictures, append("<img src=x.png alt=' '>"), "picture without words"),
    (
        pictures,
        "new Promise((done) => { const img = new Image(); img.alt = 'A map.';"
        " img.onerror = done; img.src = 'data:image/png,no';"
        " document.body.append(img) })",
        "picture not loaded",
    ),
    (diagrams, append(f"<p style='background: #eee'>{DIAGRAM}</p>"), "238) behind"),
    (
        diagrams,
        append(DIAGRAM.replace("var(--diagram-page)", "red")),
        "255, 0, 0) behind",
    ),
    (diagrams, append(DIAGRAM.replace("9px", "2000px")), "wider than its column"),
    (width, append("<p style='width: 2000px'>wide</p>"), "pixels wide"),
]


@pytest.mark.parametrize(("rule", "harm", "word"), BROKEN)
def test_each_rule_can_fail(rule, harm, word, page, trouble):
    visit(page, address("book/notation"))
    assert complaints(page, [rule]) == []
    page.evaluate(harm)
    assert word in " ".join(complaints(page, [rule]))
    trouble.clear()  # a picture that is not there is missed, too


def test_every_rule_is_seen_to_fail():
    assert {*RULES, code_colors} == {rule for rule, _, _ in BROKEN}


@pytest.mark.parametrize(
    ("harm", "word"),
    [
        ("location = 'https://example.org/x'", "asks the network for https://example"),
        ("new Image().src = 'missing.png'", "missing.png"),
        ("console.error('no such head')", "says on the console no such head"),
        ("setTimeout(() => { throw Error('no axis') })", "throws no axis"),
    ],
)
def test_trouble_is_seen(harm, word, page, trouble):
    page.goto(address(PAGES[0]))
    assert trouble == []
    page.evaluate(f"() => {{ {harm} }}")
    page.wait_for_timeout(200)
    assert any(word in line for line in trouble), trouble
    trouble.clear()


def test_stale_pages_are_refused(tmp_path):
    site, root = tmp_path / "site", tmp_path / "root"
    (root / "book").mkdir(parents=True)
    site.mkdir()
    source = root / "book" / "index.ipynb"
    source.write_text("# A book\n")
    assert "run make book first" in stale(site, root)
    (site / STAMP).touch()
    os.utime(source, (0, 0))
    (root / "book" / ".cache").touch()
    os.utime(root / "book" / ".cache", (2**31, 2**31))
    assert stale(site, root) is None
    os.utime(source, (2**31, 2**31))
    assert stale(site, root) == "book/index.ipynb is newer: run make book first"


def test_a_changed_style_or_script_builds_all_pages_again(
    tmp_path, monkeypatch
) -> None:
    """Sphinx copies static files only beside a page that it writes."""
    monkeypatch.setattr(sphinx_book, "STATIC", tmp_path)
    (tmp_path / "deep").mkdir()
    script = tmp_path / "deep" / "a.js"
    script.write_text("1;")
    before = sphinx_book.tools_digest()
    assert before == sphinx_book.tools_digest()
    script.write_text("2;")
    assert sphinx_book.tools_digest() != before


def test_a_dead_link_is_seen(tmp_path):
    (tmp_path / "one.html").write_text("<a href='two.html#here'>1</a><a href='#no'>2")
    (tmp_path / "two.html").write_text("<p id=here><a href='three.html'>3</a>")
    assert sorted(dead_links(tmp_path)) == ["one.html: #no", "two.html: three.html"]
