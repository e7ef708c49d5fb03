"""Sphinx extension: figures have a number, a caption and an anchor.

A notebook has name and caption in the cell's metadata, beside the alternative text, and
MyST-NB makes a figure of them. No number is written by hand:

- Figures count within their chapter; other pages have a letter, in the book's order.
- A link to a figure, "[the map of the masks](#figure-mask-map)", says its number, too.
- German in a figure is explained below its caption, word by word (`german` in the
  metadata, and `transformer_book/gloss.toml`).
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import ascii_uppercase

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from book._ext.toc import chapter_of, pages
from transformer_book.gloss import gloss, meaning

PREFIX = "figure-"  # begins the name of each figure


def figure_settings(cell: nodes.Element) -> dict[str, str]:
    """What the metadata of a cell says about its figure."""
    return cell["cell_metadata"].get("mystnb", {}).get("figure", {})


# --- numbers --------------------------------------------------------------------------


def names_on(env: BuildEnvironment, page: str) -> list[str]:
    """The anchors of a page's figures, in their order."""
    return [*env.toc_fignumbers.get(page, {}).get("figure", {})]


def figure_number(env: BuildEnvironment, page: str, name: str) -> str:
    """The number of a figure, such as "Figure 12.3", or "Figure B.1" in no chapter."""
    part = chapter_of(Path(page))
    if part is None:
        others = [
            p for p in pages() if chapter_of(Path(p)) is None and names_on(env, p)
        ]
        part = ascii_uppercase[others.index(page)]
    return f"Figure {part}.{names_on(env, page).index(name) + 1}"


def number_links(app: Sphinx, document: nodes.document, page: str) -> None:
    """Let each link to a figure say its number."""
    homes = {name: home for home in pages() for name in names_on(app.env, home)}
    for link in document.findall(nodes.reference):
        name = link.get("refid") or link.get("refuri", "").partition("#")[2]
        if link.get("internal", "refid" in link) and name in homes:
            link += nodes.Text(f" ({figure_number(app.env, homes[name], name)})")


# --- what stands below a caption ------------------------------------------------------


def gloss_html(sentence: str) -> str:
    """A German sentence: each word above what it means, and what the whole means."""
    words = "".join(
        f'<span><i lang="de">{escape(word)}</i> <span>{escape(english)}</span></span> '
        for word, english in gloss(sentence)
    )
    whole = f"“{escape(meaning(sentence))}”" if meaning(sentence) else ""
    return f'<p class="gloss">{words}{whole}</p>'


def complete_figures(app: Sphinx, document: nodes.document) -> None:
    """Put the gloss below a caption, and let pages link to a figure of another one."""
    anchors = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for cell in document.findall(nodes.container):
        if "cell_metadata" not in cell or not (settings := figure_settings(cell)):
            continue
        for figure in cell.findall(nodes.figure):
            [name] = figure["ids"]
            anchors[name] = (figure.line, name, name)
            for sentence in settings.get("german", "").splitlines():
                html = gloss_html(sentence)
                figure += nodes.legend("", nodes.raw("", html, format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("doctree-read", complete_figures)
    app.connect("doctree-resolved", number_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
