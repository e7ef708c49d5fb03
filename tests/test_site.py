"""The built pages in a real browser, opened from the folder, with the network cut.

Input is `_build/html`, which `make book` writes. Another folder is tested with
`BOOK_SITE=folder`. `BOOK_SKIP_BROWSER=1` leaves these tests out.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import lxml.html
import pytest
from built_site import SITE
from fontTools.ttLib import TTFont
from PIL import Image
from playwright.sync_api import Page

from book._ext import repository
from book._ext.page_rules import (
    RULES,
    accessibility,
    captions,
    charts,
    code,
    code_colors,
    complaints,
    diagrams,
    labels,
    mathematics,
    pictures,
    sideways,
    stretches,
    visit,
    wait_until,
    width,
)
from book._ext.toc import ROOT, chapters, pages

pytestmark = pytest.mark.usefixtures("browser_wanted", "current_pages")

PAGES = pages()
CHAPTERS = [f"book/{path.stem}" for path in chapters()]
ON_A_THIRD = pytest.mark.parametrize(  # the others with the slow tests
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * bool(number % 3))
        for number, name in enumerate(CHAPTERS)
    ],
)
DARK = pytest.mark.browser_context_args(
    viewport={"width": 390, "height": 844}, color_scheme="dark"
)


def address(name: str) -> str:
    return f"{SITE.resolve().as_uri()}/{name}.html"


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
    """Every page in two looks; a sixteenth of them now, the others as slow tests."""
    for number, name in enumerate([*PAGES, "search"]):
        for dark, look in enumerate(("wide and light", "phone and dark")):
            marks = [DARK] * dark + [pytest.mark.slow] * ((number + 8 * dark) % 16 > 0)
            yield pytest.param(name, bool(dark), id=f"{name}-{look}", marks=marks)


@pytest.mark.parametrize(("name", "dark"), list(looks()))
def test_page(name, dark, page):
    visit(page, address(name))
    assert is_dark(page) == dark
    assert complaints(page) == []


def test_the_switch_changes_the_colors_and_is_remembered(page):
    page.goto(address(PAGES[0]))
    seen = set()
    for _ in range(3):  # dark, light, as the system
        page.locator(".theme-switch").click()
        seen.add(is_dark(page))
        if is_dark(page):
            page.goto(address(PAGES[1]))
            assert is_dark(page)
    assert seen == {False, True}


def test_an_optional_section_is_folded_until_a_link_leads_into_it(page):
    page.goto(address("book/12_incremental_decoding"))
    fold = page.locator("#memory-optional > details.optional")
    assert fold.locator("p").first.is_hidden()
    page.evaluate("location.hash = 'memory-optional'")
    assert fold.locator("p").first.is_visible()


def test_a_fragment_that_is_no_escape_opens_the_page(page):
    page.goto(f"{address('book/translator')}#%")
    page.evaluate("location.hash = '#%zz'")
    page.wait_for_timeout(100)  # whatever it throws is trouble


def test_the_first_page_opens_by_itself(page):
    page.goto(address("index"))
    page.wait_for_url(f"**/{PAGES[0]}.html")


# --- chapters ------------------------------------------------------------------


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_leads_to_its_notebook_and_asserts_and_answers_stand_out(name):
    text = (SITE / f"{name}.html").read_text(encoding="utf-8")
    notebook = f"{name}.ipynb"
    assert f'href="../_sources/{notebook}"' in text
    assert (SITE / "_sources" / notebook).read_bytes() == (ROOT / notebook).read_bytes()
    assert '<span class="k">assert</span>' not in text
    assert '<span class="k assert">assert</span>' in text
    for kind in ("feedback-open", "feedback-right"):
        assert re.search(rf'class="output [^"]*{kind}', text)


# Where the extensions have been at work: every chapter has these ...
IN_A_CHAPTER = [
    "//article//h1/span[@class='number'][starts-with(., 'Chapter ')]",
    "//h1/following-sibling::p[@class='question'][not(em)]",
    "//h1/following-sibling::p[@class='meta'][contains(., 'minutes')]/a[@download]",
    "//a[string-length(@data-gloss) > 20][not(contains(@data-gloss, '\\'))]",
    "//details[@class='hide']/summary[starts-with(., 'Solution')]",
    "//details[@class='hide in-margin']/summary[. = 'Checks']",
    "//nav[@id='contents']/details[@open]//li[a[@href='#']]/ul//a[@href='#exercises']",
    "//nav[@class='sections']//a[@href='#exercises']",
]
# ... and none has these.
IN_NO_CHAPTER = [
    "//a[contains(@href, 'glossary.html#')][not(@data-gloss)]",
    "//table[contains(@class, 'docutils')][not(parent::div[@class='table-box'])]",
    "//p[contains(@class, 'collapsed')]",
    "//nav[@id='contents']/details[@open][2]",
]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_has_what_the_extensions_make_of_it(name):
    html = lxml.html.parse(SITE / f"{name}.html")
    assert [path for path in IN_A_CHAPTER if not html.xpath(path)] == []
    assert [path for path in IN_NO_CHAPTER if html.xpath(path)] == []


@ON_A_THIRD
def test_the_core_path_has_no_five_screens_of_text_alone(name, page):
    visit(page, address(name))
    assert page.locator("#what-you-can-do-now").count() == 1  # where the path ends
    assert complaints(page, [stretches]) == []


@ON_A_THIRD
@DARK
def test_solutions_are_folded_away_and_print_shows_all(name, page):
    visit(page, address(name))
    solutions = page.locator("details.hide", has_text="Solution")
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
    for part in (".bar", "nav", ".copy", ".from-the-sources > summary"):
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
    assert (
        page.locator("article details[open]:not(.optional, .explorer *)").count() == 0
    )


@ON_A_THIRD
@pytest.mark.browser_context_args(java_script_enabled=False)
def test_a_page_without_scripts_shows_its_pictures(name, page, trouble):
    page.goto(address(name))
    assert page.locator("article h1").is_visible()
    for heading in page.locator("details.optional > summary").all():
        heading.click()
    for picture in page.locator(".vega-picture img").all():
        assert picture.is_visible()
    page.locator("details.hide > summary").last.press("Enter")
    assert page.locator("details.hide").last.locator("pre").first.is_visible()
    trouble[:] = [line for line in trouble if ".js?" not in line]  # scripts, of course


def test_every_character_of_the_pages_is_in_the_fonts():
    fonts = (ROOT / "book/_static/fonts").glob("*.woff2")
    held = {chr(code) for font in fonts for code in TTFont(font).getBestCmap()}
    held |= set("\n\t✕你好\N{ZERO WIDTH SPACE}\N{WORD JOINER}")  # left to the system
    for name in PAGES:
        html = lxml.html.parse(SITE / f"{name}.html")
        texts = html.xpath("//body//text()[not(ancestor::*[@class='katex'])]")
        assert set("".join(texts)) <= held, name


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_at_most_350_kb_before_a_click(name, page):
    loaded = set()
    page.on("request", lambda request: loaded.add(request.url.split("?")[0]))
    visit(page, address(name))
    late = page.locator("img[loading=lazy]").evaluate_all(
        "(pictures) => pictures.map((picture) => picture.src)"
    )
    now = [url for url in loaded if "vega-" not in url and url not in late]
    files = [Path(unquote(urlsplit(url).path)) for url in now]
    sent = {file.name: len(gzip.compress(file.read_bytes(), 6)) for file in files}
    assert "serif.woff2" in sent
    assert sum(sent.values()) < 350_000, sent


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


@pytest.mark.parametrize(
    ("place", "opened"),
    [
        ("masks-s3-35", []),
        ("masks-s2-70-2", []),  # leads to the question, not to its folded answer
        ("masks-s2-70-3", ["hide in-margin"]),
        ("masks-s2-63", ["from-the-sources"]),
        ("from-the-sources", ["from-the-sources"]),
        ("further-reading", []),
    ],
)
def test_a_link_opens_what_it_leads_to(place, opened, page):
    is_open = """() => [...document.querySelectorAll("article details[open]")]
        .map((part) => part.className.replace(/ toggle.*/, ""))"""
    page.goto(address("book/04_masks"))
    assert page.evaluate(is_open) == []
    page.evaluate("(place) => { location.hash = place }", place)
    for _ in range(2):
        page.wait_for_timeout(50)
        assert page.evaluate(is_open) == opened
        top = page.locator(f"[id='{place}']").evaluate(
            "(part) => part.getBoundingClientRect().top"
        )
        assert -1 <= top < page.viewport_size["height"]
        page.reload()


def test_a_chart_follows_its_inputs_there_and_back_in_the_dark_too(page):
    page.goto(address("book/04_masks"))
    chart = page.locator(".vega-chart").first
    chart.scroll_into_view_if_needed()  # Vega comes when a chart is near
    page.locator(".vega-drawn svg").first.wait_for()

    def signs():
        chart.evaluate("chart => chart.drawn.view.runAsync().then(() => null)")
        return "".join(chart.locator("svg .mark-text text").all_text_contents())

    block, first = chart.get_by_role("combobox", name="block"), signs()
    block.select_option("encoder self-attention")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_timeout(500)  # drawn again, with the reader's choices
    assert "×" in signs() != first
    chart.get_by_label("padding mask").uncheck()
    assert "×" not in signs()
    chart.get_by_label("padding mask").check()
    block.select_option("decoder self-attention")
    assert signs() == first
    assert chart.locator(".vega-view").get_attribute("aria-label")
    page.set_viewport_size({"width": 1280, "height": 900})
    wide = "chart => chart.querySelector('.vega-view svg').clientWidth > 400"
    wait_until(page, wide, chart.element_handle())
    page.set_viewport_size({"width": 390, "height": 900})
    fits = "chart => chart.querySelector('.vega-view svg').clientWidth <= 350"
    wait_until(page, fits, chart.element_handle())
    chart.locator("summary").click()
    assert chart.locator("td").count() > 20
    page.emulate_media(media="print")
    assert chart.locator(".vega-picture img").is_visible()
    assert not chart.locator(".vega-view").is_visible()


# --- getting around ------------------------------------------------------------


def test_keyboard_skips_to_the_text_and_shows_where_it_is(page):
    page.goto(address(PAGES[1]))
    focused = "document.activeElement"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.textContent").strip() == "Skip to main content"
    wait_until(page, f"{focused}.getBoundingClientRect().top >= 0")
    for _ in range(12):
        page.keyboard.press("Tab")
        outline = page.evaluate(f"getComputedStyle({focused}).outline")
        name = page.evaluate(f"{focused}.outerHTML.slice(0, 100)")
        assert "solid" in outline, name
        assert float(re.search(r"([\d.]+)px", outline)[1]) >= 2, name
    page.goto(address(PAGES[1]))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    wait_until(page, "location.hash === '#main-content'")


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
FIRST_FORMULA = "document.querySelector('.katex-html')"
LABEL = (
    "<svg class=diagram><rect width=300 height=150 fill=white />"
    "<text y=20 fill={} style='font-size: {}px'>small</text></svg>"
)
SCROLLS = "overflow: auto; white-space: nowrap"
BROKEN = [  # rule, what is done to the page, what the rule says
    (accessibility, append("<button></button>"), "button-name"),
    (accessibility, append("<p style='color: #ccc'>pale</p>"), "color-contrast"),
    (
        code,  # after the theme's script, which makes what scrolls focusable, once
        "new Promise((done) => setTimeout(done, 400)).then(() => "
        + append(f"<pre style='{SCROLLS}; width: 40px'>a wide text</pre>")
        + ")",
        "scrollable-region-focusable",
    ),
    (code_colors, append("<pre style='color: #999'>pale</pre>"), "color-contrast"),
    (mathematics, f"{FIRST_FORMULA}.remove()", "not typeset"),
    (mathematics, append("<p>\\\\(x</p>"), "left in the text"),
    (charts, append(f"{CHART}</div>"), "c is not drawn"),
    (
        charts,
        append(f"{CHART}<svg width=9 height=9></svg><input type=range name=h></div>"),
        "does not answer to its input h",
    ),
    (pictures, append("<img src=x.png alt=' '>"), "picture without words"),
    (pictures, append("<svg class=plot></svg>"), "picture without words"),
    (
        captions,
        append(
            "<figure><img src=x.png alt=x><figcaption style='margin-top: 99px'>far"
            "</figcaption></figure>"
        ),
        "pixels under the picture: far",
    ),
    (diagrams, append(f"<p style='background: #eee'>{DIAGRAM}</p>"), "238) behind"),
    (diagrams, append(DIAGRAM.replace("9px", "2000px")), "wider than its column"),
    (labels, append(LABEL.format("#999", 14)), "contrast 2."),
    (labels, append(LABEL.format("#000", 10)), '10.0 pixels for "small"'),
    (sideways, append(f"<p style='{SCROLLS}'>{'wide ' * 99}</p>"), "scrolls"),
    (width, append("<p style='width: 2000px'>wide</p>"), "pixels wide"),
    (
        stretches,
        append("<p style='height: 4600px'>text</p><h2 id=what-you-can-do-now>end</h2>"),
        "pixels of text alone",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "harm", "word"), BROKEN)
def test_each_rule_can_fail(rule, harm, word, page, trouble):
    assert {*RULES, code_colors, stretches} == {rule for rule, _, _ in BROKEN}
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, address("book/notation"))
    assert complaints(page, [rule]) == []
    page.evaluate(harm)
    assert word in " ".join(complaints(page, [rule]))
    trouble.clear()  # a picture that is not there is missed, too


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


# --- links to pages ------------------------------------------------------------


def test_every_page_says_what_a_link_to_it_shows_and_no_link_is_without_address():
    titles, descriptions = set(), set()
    for name in [*PAGES, "index", "search", "404"]:
        html = lxml.html.parse(SITE / f"{name}.html")
        [title] = html.xpath("/html/head/title/text()")
        assert re.search(r"^(\S.* — )?The Transformer You Can Run$", title)
        titles.add(title)
        if name in PAGES:
            [description] = html.xpath("//meta[@name='description']/@content")
            assert 25 < len(description) <= 165, (name, description)
            assert description[-1] in ".?!", (name, description)
            descriptions.add(description)
        links = html.xpath("//a/@href | //link/@href | //meta/@content")
        assert not [link for link in links if "OWNER/REPO" in link], name
    assert len(descriptions) == len(PAGES)
    assert len(titles) == len(PAGES) + 2  # the first page is opened by two names


@pytest.mark.slow
def test_with_an_address_a_link_shows_a_picture_and_leads_to_colab(tmp_path):
    copy = tmp_path / "copy"
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    for name in tracked.stdout.decode().split("\0")[:-1]:
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    repository.stamp("https://github.com/Reader/own-book", copy)
    tool = Path(sys.executable).with_name("jupyter-book")
    build = [tool, "build", ".", "-n", "-W"]
    env = {**os.environ, "PYTHONPATH": str(copy)}
    subprocess.run(build, cwd=copy, env=env, check=True, capture_output=True)
    pages = copy / "_build" / "html"
    site = "https://reader.github.io/own-book/"
    for name in ("index", *PAGES):
        html = lxml.html.parse(pages / f"{name}.html")
        shown = {
            meta.get("property"): meta.get("content")
            for meta in html.xpath("//meta[@property]")
        }
        [canonical] = html.xpath("//link[@rel='canonical']/@href")
        assert shown["og:url"] == canonical
        assert (pages / canonical.removeprefix(site)).exists()
        preview = Image.open(pages / shown["og:image"].removeprefix(site))
        assert preview.size == (1200, 630)
        assert len(preview.getcolors(2**20)) > 50, "a blank picture"
    lost = lxml.html.parse(pages / "404.html")
    inside = [link for link in lost.xpath("//@href") if link.startswith("/")]
    assert len(inside) > len(PAGES)
    for link in inside:
        assert (pages / link.removeprefix("/own-book/")).exists(), link
    colab = repository.colab_link(
        "https://github.com/Reader/own-book", "04_masks.ipynb"
    )
    assert colab in (pages / "book/04_masks.html").read_text(encoding="utf-8")
