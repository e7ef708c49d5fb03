"""Sphinx extension: what a page is besides its text.

- The list of contents is folded by the parts of the book, and the map of the model with
  which a chapter begins can be shown again, small.
- The page with the whole calculation is printed in small type.
- A change of these tools, or of scripts and styles, builds all pages again (Sphinx
  copies those only beside a page), and a file marks the last good build.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import ENV_PICKLE_FILENAME, Sphinx
from sphinx.environment.adapters.toctree import document_toc, global_toctree_for_doc

from book._ext import bundles, repository
from book._ext.toc import ROOT
from transformer_lib.files import write_text

STAMP = "built"  # in the folder of the pages; newer than all that they were made from
STATIC = ROOT / "book" / "_static"
WIDE_PAGES = ("book/index", "book/translator")

# What Pygments makes of the word, and what the styles of the book speak of.
ASSERT = '<span class="k">assert</span>'
MARKED_ASSERT = '<span class="k assert">assert</span>'


def tools_digest() -> str:
    """A fingerprint of what makes and draws the pages, and of the static files."""
    here = Path(__file__).parent
    drawn = ROOT / "transformer_book"  # what draws on pages
    files = sorted(
        [
            *here.glob("*.py"),
            *here.glob("theme/*"),
            *STATIC.rglob("*"),
            *bundles.FOLDER.glob("*"),
            *drawn.rglob("*.py"),
            *drawn.rglob("*.js.gz"),
        ]
    )
    content = b"".join(path.read_bytes() for path in files if path.is_file())
    return hashlib.sha256(content).hexdigest()


def load_files(app: Sphinx, *names: str) -> None:
    """Load scripts and styles on the page that is being written, and on no other."""
    for name in names:
        if name.endswith(".css"):
            app.add_css_file(name)
        else:
            app.add_js_file(name, loading_method="defer")


# --- contents -------------------------------------------------------------------------


class Part(NamedTuple):
    """A part of the book, as the template lists it.

    Attributes:
        title: its name.
        pages: an HTML list of them.
        open: whether it is unfolded: the part that is read, or every one.
    """

    title: str
    pages: str
    open: bool


def html(app: Sphinx, node: nodes.Element | None) -> str:
    """A piece of a page as HTML."""
    return app.builder.render_partial(node)["fragment"] if node else ""


def sections_of(app: Sphinx, page: str) -> nodes.bullet_list | None:
    """The list of a page's sections, if it has any."""
    if page not in app.env.tocs:  # the search
        return None
    title = document_toc(app.env, page, app.tags)[0]
    return title[1] if len(title) > 1 else None


def contents(app: Sphinx, page: str, sections: nodes.bullet_list | None) -> list[Part]:
    """The parts of the book; below the page itself stand its sections."""
    toctree = global_toctree_for_doc(app.env, page, app.builder, collapse=True)
    here = [link for link in toctree.findall(nodes.reference) if not link["refuri"]]
    for link in here:
        item = link.parent.parent
        item += sections.deepcopy() if sections else []
    titles, lists = toctree.children[::2], toctree.children[1::2]
    parts = []
    for title, pages in zip(titles, lists, strict=True):
        unfolded = not here or "current" in pages["classes"]
        parts.append(Part(title.astext(), html(app, pages), unfolded))
    return parts


def complete_page(app: Sphinx, page: str, _: str, context: dict, *rest: Any) -> None:
    """Give the template of a page what it needs."""
    context["body"] = context.get("body", "").replace(ASSERT, MARKED_ASSERT)
    sections = sections_of(app, page)
    context["sections"] = html(app, sections)
    context["contents"] = contents(app, page, sections)
    context["repository"] = repository.address()
    context["wide"] = page in WIDE_PAGES
    if page == "book/pencil":
        load_files(app, "pencil.css")


# --- what a reader loads --------------------------------------------------------------


def leave_comments_out(app: Sphinx, error: Exception | None) -> None:
    """Take the comments out of the styles that lie beside the pages."""
    if error or app.builder.format != "html":
        return
    for path in Path(app.outdir, "_static").glob("*.css"):
        styles = path.read_text(encoding="utf-8")
        write_text(path, re.sub(r"/\*.*?\*/\s*", "", styles, flags=re.DOTALL))


# --- a good build ---------------------------------------------------------------------


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
    app.connect("html-page-context", complete_page)
    app.connect("build-finished", leave_comments_out)
    app.connect("build-finished", stamp, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
