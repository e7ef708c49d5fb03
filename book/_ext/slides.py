"""Make slides of every chapter, from the text, figures, code and numbers of its page.

    make slides                                    all chapters, into _build/slides
    python -m book._ext.slides book/04_masks      one chapter

Rules decide what is shown, so the slides follow a chapter when it changes. A section of
the core path opens with its first sentences beside its first figure, equation or cell.
Its other figures follow, a cell with its numbers, and each question with its answer. Of
more than twenty slides, those that matter least are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag
from jinja2 import Template
from sphinx.util.fileutil import copy_asset

from book._ext.notebook_parts import CLASS, DONE
from book._ext.pdf import SITE, print_files
from book._ext.toc import ROOT, chapters

FOLDER, HERE = ROOT / "_build" / "slides", Path(__file__).parent
STATIC = ["book.css", "figures.css", "fonts", "katex", "../_images"]
MOST = 20  # slides of a chapter
SENTENCE = re.compile(r"(?<=[.!?:”])\s+(?=[A-Z“<(])")
FIGURE = ".drawing svg, .vega-picture img"
OPENING = {"wide": 0, "beside": 0, "equation": 1, "worked": 2}  # what opens a section


class Slide(NamedTuple):
    """A slide.

    Attributes:
        rank: how much it matters: 1 stays, 4 goes first.
        title: its heading.
        text: what stands above or beside what is shown.
        show: a figure, a formula, or code and what it prints.
        after: what was seen.
        looks: the class of its element.
    """

    rank: int
    title: str
    text: str
    show: str = ""
    after: str = ""
    looks: str = ""


# --- what is on a slide ---------------------------------------------------------------


def shorten(text: Tag | None, most: int) -> str:
    """The first sentences of a paragraph, with at most that many words, or one."""
    first, *rest = SENTENCE.split(text.decode_contents().strip()) if text else [""]
    for sentence in rest:
        if len(re.sub("<[^>]*>", "", f"{first} {sentence}").split()) > most:
            break
        first += f" {sentence}"
    return f"<p>{re.sub(':$', '.', first)}</p>" * bool(first)


def lead_of(text: Tag | None) -> str:
    """The last sentence of a paragraph, if it leads to what follows."""
    last = SENTENCE.split(text.decode_contents().strip())[-1] if text else ""
    return f"<p>{last}</p>" * last.endswith((":", "?"))


def points(items: Iterable[Tag]) -> str:
    """A list of points, none too long."""
    return f"<ul>{''.join(f'<li>{shorten(item, 30)}</li>' for item in items)}</ul>"


def block(cell: Tag, part: str, most: int) -> tuple[str, int]:
    """Code or what it prints, and its lines; of a long class, its forward pass."""
    found = cell.select_one(f".cell_{part} pre")
    lines = found.decode_contents().rstrip().split("\n") if found else []
    starts = [n for n, line in enumerate(lines) if 'nf">forward<' in line]
    if len(lines) > most and starts:
        name = next(line for line in lines if 'nc">' in line)
        lines = [name, "    ...", "", *lines[starts[0] :]]
    if len(lines) > most:
        lines[most - 1 :] = ["…"]
    text = "\n".join(lines)
    shown = f'<div class="highlight"><pre class="{part}">{text}</pre></div>'
    n_lines = sum(1 + len(re.sub("<[^>]*>", "", line)) // 96 for line in lines)
    return shown * bool(found), n_lines


def figure_of(cell: Tag) -> tuple[str, str]:
    """A cell's figure, and how it stands: below the text if it is wide."""
    if not (drawn := cell.select_one(FIGURE)):
        return "", ""
    box = drawn.get("viewbox") or f"{drawn['width']} {drawn['height']}"
    width, height = map(float, box.split()[-2:])
    html = str(drawn).replace("../_images", "_images")
    return html, "wide" if width > 1.8 * height else "beside"


# --- slides ---------------------------------------------------------------------------


