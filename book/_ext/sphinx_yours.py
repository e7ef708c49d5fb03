"""Sphinx extension: the places in chapters where a reader writes a part of the machine.

A cell tagged `yours-NAME` is where the part NAME of `transformer_book.yours.parts` is
built; one cell of the book has this tag. Before it stands a desk: what to write, the
signature as text, and, for the page's script, all it knows of the part. The cell's
source is folded below it. The desk works with the page's Python; a build without its
files leaves the cell as it is, as print does.

Behind a cell tagged `yours-boxes` stands the list of all parts, each with a link to its
desk.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from book._ext import repository
from book._ext.sphinx_book import load_files
from book._ext.sphinx_python import available
from book._ext.toc import chapter_of, notebook_pages
from transformer_book.yours.parts import PARTS, PREAMBLE, Part

TAG = "tag_yours-"  # of a cell's node, before the name of the part
BOXES = "boxes"  # in place of a part: the list of all
FOLD = "Read it instead: the book’s own"
WITH_OUTPUT = {"attention"}  # whose output is folded, too: no text speaks of it
# HTML: what a function here needs and needs not, where the chapter has the book's
NEEDS = {
    "attention": "Yours takes a mask: one line before the softmax. It needs no "
    "dropout, and no second <code>masked_fill</code> for queries with no key left: "
    "they come in chapter 4.",
}


def in_words(names: list[str]) -> str:
    """Names as a sentence lists them: A, B and C."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


# --- the desk -------------------------------------------------------------------------


def part_data(part: Part) -> dict[str, Any]:
    """What the page's script knows of a part besides the text in its field."""
    url = repository.address()
    return {
        "name": part.name,
        "title": part.title,
        "names": in_words([*part.defines]),
        "owned": part.owned,
        "solution": part.solution.strip(),
        "tries": [
            {
                "label": each.label,
                "source": each.source,
                "why": each.why,
                "changed": each.changed,
            }
            for each in part.tries
        ],
        "sentence": part.opening,
        "edition": repository.EDITION,
        "preamble": PREAMBLE,
        "setup": "" if url == repository.UNKNOWN else repository.bootstrap(url),
    }


def in_lines(source: str) -> str:
    """Python in colors; each line is an element that knows how far in it begins."""
    colored = highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
    return "".join(
        f'<span style="--begin:{len(line) - len(line.lstrip())}ch">{shown}\n</span>'
        for line, shown in zip(source.splitlines(), colored.splitlines(), strict=True)
    )


def desk_html(part: Part) -> str:
    """The desk: the signature as text, the buttons, and the data for the script."""
    names = in_words([f"<code>{escape(name)}</code>" for name in part.defines])
    data = json.dumps(part_data(part), ensure_ascii=False).replace("<", "\\u003c")
    tries = "".join(
        f'<button type="button">{escape(each.label)}</button>\n' for each in part.tries
    )
    return (
        f'<div class="yours" id="yours-{part.name}" role="group" '
        f'aria-labelledby="yours-{part.name}-title">\n'
        f'<p class="yours-title" id="yours-{part.name}-title"><b>Yours:</b> '
        f"write {names}</p>\n"
        '<p class="yours-why">Write it here, and the machine will translate with it. '
        f"{NEEDS.get(part.name, '')} "
        '<span class="without-scripts">That needs JavaScript, which is off: read the '
        "book’s own below.</span></p>\n"
        '<div class="yours-field"><div class="highlight"><pre>'
        f"{in_lines(part.stub.strip())}</pre></div></div>\n"
        '<div class="yours-row with-script">'
        '<button type="button" class="yours-write yours-go">Write it here</button>'
        '</div>\n<div class="yours-row yours-tries with-script" role="group" '
        'aria-label="Try a mistake"><span>Or try a mistake:</span>\n'
        f"{tries}</div>\n"
        f'<script type="application/json">{data}</script>\n</div>\n'
    )


def raw(html: str) -> nodes.raw:
    """HTML as it is."""
    return nodes.raw("", html, format="html")


def put_desk(cell: nodes.container, part: Part) -> None:
    """Put a desk before a cell, and fold its source."""
    cell.parent.insert(cell.parent.index(cell), raw(desk_html(part)))
    [source] = [
        node
        for node in cell.findall(nodes.container)
        if node.get("nb_element") == "cell_code_source"
    ]
    fold = HideCodeCellNode(prompt_show=FOLD, prompt_hide=FOLD)
    old = source.parent  # a fold that the notebook asks for gives way to this one
    outer = old if isinstance(old, HideCodeCellNode) else source
    outer.replace_self(fold)
    fold += source
    if part.name in WITH_OUTPUT:
        for output in [*cell.findall(nodes.container)]:
            if output.get("nb_element") == "cell_code_output":
                output.parent.remove(output)
                fold += output
    cell["classes"].append("yours-own")


def part_of(cell: nodes.Element) -> str | None:
    """The part that is built in a cell, if one is."""
    for name in cell.get("classes", ()):
        if name.startswith(TAG):
            return name.removeprefix(TAG)
    return None


def put_desks(app: Sphinx, document: nodes.document, page: str) -> None:
    """Put the page's desks, and the list of all, where cells are tagged."""
    if app.builder.format != "html" or not available():
        return
    for cell in list(document.findall(nodes.container)):
        name = part_of(cell)
        if name == BOXES:
            at = cell.parent.index(cell) + 1
            cell.parent.insert(at, raw(list_boxes(page, homes())))
        elif name is not None:
            put_desk(cell, PARTS[name])


# --- the boxes of the front page ------------------------------------------------------


def homes() -> dict[str, Path]:
    """The notebook in which each part has its desk.

    Raises:
        ExtensionError: a part has none, or two.
    """
    found: dict[str, list[Path]] = {name: [] for name in PARTS}
    for path in notebook_pages():
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for name in PARTS:
                if f"yours-{name}" in cell["metadata"].get("tags", []):
                    found[name].append(path)
    if wrong := [name for name, paths in found.items() if len(paths) != 1]:
        raise ExtensionError(f"not tagged in one cell of the book: {', '.join(wrong)}")
    return {name: path for name, [path] in found.items()}


def list_boxes(page: str, places: dict[str, Path]) -> str:
    """The parts that have a desk, in the order of the book."""
    root = "../" * page.count("/")
    items, links = [], []
    for name, part in PARTS.items():
        link = f"{root}book/{places[name].stem}.html#yours-{name}"
        links.append(link)
        items.append(
            f'<li><a href="{link}" data-part="{name}"><b>{escape(part.title)}</b> '
            f"<small>Chapter {chapter_of(places[name])}</small></a></li>"
        )
    listed = "\n".join(items)
    return (
        '<div class="yours-boxes">\n<p>'
        f'<a class="yours-start" href="{links[0]}">Start</a> '
        f"<span>You write the {len(links)} parts of the machine in these pages, and "
        "the machine translates with each of them. "
        '<span class="yours-count with-script"></span></span></p>\n'
        f"<ol>\n{listed}\n</ol>\n</div>"
    )


# --- files ----------------------------------------------------------------------------


def add_files(app: Sphinx, page: str, _: str, context: dict, *rest: Any) -> None:
    """Load style and script where there is a desk, or the list of all."""
    if 'class="yours' in context.get("body", ""):
        load_files(app, "yours.css", "machine/desks.js")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("doctree-resolved", put_desks)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
