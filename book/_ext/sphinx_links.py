"""Sphinx extension: what a link to a page shows, and where links may lead.

- Every page has a description: the question of a chapter, or the first sentences.
- Where the book has an address, pages name theirs, and a link to one is shown with a
  picture: its first figure under its title, 1200 by 630 pixels.
- While the book has none, no link leads to the repository or to Colab.
- `index.html` leads to the first page, and `404.html` to all.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from urllib.parse import urlsplit

import nbformat
from docutils import nodes
from PIL import Image, ImageDraw, ImageFont
from sphinx.application import Sphinx

from book._ext import repository
from book._ext.toc import ROOT, chapter_of
from transformer_lib.plots.palette import LIGHT

SIZE = WIDTH, HEIGHT = 1200, 630
MARGIN, GAP = 60, 30
FONTS = ROOT / "book" / "_static" / "fonts"
FIRST = "book/index"
LONGEST = 160  # characters of a description that is shown whole
PREVIEWS = "_static/previews"


# --- what is said of a page ----------------------------------------------------------


def description(document: nodes.document, page: str) -> str:
    """The question of a chapter, or the first sentences of another page."""
    if chapter_of(Path(page)) is not None:
        return next(document.findall(nodes.section))[1].astext()
    texts = (plain(part) for part in document.findall(nodes.paragraph))
    text = next(text for text in texts if re.search(r"[.:]( |$)", text))
    first, *others = re.split(r"(?<=[.!?])\s", " ".join(text.split()))
    for sentence in others:
        if len(first) + len(sentence) >= LONGEST:
            break
        first += f" {sentence}"
    return first


def plain(paragraph: nodes.paragraph) -> str:
    """The words of a paragraph, without tags that stand in it."""
    words = paragraph.findall(nodes.Text)
    return "".join(word for word in words if not isinstance(word.parent, nodes.raw))


def complete_head(
    app: Sphinx, page: str, _: str, context: dict, document: nodes.document | None
) -> None:
    """Give the template what a link to the page shows."""
    url = repository.address()
    site = None if url == repository.UNKNOWN else repository.site(url)
    book, title = context["docstitle"], context.get("title") or page.capitalize()
    context["site"] = site
    context["home"] = urlsplit(site or "/").path  # of a page at an unknown depth
    context["has_address"] = site is not None
    context["page_title"] = book if page == FIRST else f"{title} — {book}"
    if document is not None:
        context["description"] = description(document, page)
    elif page == "index":  # which leads to the first page
        first = app.env.get_doctree(FIRST)
        context |= {"page_title": book, "description": description(first, FIRST)}
    shown = FIRST if page == "index" else page
    context["preview"] = f"{PREVIEWS}/{Path(shown).name}.png"


def other_pages(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    """Where the folder of the pages is opened, and where there is no page."""
    yield "index", {}, "index.html"
    titles = [(page, title.astext()) for page, title in app.env.titles.items()]
    lost = {"title": "No such page", "all_pages": titles}
    yield "404", lost, "404.html"


# --- its picture ---------------------------------------------------------------------


@cache
def font(name: str, size: int) -> ImageFont.FreeTypeFont:
    """One of the book's fonts."""
    return ImageFont.truetype(FONTS / f"{name}.woff2", size)


def first_figure(source: Path) -> Image.Image:
    """The first picture of a notebook but the map; of other pages, the first page's."""
    if source.suffix != ".ipynb":
        source = ROOT / f"{FIRST}.ipynb"
    for cell in nbformat.read(source, as_version=4).cells:
        if "draw_map" in cell.source:  # the same in every chapter
            continue
        for output in cell.get("outputs", ()):
            if png := output.get("data", {}).get("image/png"):
                return Image.open(BytesIO(b64decode(png))).convert("RGBA")
    return first_figure(ROOT / f"{FIRST}.md")


def draw_preview(title: str, book: str, figure: Image.Image) -> Image.Image:
    """Draw what a link to a page is shown with.

    Args:
        title: of the page.
        book: its name, which stands above.
        figure: what stands below, as large as there is room.
    """
    picture = Image.new("RGB", SIZE, LIGHT.page)
    pen = ImageDraw.Draw(picture)
    pen.text((MARGIN, 40), book, LIGHT.soft, font("sans", 30))
    lines = wrap(title, 40)[:2]
    pen.multiline_text(
        (MARGIN, 85), "\n".join(lines), LIGHT.ink, font("serif", 58), spacing=8
    )
    top = 95 + 70 * len(lines) + GAP
    room = WIDTH - 2 * MARGIN, HEIGHT - top - GAP
    scale = min(room[0] / figure.width, room[1] / figure.height)
    figure = figure.resize((int(figure.width * scale), int(figure.height * scale)))
    place = (WIDTH - figure.width) // 2, top + (room[1] - figure.height) // 2
    picture.paste(figure, place, figure)
    return picture


def write_previews(app: Sphinx, error: Exception | None) -> None:
    """Draw the picture of every page, if links to pages are known."""
    if error or app.builder.format != "html":
        return
    if repository.address() == repository.UNKNOWN:
        return
    folder = Path(app.outdir) / PREVIEWS
    folder.mkdir(exist_ok=True)
    for page, title in app.env.titles.items():
        figure = first_figure(Path(app.env.doc2path(page)))
        drawn = draw_preview(title.astext(), app.config.project, figure)
        drawn.save(folder / f"{Path(page).name}.png", optimize=True)


# --- links that would lead nowhere ---------------------------------------------------


def without_address(app: Sphinx, document: nodes.document, page: str) -> None:
    """While the book has no address, keep the words of links that need it."""
    if repository.address() != repository.UNKNOWN:
        return
    unknown = repository.UNKNOWN.removeprefix("https://github.com/")
    for link in list(document.findall(nodes.reference)):
        if unknown not in link.get("refuri", ""):
            continue
        paragraph, text = link.parent, link.astext()
        if paragraph.astext() == text:  # nothing but the link
            paragraph.parent.remove(paragraph)
        elif paragraph[-1] is link and paragraph[-2].astext().endswith(" · "):
            paragraph[-2:] = [nodes.Text(paragraph[-2].astext().removesuffix(" · "))]
        else:
            link.replace_self(nodes.Text(text))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("doctree-resolved", without_address, priority=400)
    app.connect("html-page-context", complete_head, priority=600)
    app.connect("html-collect-pages", other_pages)
    app.connect("build-finished", write_previews, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
