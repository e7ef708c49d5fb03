"""Sphinx extension: charts, drawings and the machine live in the page.

A notebook stores each of them in a type of its own, and as a picture for other
frontends. Here a chart becomes live, drawn by a copy of Vega that comes with the pages,
with its numbers as a table; it keeps the picture for readers without scripts and for
print. The machine becomes a place for book/machine to fill;
behind it stand its own drawings, made while the pages are built. Drawings and plots
stand in the HTML itself, where they take the page's colors. The scripts are unpacked
beside the pages, and so are the model's weights, as scripts that are loaded when a
reader types a sentence.
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any
from zlib import crc32

import vl_convert
from docutils import nodes
from myst_nb.core.render import MimeData, NbElementRenderer, load_mime_renders
from PIL import Image
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.fileutil import copy_asset

from book._ext.browser_model import MODEL, SISTER, write_scripts
from book._ext.bundles import write_bundles
from book._ext.figures import MIME as PLOT
from book._ext.figures import NARROW, in_page, style_sheet
from book._ext.sphinx_book import load_files
from book._ext.sphinx_html import ATTRIBUTES
from transformer_book.charts.machine import MIME as MACHINE
from transformer_book.charts.machine import draw, meanings, read_choices
from transformer_book.charts.theme import theme_config
from transformer_book.diagrams.canvas import MIME as DIAGRAM
from transformer_book.diagrams.canvas import signed
from transformer_lib.pretrained.translator import find

CHARTS = tuple(f"application/vnd.vegalite.v{version}+json" for version in (5, 6))
VEGA = f"vega-{vl_convert.__version__}.js"
WIDE = 700  # pixels; what has as many reaches into the margin
MAX_ROWS = 40  # rows of a data table; the picture shows the rest better


class Renderer:
    """Turns what is stored into nodes."""

    kinds = (*CHARTS, MACHINE, DIAGRAM, PLOT)
    mime_priority_overrides = [("html", mime, 1) for mime in kinds]

    @staticmethod
    def handle_mime(
        renderer: NbElementRenderer, data: MimeData, inline: bool
    ) -> list[nodes.Element] | None:
        """Return the output's nodes, or None for any other kind of output."""
        if data.mime_type in CHARTS:
            before, after = chart(data.content)
            return [raw(before), picture(renderer, data), raw(after)]
        if data.mime_type == MACHINE:
            return [raw(machine(renderer.renderer.sphinx_env, data.content))]
        if data.mime_type == NARROW:
            return []  # it is put beside the wide one
        if data.mime_type not in (DIAGRAM, PLOT):
            return None
        if data.mime_type == DIAGRAM:
            return [raw(drawing(data.string))]
        alt = data.cell_metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        place = f"{data.cell_index}-{data.output_index}"
        svg = in_page(data.string, alt, f"plot-{place}")
        if narrow := stored_beside(renderer, data).get(NARROW):
            svg += in_page(narrow, alt, f"narrow-plot-{place}")
        return [raw(drawing(svg))]


def raw(html: str) -> nodes.raw:
    """HTML as it is."""
    return nodes.raw("", html, format="html")


def drawing(svg: str) -> str:
    """A plot or a drawing."""
    # No text is smaller than what figures.css says of a narrow page.
    svg = re.sub(r"font-size:([\d.]+px)", r"font-size:max(\1,var(--least,0px))", svg)
    wide = float(re.search(r' width="([\d.]+)"', svg)[1]) >= WIDE
    return f'<div class="output drawing{" wide-figure" if wide else ""}">{svg}</div>'


def stored_beside(renderer: NbElementRenderer, data: MimeData) -> dict[str, Any]:
    """All types in which a notebook stores an output."""
    _, outputs = renderer.renderer.nb_client.code_cell_outputs(data.cell_index)
    return outputs[data.output_index]["data"]


def picture(renderer: NbElementRenderer, data: MimeData) -> nodes.Element:
    """The PNG that a notebook stores beside a chart."""
    png = stored_beside(renderer, data)["image/png"]
    [image] = renderer.render_image(MimeData("image/png", png, line=data.line))
    image["alt"] = data.content.get("description", "")
    image["loading"] = "lazy"
    width, height = Image.open(BytesIO(b64decode(png))).size
    image[ATTRIBUTES] = {"width": str(width), "height": str(height)}
    image["classes"].append("dark-light")  # the theme leaves it as it is
    if width >= WIDE:
        image["classes"].append("wide-figure")
    return image


