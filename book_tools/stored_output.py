"""How the pages show what a notebook stores in a type of the book's own."""

from __future__ import annotations

from typing import Any

from myst_nb.core.render import load_mime_renders
from sphinx.application import Sphinx


def use_renderer(app: Sphinx, renderer: Any) -> None:
    """Let MyST-NB ask a renderer, during this build.

    MyST-NB finds such a class through an entry point of an installed package, in every
    book of an environment. These are for one book, so they join the list that MyST-NB
    has loaded, and the end of the build takes them out again.
    """
    load_mime_renders().append(renderer)
    app.connect("build-finished", lambda *_: load_mime_renders().remove(renderer))
