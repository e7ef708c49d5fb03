"""Sphinx extension: the picture of the whole model, whose boxes can be chosen.

The notebook stores the map with a link on each box, and what is told of the boxes as
folds. The page's script shows the fold of the box that is chosen beside the map.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from myst_nb.core.render import MimeData, NbElementRenderer, load_mime_renders
from sphinx.application import Sphinx

from book._ext.sphinx_book import load_files
from transformer_book.explorer import MIME


class Renderer:
    """Puts the stored picture into the page as it is."""

    mime_priority_overrides = [("html", MIME, 1)]

    @staticmethod
    def handle_mime(
        renderer: NbElementRenderer, data: MimeData, inline: bool
    ) -> list[nodes.Element] | None:
        """Return the picture, or None for any other kind of output."""
        if data.mime_type != MIME:
            return None
        return [nodes.raw("", data.string, format="html")]


def add_files(app: Sphinx, page: str, _: str, context: dict, *rest: Any) -> None:
    """Load style and script on the page that has the picture."""
    if '<div class="explorer"' in context.get("body", ""):
        load_files(app, "explorer.css", "explorer.js")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx; see `sphinx_outputs` for the list."""
    app.connect("html-page-context", add_files)
    load_mime_renders().append(Renderer)
    app.connect("build-finished", lambda *_: load_mime_renders().remove(Renderer))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