def as_script(data: str) -> str:
    """Data that a script of the page reads; no text in it can end the element."""
    data = data.replace("<", "\\u003c")
    return f'<script type="application/json">{data}</script>\n</div>\n'


# --- charts ---------------------------------------------------------------------------


def chart(spec: dict[str, Any]) -> tuple[str, str]:
    """The inputs and the place of a chart; its numbers and its specification."""
    shown = escape(spec.get("description", ""))
    return (
        '<div class="vega-chart">\n<div class="vega-inputs"></div>\n'
        f'<div class="vega-view" role="img" aria-label="{shown}"></div>\n'
        '<div class="vega-picture">',
        "</div>\n"
        f"{data_table(spec)}\n{as_script(json.dumps(spec, ensure_ascii=False))}",
    )


def data_table(spec: dict[str, Any]) -> str:
    """Return the first rows of a chart's data as a table that can be unfolded."""
    data = spec.get("data", {})
    rows = data.get("values") or spec.get("datasets", {}).get(data.get("name"), [])
    if not rows:
        return ""
    as_they_are = [(name, name) for name in rows[0]]
    columns = spec.get("usermeta", {}).get("columns", as_they_are)  # name, heading
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for _, heading in columns)
    cells = [[f"<td>{cell(row[name])}</td>" for name, _ in columns] for row in rows]
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in cells[:MAX_ROWS])
    count = f"{len(rows)} rows"
    if len(rows) > MAX_ROWS:
        count = f"the first {MAX_ROWS} of {count}"
    return (
        f'<details class="vega-data"><summary>Data table ({count})</summary>\n'
        '<div class="vega-scroll" role="region" aria-label="Data table" tabindex="0">\n'
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
        "</div></details>"
    )


def cell(value: Any) -> str:
    """A value in a table."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "\N{EN DASH}"}[value]
    return escape(signed(str(value)))


def write_files(app: Sphinx) -> None:
    """Put Vega, the book's own script and the styles of figures beside the pages."""
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    if not (static / VEGA).exists():  # bundling takes seconds
        # In a function, for the bundle's top-level names would meet other scripts'.
        bundle = f"(() => {{\n{vl_convert.javascript_bundle()}\n}})();\n"
        (static / VEGA).write_text(bundle, encoding="utf-8")
    # The pages have a narrower font than the pictures in notebooks.
    themes = {look: theme_config(look == "dark", size=12) for look in ("light", "dark")}
    here = Path(__file__).parent
    script = (here / "vega_charts.js").read_text(encoding="utf-8")
    for name, value in {"BOOK_THEMES": themes, "BOOK_VEGA": VEGA}.items():
        script = script.replace(name, json.dumps(value))
    (static / "vega_charts.js").write_text(script, encoding="utf-8")
    copy_asset(here / "vega_charts.css", static)
    (static / "figures.css").write_text(style_sheet(), encoding="utf-8")


# --- the machine ----------------------------------------------------------------------


WITHOUT = (
    "Without JavaScript, you see one stored sentence, and no buttons or sliders. Where "
    "English words are underlined, choose one to see where the model looked for it."
)


def machine(env: BuildEnvironment, stored: dict[str, Any]) -> str:
    """The place of the machine, what it loads, its pictures, and its trace."""
    settings = settings_of(env.app, stored, "../" * env.docname.count("/"))
    data = "".join(f' data-{name}="{escape(x)}"' for name, x in settings.items())
    label = escape(stored["alt"])
    start = f'<div class="machine" role="group" aria-label="{label}"{data}>\n'
    still = f'<div class="machine-still">{pictures(stored)}</div>\n'
    return start + still + as_script(stored["stored"])


def settings_of(app: Sphinx, stored: dict[str, Any], root: str) -> dict[str, str]:
    """What a machine has to know, as its script reads it; root: where the pages are."""
    return {
        "at": stored["at"],
        "config": app.machine_config,
        "model": json.dumps([root + path for path in app.machine_parts[MODEL]]),
        "sister": json.dumps([root + path for path in app.machine_parts[SISTER]]),
        "size": app.machine_size,
        "options": json.dumps(stored["options"]),
        "words": json.dumps(words_of(stored, root), ensure_ascii=False),
    }


