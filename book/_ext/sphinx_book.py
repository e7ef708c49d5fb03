"""Sphinx extension: what the pages of the book need and settings cannot give.

- The answer of a grader is marked as open, wrong or right, so that it can be seen.
- Folds get one short label, pictures their size, wide tables a box to scroll in, the
  head of a chapter its parts, and what the reader has written a label.
- The list of contents is folded by the parts of the book.
- A reader can ask about a section, beside its title, where the book has an address.
- For the margin: a link to the glossary carries what the term means, and the map of the
  model with which a chapter begins can be shown again, small.
- The title of the first page is not written twice in the browser's tab.
- The page with the whole calculation is printed in small type.
- A change of these tools, or of scripts and styles, builds all pages again (Sphinx
  copies those only beside a page), and a file marks the last good build.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from PIL import Image
from sphinx.application import ENV_PICKLE_FILENAME, Sphinx

from book._ext import repository
from book._ext.toc import ROOT

STAMP = "built"  # in the folder of the pages; newer than all that they were made from

STATIC = ROOT / "book" / "_static"

# first sign of a grader's answer: class of the output that holds it
FEEDBACK = {"…": "feedback-open", "✗": "feedback-wrong", "✓": "feedback-right"}

COLUMN = 660  # pixels; a wider picture reaches into the margin
WIDE_PAGES = ("book/index", "book/translator")
IN_MARGIN = ("checks", "code")  # folds that the text doesn't speak of

FOLD = re.compile(
    r'<details class="admonition hide above-input">\n<summary[^>]*>\n'
    r'<p class="collapsed[^>]*>Show (?:the )?(.*?)</p>\n.*?</summary>',
    re.DOTALL,
)
HEAD = re.compile(r"</h1>\n<p><em>(.*?)</em></p>\n<p>(.*?)</p>", re.DOTALL)
IMAGE = re.compile(r'<img (?=[^>]*src="[./]*_images/([^"]+)")')
MAP = '<svg id="model-map"'
REWRITTEN = {
    '<span class="k">assert</span>': '<span class="k assert">assert</span>',
    r"<h1>(\d+)\. ": r'<h1><span class="number">Chapter \1</span> ',
    r'drawing">(?=<svg[^>]* width="(?:[7-9]\d\d|\d{4})")': 'drawing wide-figure">',
    r'(<table class="docutils.*?</table>)': r'<div class="table-box">\1</div>',
    r'<svg(?=[^>]* aria-label="Map of the encoder-decoder)': MAP,
}
GLOSSED = re.compile(r'<a class="reference internal"(?= href="glossary\.html#([^"]+)")')
SECTION = re.compile(r'<h[23]>(.*?)<a class="headerlink" href="#([^"]+)".*?</a>')
PART = re.compile(
    r'<p class="caption".*?>([^<]+)</span></p>\n(<ul.*?</ul>)\n?(?=<p|\Z)', re.DOTALL
)


def tools_digest() -> str:
    """A fingerprint of the modules that make the pages and of the static files."""
    here = Path(__file__).parent
    files = sorted([*here.glob("*.py"), *here.glob("theme/*"), *STATIC.rglob("*")])
    content = b"".join(path.read_bytes() for path in files if path.is_file())
    return hashlib.sha256(content).hexdigest()


def mark(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Mark what a grader says, and the cells whose code the reader owns from there."""
    for output in doctree.findall(nodes.literal_block):
        if kind := FEEDBACK.get(output.astext()[:1]):
            output["classes"].append(kind)
    for cell in doctree.findall(nodes.container):
        if "defines" in cell.get("cell_metadata", ()):
            code = cell.astext().lstrip()
            cell["classes"].append("own-class" if "class " in code else "own-function")


def load_files(app: Sphinx, *names: str) -> None:
    """Load scripts and styles on the page that is being written, and on no other."""
    for name in names:
        if name.endswith(".css"):
            app.add_css_file(name)
        else:
            app.add_js_file(name, loading_method="defer")


def fold(found: re.Match[str]) -> str:
    """A fold with one label, which holds whether it is open or not."""
    label = found[1]
    kind = "hide in-margin" if label in IN_MARGIN else "hide"
    summary = label[0].upper() + label[1:]
    return f'<details class="{kind}">\n<summary>{summary}</summary>'


