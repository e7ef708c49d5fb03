"""Write the whole book as one PDF, from the built pages, through Chromium.

    make pdf     builds the pages, then writes _build/the-transformer-you-can-run.pdf

All pages follow each other in the order of the table of contents; links between them
lead to the page on paper, folded parts are open, and charts are their pictures. The
outline comes from the headings.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import lxml.html
import yaml
from lxml.html import HtmlElement, builder
from playwright.sync_api import sync_playwright

from book_tools.browser import find_browser
from book_tools.toc import ROOT, pages

SITE = ROOT / "_build" / "html"
REFERRING = ("for", "headers", "aria-labelledby", "aria-describedby", "aria-controls")
LOADED = ("src", "href", "xlink:href", "data")
OF_ONE_PAGE = "/pencil.css"  # prints its page in small type, in two columns
STYLE = """
.chapter { break-before: page; }
.bd-article { padding: 0; }
.bd-article h1 { display: block !important; }
.bd-article :is(h1, h2, h3, h4) { break-after: avoid; }
.headerlink, .copybtn, .toctree-wrapper, div.cell details.hide > summary {
  display: none !important;
}
/* What may not be divided moves to the next page as a whole: so only small things. */
.bd-main, .bd-content, .bd-article-container, .cell_input, .cell_input div {
  display: block !important;
}
:is(.cell, .cell_input, .cell_output, details, .highlight), .cell :is(div, pre) {
  overflow: visible !important;
  break-inside: auto !important;
}
/* The first of several drawings to choose from */
.panel.alignment-0 { display: block !important; }
"""
FOOTER = (
    '<div style="width: 100%; font-size: 8px; text-align: center">'
    '<span class="pageNumber"></span></div>'
)


def whole_book(site: Path, names: Sequence[str], title: str) -> HtmlElement:
    """Put pages into one document, for which `site` is the place of all addresses.

    Args:
        site: folder of the built pages.
        names: of pages, such as "book/04_masks", in their order.
        title: of the document.
    """
    parts, head = [], {}
    for name in names:
        page = lxml.html.parse(str(site / f"{name}.html")).getroot()
        for each in page.head.iter("link", "script"):
            if (kept := _of_the_head(each, name)) is not None:
                head.setdefault(lxml.html.tostring(kept), kept)
        parts.append(chapter(page, name, set(names)))
    body = builder.BODY(
        builder.MAIN(
            builder.DIV({"class": "bd-content"}, builder.DIV(
                {"class": "bd-article-container"}, builder.ARTICLE(
                    {"class": "bd-article"}, *parts))),
            {"class": "bd-main"}),
    )  # fmt: skip
    return builder.HTML(
        builder.HEAD(
            builder.META(charset="utf-8"),
            builder.TITLE(title),
            *head.values(),
            builder.STYLE(STYLE),
        ),
        body,
        {"data-theme": "light", "data-mode": "light", "lang": "en"},
    )


def _of_the_head(element: HtmlElement, name: str) -> HtmlElement | None:
    """Return a style sheet or a script of the formulas; its address is from `site`."""
    place = _from_site(element.get("href") or element.get("src") or "", name)
    if element.tag == "link" and element.get("rel") == "stylesheet":
        own = place.split("?")[0].endswith(OF_ONE_PAGE)
        return None if own else builder.LINK(rel="stylesheet", href=place)
    if element.tag == "script" and "/mathjax/" in place:
        return builder.SCRIPT(src=place)
    if element.tag == "script" and (element.text or "").startswith("window.MathJax"):
        return builder.SCRIPT(element.text)
    return None


def chapter(page: HtmlElement, name: str, names: set[str]) -> HtmlElement:
    """Return the content of a page: every id and every link to one tells its page."""
    [article] = page.xpath("//article[contains(@class, 'bd-article')]")
    section = builder.SECTION({"class": "chapter", "id": anchor(name)})
    section.extend(article)
    for element in section.iter():
        if not isinstance(element.tag, str):
            continue
        if element.tag == "details":
            element.set("open", "")
        if element is not section and element.get("id"):
            element.set("id", anchor(name, element.get("id")))
        for attribute in REFERRING:
            if value := element.get(attribute):
                ids = (anchor(name, each) for each in value.split())
                element.set(attribute, " ".join(ids))
        for attribute, value in element.items():
            if "url(#" in value:  # within a drawing
                element.set(attribute, value.replace("url(#", f"url(#{anchor(name)}--"))
        for attribute in LOADED:
            if value := element.get(attribute):
                _lead(element, attribute, value, name, names)
    for script in list(section.iter("script")):
        script.drop_tree()
    return section


def _lead(
    element: HtmlElement, attribute: str, value: str, name: str, names: set[str]
) -> None:
    """Let an address lead to the place on paper, or to the file beside the pages."""
    if urlsplit(value).scheme:
        return
    path, fragment = urldefrag(_from_site(value, name))
    other = path.removesuffix(".html")
    if element.tag != "a":
        element.set(
            attribute, f"#{anchor(name, fragment)}" if value[0] == "#" else path
        )
    elif path.endswith(".html") and other in names or value[0] == "#":
        element.set("href", f"#{anchor(name if value[0] == '#' else other, fragment)}")
    else:
        del element.attrib[attribute]  # a file beside the pages is not on paper


def anchor(name: str, fragment: str = "") -> str:
    """Return the id, in the whole book, of a page or of a place in it."""
    page = re.sub(r"\W+", "-", name)
    return f"{page}--{fragment}" if fragment else page


def _from_site(address: str, name: str) -> str:
    return urljoin(f"/{name}.html", address).lstrip("/")


def dead_ends(book: HtmlElement) -> Iterator[str]:
    """Name links that lead to no place of the document."""
    ids = {element.get("id") for element in book.iter() if isinstance(element.tag, str)}
    for link in book.iter("a"):
        target = link.get("href", "")
        if target.startswith("#") and target[1:] not in ids:
            yield target


def print_book(book: HtmlElement, site: Path, path: Path) -> None:
    """Let Chromium write a document as a PDF.

    Raises:
        RuntimeError: there is no browser, or a file that the document names is missing.
    """
    missing: list[str] = []
    with (
        tempfile.NamedTemporaryFile("wb", suffix=".html", dir=site) as file,
        sync_playwright() as playwright,
    ):
        file.write(lxml.html.tostring(book, doctype="<!doctype html>"))
        file.flush()
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(color_scheme="light", reduced_motion="reduce")
        page.on("requestfailed", lambda request: missing.append(request.url))
        page.set_default_timeout(600_000)
        page.goto(Path(file.name).as_uri())
        page.evaluate("() => window.MathJax && MathJax.startup.promise")
        page.pdf(
            path=path,
            format="A4",
            outline=True,
            tagged=True,
            print_background=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOTER,
            margin={"top": "17mm", "bottom": "17mm", "left": "16mm", "right": "16mm"},
        )
        browser.close()
    if missing:
        raise RuntimeError(f"{len(missing)} files are missing, the first: {missing[0]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m book_tools.pdf",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    name = "the-transformer-you-can-run.pdf"
    parser.add_argument("path", nargs="?", type=Path, default=ROOT / "_build" / name)
    path = parser.parse_args(arguments).path
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    book = whole_book(SITE, pages(), settings["title"])
    if ends := sorted(set(dead_ends(book))):
        print(f"error: links lead nowhere: {', '.join(ends[:5])}", file=sys.stderr)
        return 1
    print_book(book, SITE, path)
    print(f"wrote {path}, {path.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