def of_section(part: Tag) -> Iterator[Slide]:
    """A section's slides. The first one opens it, with what it shows best."""
    title, found, worked = part.h2.decode_contents(), [], 0
    elements = [part.h2, *part.h2.find_next_siblings(), part.h2]
    texts = [None if each.name != "p" or each is part.p else each for each in elements]
    for here, cell in enumerate(elements[1:-1], start=1):
        before, after = lead_of(texts[here - 1]), shorten(texts[here + 1], 35)
        drawn, looks = figure_of(cell)
        printed, n_printed = block(cell, "output", 10)
        asked, kinds = elements[here - 1], cell.get("class", [])
        if asked.name == "blockquote" and "Before you run" in asked.get_text():
            asked.strong.decompose()
            code, _ = block(cell, "input", 8)
            why = shorten(elements[here + 1].p, 60)
            found.append(Slide(2, "Before you run it", str(asked.p), code, "", "ask"))
            told, looks = drawn or printed, f"tell {looks}"
            found.append(Slide(2, "What happens", "", told, why, looks))
        elif drawn:
            found.append(Slide(3, title, before, drawn, after, looks))
        elif "math" in kinds and cell.select_one(".eqno"):
            found.append(Slide(3, title, before, str(cell), after, "equation"))
        elif "tag_hide" not in str(kinds) and (printed or title in CLASS and cell.pre):
            code, n_code = block(cell, "input", 12 - n_printed)
            if n_printed > 3 and "…" in code:  # the numbers say more
                code, n_code = "", 0
            after = after * (n_code + n_printed < 11)
            rank, worked = (4 if worked else 2), True
            found.append(Slide(rank, title, before, code + printed, after, "worked"))
    likely = [each for each in found if each.looks in OPENING]
    best = min(likely, key=lambda each: OPENING[each.looks], default=None)
    opening = best or Slide(1, title, "", points(part.select(":scope > ul > li")))
    yield opening._replace(rank=1, text=shorten(part.p, 45))
    yield from (each for each in found if each is not best)


def of_chapter(article: Tag) -> Iterator[Slide]:
    """A chapter's slides: title, the core path with its promises, exercises."""
    for each in article.select(".headerlink, summary, script"):
        each.decompose()
    for each in article.select("a, section section section:not(#exercises section)"):
        each.unwrap()
    parts = {each.h2.get_text(): each for each in article.section.select("& > section")}
    minutes = article.select_one("p.meta").get_text().split(",")[0]
    question = f"{article.select_one('p.question')}<p>{minutes}</p>"
    yield Slide(1, article.h1.decode_contents(), question, looks="title")
    for name in [*parts][: [*parts].index(DONE)]:
        yield from of_section(parts[name])
        for each in parts[name].find_all("p", string=re.compile("^By the end")):
            yield Slide(1, each.get_text(), points(each.find_next("ul")("li")))
    done = parts[DONE]("li")
    yield Slide(1, DONE, points(done) if done else shorten(parts[DONE].p, 60))
    symptoms = parts["Common bugs"].select("p > strong:first-child")
    yield Slide(3, "Common bugs", points(symptoms))
    tasks = parts["Exercises"]("section")
    rows = (f"<tr><td>{each.h3.string}<td>{each.p.string}" for each in tasks)
    yield Slide(1, "Exercises", f"<table>{''.join(rows)}</table>")


def make(name: str) -> Path:
    """Write the slides of a chapter as one page."""
    page = BeautifulSoup((SITE / f"{name}.html").read_bytes(), "lxml")
    slides = [*of_chapter(page.article)]
    while len(slides) > MOST:
        least = max(each.rank for each in slides)
        last = max(n for n, each in enumerate(slides) if each.rank == least)
        del slides[last - slides[last].looks.startswith("tell") : last + 1]
    frame = Template((HERE / "slides.html").read_text(encoding="utf-8"))
    html = frame.render(title=page.title.string, slides=slides)
    path = FOLDER / f"{Path(name).name}.html"
    path.write_text(html, encoding="utf-8")
    return path


if __name__ == "__main__":
    names = sys.argv[1:] or [f"book/{path.stem}" for path in chapters()]
    for source in [*(SITE / "_static" / n for n in STATIC), *HERE.glob("slides.*s")]:
        copy_asset(source, FOLDER / source.name if source.is_dir() else FOLDER)
    files = {path: path.with_suffix(".pdf") for path in map(make, names)}
    print_files(files, prefer_css_page_size=True, print_background=True)