@cache
def glosses() -> dict[str, str]:
    """What each term of the glossary means, in plain text, by its anchor."""
    text = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    plain = re.sub(r" \[[^]]*\]\(\d[^)]*\)|[`*$]", "", text)  # no link to a chapter
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", plain)
    entries = re.findall(r"^## (.+)\n\n(.+)", plain, re.M)
    return {nodes.make_id(term): gloss for term, gloss in entries}


def contents(toctree: str, sections: str) -> str:
    """The pages of the book, folded by part but for the part that is being read."""
    everywhere = "current" not in toctree
    toctree = re.sub(r'href="#">.*?</a>', lambda found: found[0] + sections, toctree)
    return "\n".join(
        f"<details{' open' * (everywhere or 'current' in pages)}>"
        f"<summary>{part}</summary>\n{pages}</details>"
        for part, pages in PART.findall(toctree)
    )


def with_question(page: str) -> Callable[[re.Match[str]], str]:
    """What writes a link to a question about a section behind the section's title."""
    url = repository.address()

    def linked(found: re.Match[str]) -> str:
        if url == repository.UNKNOWN:
            return found[0]
        section = unescape(re.sub(r"<[^>]*>", "", found[1]))
        link = escape(repository.question_link(url, page, section, found[2]))
        label = "Something unclear here?"
        return f'{found[0]}<a class="unclear" href="{link}" title="{label}">?</a>'

    return linked


def correct_body(app: Sphinx, source: str, body: str) -> str:
    """Rewrite what Sphinx made of the text of a page."""
    files = {name: path for path, name in app.builder.images.items()}

    def sized(found: re.Match[str]) -> str:
        width, height = Image.open(Path(app.srcdir, files[found[1]])).size
        wide = 'class="wide-figure" ' * (width > COLUMN)
        return f'<img {wide}loading="lazy" width="{width}" height="{height}" '

    def glossed(found: re.Match[str]) -> str:
        return f'{found[0]} data-gloss="{escape(glosses()[found[1]])}"'

    for pattern, better in REWRITTEN.items():
        body = re.sub(pattern, better, body, flags=re.DOTALL)
    body = IMAGE.sub(sized, FOLD.sub(fold, body))
    body = GLOSSED.sub(glossed, body)
    body = SECTION.sub(with_question(source), body)
    notebook = f'<a href="../_sources/{source}" download>Download it</a>'
    head = rf'</h1>\n<p class="question">\1</p>\n<p class="meta">\2 · {notebook}</p>'
    return HEAD.sub(head, body, count=1)


def correct_page(app: Sphinx, page: str, _: str, context: dict, *rest: Any) -> None:
    """Correct the HTML of one page, and give the template what it needs."""
    source = context.get("sourcename", "")
    context["body"] = correct_body(app, source, context.get("body", ""))
    sections = context.get("toc", "").partition("</a>")[2].rpartition("</li>")[0]
    context["sections"] = sections
    context["contents"] = contents(context["toctree"](includehidden=True), sections)
    context["map"] = MAP in context["body"]
    context["repository"] = repository.address()
    context["wide"] = page in WIDE_PAGES
    if page == app.config.root_doc:
        context["title"] = "Start here"
    if page == "book/pencil":
        load_files(app, "pencil.css")


def stamp(app: Sphinx, error: Exception | None) -> None:
    """Mark a build without warnings as good; make the next one start afresh else.

    Sphinx tells the warnings of a page only when it reads the page: a second build
    would pass over them in silence.
    """
    if error or app.builder.format != "html":
        return
    good = Path(app.outdir) / STAMP
    if app._warncount:  # Sphinx sets its status only after this event
        good.unlink(missing_ok=True)
        (Path(app.doctreedir) / ENV_PICKLE_FILENAME).unlink(missing_ok=True)
    else:
        good.touch()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.add_config_value("page_tools_digest", tools_digest(), "env", str)
    app.connect("doctree-resolved", mark)
    app.connect("html-page-context", correct_page)
    app.connect("build-finished", stamp, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
