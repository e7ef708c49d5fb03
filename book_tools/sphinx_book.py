"""Sphinx extension: what the pages of the book need and settings cannot give.

- MathJax comes with the pages: only the files that they can ask for are copied.
- The answer of a grader is marked as open, wrong or right, so that it can be seen.
- Two small corrections of the HTML: a hidden cell is announced by its own words, and
  an `assert` stands out.
- A numbered formula of several lines keeps its number.
- The title of the first page is not written twice in the browser's tab.
- The page with the whole calculation is printed in small type.
- A change of these tools, or of scripts and styles, builds all pages again (Sphinx
  copies those only beside a page), and a file marks the last good build.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import ENV_PICKLE_FILENAME, Sphinx
from sphinx.util.fileutil import copy_asset

from book_tools.toc import ROOT

STAMP = "built"  # in the folder of the pages; newer than all that they were made from

STATIC = ROOT / "book" / "_static"
MATHJAX_FILES = ["tex-chtml.js", "input/tex/extensions", "output/chtml/fonts"]

# first sign of a grader's answer: class of the output that holds it
FEEDBACK = {"…": "feedback-open", "✗": "feedback-wrong", "✓": "feedback-right"}

REWRITTEN = {
    '<summary aria-label="Toggle hidden content">': "<summary>",
    '<span class="k">assert</span>': '<span class="k assert">assert</span>',
}


def tools_digest() -> str:
    """A fingerprint of the modules that make the pages and of the static files."""
    modules = sorted(Path(__file__).parent.glob("*.py"))
    static = sorted(path for path in STATIC.rglob("*") if path.is_file())
    content = b"".join(path.read_bytes() for path in (*modules, *static))
    return hashlib.sha256(content).hexdigest()


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Copy MathJax and its fonts into the built pages."""
    if error or app.builder.format != "html":
        return
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    source = Path(package.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    for name in MATHJAX_FILES:
        folder = name if (source / name).is_dir() else ""
        copy_asset(source / name, target / folder)


def mark_feedback(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give the output of a grader a class that tells what it says."""
    for output in doctree.findall(nodes.literal_block):
        if kind := FEEDBACK.get(output.astext()[:1]):
            output["classes"].append(kind)


def keep_tags(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    r"""Spare formulas with `\tag` the environment in which `\tag` is an error."""
    for formula in doctree.findall(nodes.math_block):
        text = formula.astext()
        if r"\\" in text and r"\tag" in text:
            formula["nowrap"] = True
            formula[:] = [nodes.Text(rf"\[{text}\]")]


def load_files(app: Sphinx, *names: str) -> None:
    """Load scripts and styles on the page that is being written, and on no other."""
    for name in names:
        if name.endswith(".css"):
            app.add_css_file(name)
        else:
            app.add_js_file(name, loading_method="defer")


def correct_page(
    app: Sphinx,
    page: str,
    template: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Correct the HTML of one page."""
    for found, better in REWRITTEN.items():
        context["body"] = context.get("body", "").replace(found, better)
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
    app.add_config_value("book_tools_digest", tools_digest(), "env", str)
    app.connect("doctree-resolved", mark_feedback)
    app.connect("doctree-resolved", keep_tags)
    app.connect("html-page-context", correct_page)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", stamp, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
