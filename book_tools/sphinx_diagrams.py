"""Sphinx extension: drawn diagrams stand in the page, where they take its colors.

A notebook stores a diagram as a drawing of its own type and as a PNG. JupyterLab and
other frontends show the PNG. Here the drawing itself goes into the HTML; other builders
take the PNG.
"""

from __future__ import annotations

from docutils import nodes
from myst_nb.core.render import MimeData, NbElementRenderer
from sphinx.application import Sphinx

from book_tools.stored_output import use_renderer
from transformer_book.diagrams.canvas import MIME


class DiagramRenderer:
    """Turns a stored drawing into raw HTML."""

    mime_priority_overrides = [
        (builder, MIME, 1) for builder in ("html", "dirhtml", "singlehtml")
    ]

    @staticmethod
    def handle_mime(
        renderer: NbElementRenderer, data: MimeData, inline: bool
    ) -> list[nodes.Element] | None:
        """Return the drawing's node, or None for any other kind of output."""
        if inline or data.mime_type != MIME:
            return None
        html = f'<div class="output drawing">{data.string}</div>'
        return [nodes.raw("", html, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    use_renderer(app, DiagramRenderer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