def words_of(stored: dict[str, Any], root: str) -> dict[str, Any]:
    """The choices, where the page is the machine's own, and what its German means."""
    choices = read_choices() if stored["options"].get("shares") else []
    for each in choices:
        chapter = each.pop("chapter")
        number = int(chapter.partition("_")[0])
        words = f"Chapter {number} {each['why']}."
        each["why"] = {"to": f"{root}book/{chapter}.html", "words": words}
    sentences = {json.loads(stored["stored"])["trace"]["source"]}
    return {
        "choices": choices,
        "meanings": meanings(sentences.union(each["text"] for each in choices)),
    }


def pictures(stored: dict[str, Any]) -> str:
    """Draw the machine where it is open; below the whole of it, what it opens to."""
    text, at, options = stored["stored"], stored["at"], stored["options"]
    if at in ("/search", "/cache", "/operate"):  # drawn by the page's script alone
        at = ""
    wide = draw(text, at, options, tall=False)
    tall = draw(text, at, options, tall=True)
    elements = [
        f'<p class="machine-alt">{escape(stored["alt"])}</p>',
        f"<noscript><p>{WITHOUT}</p></noscript>",
        f'<div class="wide">{wide["words"]}{wide["svg"]}</div>',
        f'<div class="upright">{tall["words"]}{tall["svg"]}</div>',
        folded(wide["table"], "as a table"),
    ]
    if not at:
        known = json.loads(text)
        trace = known["edited"] or known["trace"]
        word = escape(trace["tgt_labels"][options.get("step", 0)].strip("▁"))
        for level, path in clearest(trace, options).items():
            below = draw(text, path, options)
            title = f"{level}, at “{word}”"
            elements.append(folded(below["svg"] + below["table"], title))
    return "\n".join(elements)


def clearest(trace: dict[str, Any], options: dict[str, Any]) -> dict[str, str]:
    """The ways down to one weight: middle layer, its stored head, where it looks."""
    cross = [name for name in trace["maps"] if name.endswith("cross_attn")]
    name, n_src = cross[len(cross) // 2], len(trace["src"])
    _, _, layer, kind = name.split(".")
    paths = {"a layer": f"/decoder/{layer}"}
    if name in trace["heads"]:
        head, start = trace["heads"][name]["head"], options.get("step", 0) * n_src
        weights = trace["maps"][name][head][start : start + n_src]
        paths["a head"] = f"/decoder/{layer}/{kind}/{head}"
        paths["one weight"] = f"{paths['a head']}/{weights.index(max(weights))}"
    return paths


def folded(html: str, title: str) -> str:
    """A table of the same numbers, or a deeper level, behind a line."""
    inside = f'<div class="machine-scroll">{html}</div>'
    return f"<details><summary>The machine, {title}</summary>\n{inside}</details>"


def write_machine(app: Sphinx) -> None:
    """Write scripts and weights beside the pages, and note what a server sends."""
    app.machine_config = (find(MODEL) / "config.json").read_text(encoding="utf-8")
    folder = Path(app.outdir) / "_static" / "machine"
    write_bundles(folder)
    app.machine_parts = {}
    for name in MODEL, SISTER:
        app.machine_parts[name] = [
            f"_static/machine/{script.name}?v={crc32(script.read_bytes()):08x}"
            for script in write_scripts(folder, name)
        ]
    scripts = folder.glob(f"{MODEL}-*.js")
    n_bytes = sum(len(gzip.compress(each.read_bytes(), 6)) for each in scripts)
    app.machine_size = f"{n_bytes / 1e6:.1f} MB"


# --- Sphinx ---------------------------------------------------------------------------


def add_scripts(app: Sphinx, page: str, _: str, context: dict, *rest: Any) -> None:
    """Load the scripts of what a page has, and none on other pages."""
    body = context.get("body", "")
    if '<div class="vega-chart"' in body:
        load_files(app, "vega_charts.css", "vega_charts.js")
    if '<div class="machine"' in body:
        load_files(app, "machine.css", "machine/machine.js")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx.

    MyST-NB finds a renderer through an entry point of an installed package, in every
    book of an environment. This one is for one book, so it joins the list that MyST-NB
    has loaded, and the end of the build takes it out again.
    """
    app.add_css_file("figures.css")
    app.connect("builder-inited", write_files)
    app.connect("builder-inited", write_machine)
    app.connect("html-page-context", add_scripts)
    load_mime_renders().append(Renderer)
    app.connect("build-finished", lambda *_: load_mime_renders().remove(Renderer))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
