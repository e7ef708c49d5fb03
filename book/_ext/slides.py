"""Make slides of every chapter from its built page, as HTML and PDF.

    make slides                                     all chapters, into _build/slides
    python -m book._ext.slides book/04_masks        one chapter

The core path is shown in its own order: a slide for each figure, list, numbered
equation and visible cell that prints something, and two for each question. In the book,
the sentence before a cell says what to look for and those after it what was seen, so
these stand on its slide. slides.js makes text smaller that doesn't fit.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag
from jinja2 import Template
from sphinx.util.fileutil import copy_asset

from book._ext.notebook_parts import DONE
from book._ext.pdf import SITE, print_files
from book._ext.toc import ROOT, chapters

HERE = Path(__file__).parent
FOLDER = ROOT / "_build" / "slides"
STYLES = ("book.css", "figures.css", "fonts", "katex")  # what the pages have of it
OWN_STYLES = ("slides.css", "slides.js")

FIGURE = ".drawing svg, .vega-picture img"
OWN = {"own-class", "own-function"}  # cells that define what the chapter is about
LONG = 20  # lines; more stand in two columns
LEADS_ON = re.compile(r"[\w:,]$")
END_OF_SENTENCE = re.compile(r"(?:(?<=[.!?:])|(?<=[.!?]”))\s+(?=[A-Z“<(])")


class Slide(NamedTuple):
    """A slide; each text is HTML.

    Attributes:
        title: its heading.
        before: what to look for.
        shown: a figure, a formula, a list, or code and what it prints.
        after: what was seen.
        kind: a class of slides.css.
    """

    title: str
    before: str = ""
    shown: str = ""
    after: str = ""
    kind: str = ""


# --- what an element of the page gives to a slide -------------------------------------


def sentences(element: Tag | None) -> list[str]:
    """The sentences of a paragraph; none of anything else."""
    if element is None or element.name != "p":
        return []
    return END_OF_SENTENCE.split(element.decode_contents().strip())


def paragraph(some: list[str]) -> str:
    """Sentences as a paragraph, or nothing."""
    return f"<p>{' '.join(some)}</p>" if some else ""


def seen_in(element: Tag | None, most: int) -> str:
    """The first sentences after a cell, up to one that leads to what isn't shown."""
    first = sentences(element)[:most]
    while first and LEADS_ON.search(first[-1]):
        first.pop()
    return paragraph(first)


def picture(cell: Tag) -> tuple[str, str]:
    """The figure of a cell, and whether it stands beside its text or below."""
    figure = cell.select_one(FIGURE)
    if figure is None:
        return "", ""
    wide = float(figure["width"]) > 1.8 * float(figure["height"])
    html = str(figure).replace("../_images", "_images")
    return html, "figure-below" if wide else "figure-beside"


def text_of(cell: Tag, part: str) -> str:
    """The code of a cell (part "input") or what it prints ("output")."""
    block = cell.select_one(f".cell_{part} pre")
    if block is None:
        return ""
    return f'<pre class="highlight {part}">{block.decode_contents().rstrip()}</pre>'


def shown_by(element: Tag) -> tuple[str, str]:
    """What an element shows, and the kind of its slide; a paragraph shows nothing."""
    classes = element.get("class", [])
    if element.name in ("ul", "ol"):
        return str(element), "list"
    if "math" in classes and element.select_one(".eqno"):
        return str(element), "equation"
    if "cell" not in classes:
        return "", ""
    if element.select_one(FIGURE):
        return picture(element)
    if "tag_hide-cell" in classes or "tag_hide-input" in classes:
        return "", ""
    code, printed = text_of(element, "input"), text_of(element, "output")
    if not printed and OWN.isdisjoint(classes):
        return "", ""
    long = (code + printed).count("\n") > LONG
    return code + printed, "code in-columns" if long else "code"


# --- slides ---------------------------------------------------------------------------


def asks(element: Tag) -> bool:
    """Whether this is a question, which the next cell answers."""
    return element.name == "blockquote" and "Before you run" in element.get_text()


