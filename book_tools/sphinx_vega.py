"""Sphinx extension: interactive charts that need no kernel and no network.

A chart is stored in a notebook as a Vega-Lite specification, a picture and a text. Here
it becomes a live chart, drawn by a copy of Vega that comes with the pages, with its
picture for readers without scripts and for print, its text as caption, and its numbers
as a table. Other builders than HTML take the picture.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

import vl_convert
from docutils import nodes
from myst_nb.core.render import MimeData, NbElementRenderer
from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset
from sphinx.writers.html5 import HTML5Translator

from book_tools.stored_output import use_renderer
from transformer_book.charts.theme import theme_config

MIME = re.compile(r"application/vnd\.vegalite\.v\d+\+json")
VEGA = f"vega-{vl_convert.__version__}.js"
THEMES = ("light", "dark")
MAX_ROWS = 40  # rows of a data table; the picture shows the rest better


class chart(nodes.General, nodes.Element):  # noqa: N801, named as docutils does
    """A chart: attributes spec, label and key; its child is the static picture."""


class VegaLiteRenderer:
    """Turns a stored Vega-Lite specification into a chart node."""

    mime_priority_overrides = [
        (builder, f"application/vnd.vegalite.v{version}+json", 1)
        for builder in ("html", "dirhtml", "singlehtml")
        for version in (5, 6)
    ]

    @staticmethod
    def handle_mime(
        renderer: NbElementRenderer, data: MimeData, inline: bool
    ) -> list[nodes.Element] | None:
        """Return the chart's node, or None for any other kind of output."""
        if inline or not MIME.fullmatch(data.mime_type):
            return None
        spec = json.loads(json.dumps(data.content))  # plain dicts: can be pickled
        node = chart(spec=spec, label=spec.get("description", ""))
        node["key"] = f"chart-{data.cell_index}-{data.output_index}"
        _, outputs = renderer.renderer.nb_client.code_cell_outputs(data.cell_index)
        for output in outputs:
            bundle = output.get("data", {})
            if bundle.get(data.mime_type) == data.content and "image/png" in bundle:
                png = MimeData("image/png", bundle["image/png"], line=data.line)
                node += renderer.render_image(png)
                node[0]["alt"] = node["label"]
                node[0]["classes"].append("dark-light")  # the theme leaves it as it is
                break
        return [node]


def visit_chart(writer: HTML5Translator, node: chart) -> None:
    """Open a chart: the place to draw in, then the picture."""
    key, label = node["key"], escape(node["label"], quote=True)
    writer.body.append(
        f'<div class="vega-chart" role="figure" aria-labelledby="{key}">\n'
        '<div class="vega-inputs"></div>\n'
        f'<div class="vega-view" role="img" aria-label="{label}"></div>\n'
        '<div class="vega-picture">'
    )


def depart_chart(writer: HTML5Translator, node: chart) -> None:
    """Close a chart: its caption, its numbers, and the specification."""
    spec = json.dumps(node["spec"], ensure_ascii=False).replace("<", "\\u003c")
    writer.body.append(
        "</div>\n"
        f'<p class="vega-caption" id="{node["key"]}">{escape(node["label"])}</p>\n'
        f"{data_table(node['spec'])}\n"
        f'<script type="application/json">{spec}</script>\n'
        "</div>\n"
    )


def data_table(spec: dict[str, Any]) -> str:
    """Return the first rows of a chart's data as a table that can be unfolded."""
    rows = chart_rows(spec)
    if not rows:
        return ""
    columns = spec.get("usermeta", {}).get(
        "columns", [[name, name] for name in rows[0]]
    )
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for _, heading in columns)
    body = "\n".join(
        "<tr>"
        + "".join(f"<td>{_cell(row[name])}</td>" for name, _ in columns)
        + "</tr>"
        for row in rows[:MAX_ROWS]
    )
    count = f"{len(rows)} rows"
    if len(rows) > MAX_ROWS:
        count = f"the first {MAX_ROWS} of {count}"
    return (
        f'<details class="vega-data"><summary>Data table ({count})</summary>\n'
        '<div class="vega-scroll" role="region" aria-label="Data table" tabindex="0">\n'
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
        "</div></details>"
    )


def chart_rows(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the first data set of a specification."""
    data = spec.get("data", {})
    return data.get("values") or spec.get("datasets", {}).get(data.get("name"), [])


def _cell(value: Any) -> str:
    words = {True: "yes", False: "no", None: "\N{EN DASH}"}
    known = isinstance(value, bool) or value is None
    return words[value] if known else escape(str(value))


def write_scripts(app: Sphinx) -> None:
    """Put Vega, the book's own script and its style beside the pages."""
    if app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    if not (static / VEGA).exists():  # bundling takes seconds
        # In a function, for the bundle's top-level names would meet other scripts'.
        bundle = f"(() => {{\n{vl_convert.javascript_bundle()}\n}})();\n"
        (static / VEGA).write_text(bundle, encoding="utf-8")
    themes = json.dumps({name: theme_config(name == "dark") for name in THEMES})
    here = Path(__file__).parent
    script = (here / "vega_charts.js").read_text(encoding="utf-8")
    (static / "vega_charts.js").write_text(
        script.replace("BOOK_THEMES", themes), encoding="utf-8"
    )
    copy_asset(here / "vega_charts.css", static)


def add_scripts(
    app: Sphinx,
    page: str,
    template: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Load the scripts on a page with charts, and on no other."""
    if doctree is not None and next(doctree.findall(chart), None) is not None:
        app.add_css_file("vega_charts.css")
        app.add_js_file(VEGA, loading_method="defer")
        app.add_js_file("vega_charts.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.add_node(chart, html=(visit_chart, depart_chart))
    app.connect("builder-inited", write_scripts)
    app.connect("html-page-context", add_scripts)
    use_renderer(app, VegaLiteRenderer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
