"""The policy of the pages: the book works under it, what is strange to it does not."""

from __future__ import annotations

from pathlib import Path

import lxml.html
import pytest
from built_site import SITE
from playwright.sync_api import Page, expect

from book._ext.page_rules import (
    charts,
    complaints,
    mathematics,
    pictures,
    visit,
    wait_until,
)

pytestmark = pytest.mark.usefixtures("browser_wanted", "current_pages")

CHAPTER = "book/02_scaled_dot_product_attention.html"
HTML = [path for path in sorted(SITE.rglob("*.html")) if path.parent.name != "_static"]
ONLINE = pytest.mark.browser_context_args(offline=False)  # else there is no localhost


@pytest.fixture(params=["file", pytest.param("http", marks=ONLINE)])
def site(request, page, trouble):
    """Where the pages are: in their folder, or on a server, which may be asked."""
    if request.param == "file":
        yield SITE.resolve().as_uri()
        return
    address = request.getfixturevalue("pages_server")
    yield address
    asks = f"asks the network for {address}/"
    trouble[:] = [line for line in trouble if not line.startswith(asks)]


# --- what is written ------------------------------------------------------------


def rules(page: Path) -> dict[str, list[str]]:
    """The policy of a page, which stands first, behind the character set."""
    first, second = lxml.html.parse(page).find("head")[:2]
    assert first.attrib == {"charset": "utf-8"}
    assert second.get("http-equiv") == "Content-Security-Policy"
    parts = map(str.split, second.get("content").split(";"))
    return {name: allowed for name, *allowed in parts}


@pytest.mark.parametrize("path", HTML, ids=lambda path: path.stem)
def test_every_page_allows_the_book_alone(path):
    assert rules(path) == {
        "default-src": ["'self'"],
        # Python is WebAssembly: its code may be compiled, but no text as JavaScript.
        "script-src": ["'self'", "'wasm-unsafe-eval'"],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:"],
        "worker-src": ["blob:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'", "file:"],
    }
    html = lxml.html.parse(path)
    assert html.xpath("//script[not(@src) and not(@type='application/json')]") == []
    assert html.xpath("//@*[starts-with(name(), 'on')]") == []
    data = html.xpath("//script[@type='application/json']/text()")
    assert not any("<" in text for text in data)  # no text in it can end its element
    vega = html.xpath("//script[contains(@src, 'vega_charts.js')]")
    assert bool(vega) == bool(html.xpath("//div[@class='vega-chart']"))


# --- what a browser makes of it ---------------------------------------------------


def test_strangers_are_refused(site, page: Page, trouble):
    page.goto(f"{site}/{CHAPTER}")
    assert trouble == [] or site.startswith("http")
    page.evaluate(
        """async () => {
          const seen = window.refused = [];
          document.addEventListener("securitypolicyviolation", (event) =>
            seen.push(event.effectiveDirective));
          const add = (tag, marks) =>
            document.body.append(Object.assign(document.createElement(tag), marks));
          add("script", { textContent: "window.ran = 'inline'" });
          add("script", { src: "https://example.org/x.js" });
          add("script", { src: "data:text/javascript,window.ran = 'data'" });
          add("img", { alt: "A map.", src: "https://example.org/x.png" });
          add("link", { rel: "stylesheet", href: "https://example.org/x.css" });
          add("iframe", { src: "https://example.org/" });
          add("base", { href: "https://example.org/" });
          document.body.insertAdjacentHTML("beforeend",
            "<button id=bad onclick='window.ran = 1'>Click</button>");
          document.getElementById("bad").click();
          setTimeout("window.ran = 'eval'");
          await fetch("https://example.org/x.json").catch(() => {});
        }"""
    )
    wait_until(page, "window.refused.length >= 10")
    assert sorted(page.evaluate("refused")) == [
        *("base-uri", "connect-src", "frame-src", "img-src", "script-src"),
        *("script-src-attr", "script-src-elem", "script-src-elem", "script-src-elem"),
        "style-src-elem",
    ]
    assert page.evaluate("window.ran") is None
    assert any("inline script violates" in line for line in trouble)
    assert any("Loading the image" in line for line in trouble)
    trouble.clear()


def test_mathematics_charts_and_pictures_are_drawn(site, page: Page):
    visit(page, f"{site}/{CHAPTER}")
    assert page.locator(".katex-html").count() > 10
    assert page.locator(".vega-drawn svg").count() > 0
    assert complaints(page, [mathematics, charts, pictures]) == []


def test_search_answers(site, page: Page):
    page.goto(f"{site}/{CHAPTER}")
    field = page.locator("form.search input")
    field.evaluate(
        "(field) => { field.value = 'scaled attention'; field.form.submit() }"
    )
    page.wait_for_url("**/search.html?q=scaled+attention")
    found = page.locator(".all-found [role=option]")
    expect(found.locator("mark").first).to_be_attached()
    assert CHAPTER in found.first.get_attribute("href")
    page.goto(f"{site}/search.html?q=zzyzxqq")
    expect(page.locator(".all-found")).to_contain_text("Nothing in the book has")
    assert found.count() == 0
