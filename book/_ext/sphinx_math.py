"""Sphinx extension: KaTeX typesets every formula while the pages are built.

So no page loads a typesetter. A formula that KaTeX refuses ends the build. The folder
`katex` holds its script, and book/_static/katex its styles and fonts; CONTRIBUTING.md
tells how they are renewed.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.writers.html5 import HTML5Translator

SCRIPT = Path(__file__).with_name("katex") / "katex.min.js"
STYLES = "katex/katex.min.css"

NUMBER = re.compile(r"\\tag\{(.*?)\}")
# Lines without an environment of their own are aligned, as in LaTeX's split.
LINES = r"\begin{{split}}{}\end{{split}}"


@cache
def engine() -> MiniRacer:
    """A JavaScript engine that knows KaTeX."""
    started = MiniRacer()
    started.eval(SCRIPT.read_text("utf-8"))
    return started


def typeset(formula: str, display: bool) -> str:
    """Return the HTML of a formula, with MathML for screen readers."""
    options = {"displayMode": display, "strict": "error"}
    try:
        return engine().call("katex.renderToString", formula, options)
    except JSEvalException as error:
        raise ExtensionError(f"{formula}\n{error}") from error


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    html = typeset(node.astext(), display=False)
    self.body.append(f"{self.starttag(node, 'span', '', CLASS='math')}{html}</span>")
    raise nodes.SkipNode


def visit_math_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula with lines of its own, and its number beside what scrolls."""
    formula = node.astext()
    number = NUMBER.search(formula)
    formula = NUMBER.sub("", formula).strip()
    if r"\\" in formula and r"\begin" not in formula:
        formula = LINES.format(formula)
    html = typeset(formula, display=True)
    eqno = f'<span class="eqno">({number[1]})</span>' if number else ""
    tag = self.starttag(node, "div", "", CLASS="math")
    self.body.append(f"{tag}{html}{eqno}</div>\n")
    raise nodes.SkipNode


def load_styles(app: Sphinx, page: str, _: str, context: dict, *rest: Any) -> None:
    """Load the styles of formulas on a page that has one."""
    if 'class="math"' in context.get("body", ""):
        app.add_css_file(STYLES, priority=400)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.add_html_math_renderer("katex", (visit_math, None), (visit_math_block, None))
    app.connect("html-page-context", load_styles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
