"""Sphinx extension: the translator that runs in the page.

A notebook stores a part of it as data of its own type and as a picture. Here it becomes
a place for book/_static/translator to fill, with the picture for readers without
scripts and for print. The weights are written beside the pages, as a script that is
loaded when a reader asks for it.
"""

from __future__ import annotations

import gzip
import json
from html import escape
from pathlib import Path
from typing import Any
from zlib import crc32

from docutils import nodes
from myst_nb.core.render import MimeData, NbElementRenderer
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

from book_tools.browser_model import write_script
from book_tools.stored_output import use_renderer
from transformer_book.charts.translator import MIME
from transformer_lib.pretrained.translator import DEFAULT, WEIGHTS, find

FOLDER = "translator"  # in the folder of static files
LATE = "engine", "tasks"  # scripts that come with the weights


class part(nodes.General, nodes.Element):  # noqa: N801, named as docutils does
    """A part of the translator: attribute data; its child is the still picture."""


class PartRenderer:
    """Turns a stored part into its node."""

    mime_priority_overrides = [
        (builder, MIME, 1) for builder in ("html", "dirhtml", "singlehtml")
    ]

    @staticmethod
    def handle_mime(
        renderer: NbElementRenderer, data: MimeData, inline: bool
    ) -> list[nodes.Element] | None:
        """Return the part's node, or None for any other kind of output."""
        if inline or data.mime_type != MIME:
            return None
        stored = json.loads(json.dumps(data.content))  # plain dicts: can be pickled
        node = part(data=stored)
        _, outputs = renderer.renderer.nb_client.code_cell_outputs(data.cell_index)
        for output in outputs:
            bundle = output.get("data", {})
            if bundle.get(MIME) == data.content:
                png = MimeData("image/png", bundle["image/png"], line=data.line)
                node += renderer.render_image(png)
                node[0]["alt"] = stored["alt"]
                break
        return [node]


def visit_part(writer: HTML5Translator, node: part) -> None:
    """Open the place of a part: then comes its picture."""
    stored = node["data"]
    root = "../" * writer.builder.current_docname.count("/")
    settings = {
        "part": stored["part"],
        **{
            name: root + path
            for name, path in writer.builder.app.translator_late.items()
        },
        "size": writer.builder.app.translator_size,
        "config": writer.builder.app.translator_config,
        **stored["options"],
    }
    data = "".join(
        f' data-{name}="{escape(str(value), quote=True)}"'
        for name, value in settings.items()
    )
    label = escape(stored["alt"], quote=True)
    writer.body.append(
        f'<div class="translator" role="group" aria-label="{label}"{data}>\n'
        '<div class="translator-picture">'
    )


def depart_part(writer: HTML5Translator, node: part) -> None:
    """Close it: after its picture comes its trace."""
    trace = node["data"]["trace"].replace("<", "\\u003c")
    writer.body.append(
        f'</div>\n<script type="application/json">{trace}</script>\n</div>\n'
    )


def write_model(app: Sphinx) -> None:
    """Write the weights beside the pages, and note what a server sends of them."""
    if app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / FOLDER / f"{DEFAULT}.js"
    weights = find(DEFAULT) / WEIGHTS
    app.translator_config = (find(DEFAULT) / "config.json").read_text(encoding="utf-8")
    if not target.exists() or target.stat().st_mtime < weights.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_script(DEFAULT, target)
    n_bytes = len(gzip.compress(target.read_bytes(), 6))  # what a web server sends
    app.translator_size = f"{n_bytes / 1e6:.1f} MB"
    static = Path(app.confdir) / "book" / "_static" / FOLDER
    files = {name: static / f"{name}.js" for name in LATE} | {"model": target}
    app.translator_late = {
        name: f"_static/{FOLDER}/{path.name}?v={crc32(path.read_bytes()):08x}"
        for name, path in files.items()
    }


def add_scripts(
    app: Sphinx,
    page: str,
    template: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Load the scripts of the parts that a page has, and none on other pages."""
    parts = [] if doctree is None else list(doctree.findall(part))
    if parts:
        app.add_css_file("translator.css")
        shown = dict.fromkeys(f"part_{each['data']['part']}" for each in parts)
        for name in "translator", *shown:
            app.add_js_file(f"{FOLDER}/{name}.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.add_node(part, html=(visit_part, depart_part))
    app.connect("builder-inited", write_model)
    app.connect("html-page-context", add_scripts)
    use_renderer(app, PartRenderer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