def question(asked: Tag, cell: Tag, why: Tag) -> Iterator[Slide]:
    """A question with its code; then what the code does, and why."""
    asked.strong.decompose()  # the words before the question
    code = text_of(cell, "input")
    yield Slide("Before you run it", str(asked.p), code, kind="quiz")
    shown, kind = picture(cell)
    if not shown:
        shown, kind = text_of(cell, "output"), "answer"
    yield Slide("What happens", "", shown, seen_in(why.p, most=3), kind)


def of_section(section: Tag) -> list[Slide]:
    """The slides of a section; its first one has the section's first sentences."""
    title = section.h2.decode_contents()
    first = section.find("p", recursive=False)
    opening = paragraph(sentences(first)[:3])
    elements = section.find_all(recursive=False)
    slides: list[Slide] = []
    used = first  # a paragraph is on one slide only
    for before, element, after in zip(
        elements, elements[1:], [*elements[2:], None], strict=False
    ):
        if asks(before):
            slides += question(before, element, after)
            continue
        shown, kind = shown_by(element)
        if shown:
            lead = [] if before is used else sentences(before)[-1:]
            seen = "" if after is used else seen_in(after, most=2)
            slides.append(Slide(title, paragraph(lead), shown, seen, kind))
            used = after
    if slides and slides[0].title == title:
        slides[0] = slides[0]._replace(before=opening)
    else:
        slides.insert(0, Slide(title, opening))
    return slides


def of_chapter(article: Tag) -> Iterator[Slide]:
    """The slides of a chapter: its title, the core path, bugs and exercises."""
    extras = ".headerlink, .unclear, .check-lead, .yours, summary, script"
    for extra in article.select(extras):
        extra.decompose()
    for wrapper in article.select("a, section section section:not(#exercises section)"):
        wrapper.unwrap()  # a link to another page; a section in a section

    asked = str(article.select_one("p.question"))
    minutes = article.select_one("p.meta").get_text().split(",")[0]
    title = article.h1.decode_contents()
    yield Slide(title, f"{asked}<p>{minutes}</p>", kind="title")

    sections = {
        part.h2.get_text(): part for part in article.section.select("& > section")
    }
    for title, section in sections.items():
        yield from of_section(section)
        if title == DONE:  # the end of the core path
            break

    symptoms = sections["Common bugs"].select("p > strong:first-child")
    points = "".join(f"<li>{bug.decode_contents()}</li>" for bug in symptoms)
    yield Slide("Common bugs", shown=f"<ul>{points}</ul>", kind="list")

    exercises = sections["Exercises"].find_all("section")
    rows = (f"<tr><td>{task.h3.string}<td>{task.p.string}" for task in exercises)
    yield Slide("Exercises", shown=f"<table>{''.join(rows)}</table>")


def write_slides(name: str) -> Path:
    """Write the slides of a chapter, such as book/04_masks, as one page."""
    page = BeautifulSoup((SITE / f"{name}.html").read_bytes(), "lxml")
    frame = Template((HERE / "slides.html").read_text(encoding="utf-8"))
    path = FOLDER / f"{Path(name).name}.html"
    slides = list(of_chapter(page.article))
    path.write_text(frame.render(title=page.title.string, slides=slides), "utf-8")
    return path


def copy_files() -> None:
    """Put styles, fonts and pictures beside the slides."""
    sources = [SITE / "_static" / name for name in STYLES]
    sources += [HERE / name for name in OWN_STYLES]
    sources.append(SITE / "_images")
    for source in sources:
        copy_asset(source, FOLDER / source.name if source.is_dir() else FOLDER)


if __name__ == "__main__":
    names = sys.argv[1:] or [f"book/{path.stem}" for path in chapters()]
    copy_files()
    files = {path: path.with_suffix(".pdf") for path in map(write_slides, names)}
    print_files(files, prefer_css_page_size=True, print_background=True)
