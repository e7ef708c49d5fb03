"""Sphinx extension: what the pages of the book need and settings cannot give.

- The answer of a grader is marked as open, wrong or right, so that it can be seen.
- Two small corrections of the HTML: a hidden cell is announced by its own words, and
  an `assert` stands out.
- The title of the first page is not written twice in the browser's tab.
- The page with the whole calculation is printed in small type.
- A change of these tools, or of scripts and styles, builds all pages again (Sphinx
  copies those only beside a page), and a file marks the last good build.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import ENV_PICKLE_FILENAME, Sphinx

from book_tools.toc import ROOT

STAMP = "built"  # in the folder of the pages; newer than all that they were made from

STATIC = ROOT / "book" / "_static"

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


def mark_feedback(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give the output of a grader a class that tells what it says."""
    for output in doctree.findall(nodes.literal_block):
        if kind := FEEDBACK.get(output.astext()[:1]):
            output["classes"].append(kind)


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
    app.connect("html-page-context", correct_page)
    app.connect("build-finished", stamp, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
