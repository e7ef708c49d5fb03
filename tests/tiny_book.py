"""A book of one notebook and the two pages of items, built by Sphinx in a second."""

from __future__ import annotations

import html
import io
import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from book_tools.toc import ROOT

TABLE = """
- short: S0
  title: A document
  source: A blog post.
  sections:
  - title: Opening
    items:
    - {id: S0-01, lines: "3-4", kind: claim, verdict: correct, says: So., truth: Yes.}
    - {id: S0-02, lines: "5", kind: open-question, verdict: wrong, says: "It is `so`,
       $x_i$, see S0-01", truth: It is not.}
"""
CONF = f"""
extensions = ["myst_nb", "book_tools.sphinx_cards"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
nb_execution_mode = "off"
exclude_patterns = ["_build", "jupyter_execute"]
html_theme = "basic"
html_static_path = [{str(ROOT / "book" / "_static")!r}]
html_css_files = ["book.css"]
html_js_files = ["book.js"]
"""


def cell(kind: str, source: str, *ids: str, tags: tuple[str, ...] = ()) -> Any:
    metadata: dict[str, Any] = {"covers": list(ids)} if ids else {}
    metadata |= {"tags": list(tags)} if tags else {}
    extra = {"execution_count": 1, "outputs": []} if kind == "code" else {}
    name = re.sub(r"\W+", "-", f"{kind}-{source}")[:60]
    return {
        "cell_type": kind,
        "metadata": metadata,
        "source": source,
        "id": name,
    } | extra


class Book:
    """One notebook and the two pages of items, built by Sphinx."""

    def __init__(self, root: Path, cells: list[Any]) -> None:
        self.root = root
        (root / "book").mkdir()
        pages = ["book/04_masks", "book/sources", "book/errata"]
        toctree = "\n".join(["# Book\n\n```{toctree}", *pages, "```\n"])
        files = {
            "conf.py": CONF,
            "_toc.yml": "root: index\nentries:\n- file: book/04_masks\n",
            "index.md": toctree,
            "book/sources.yml": TABLE,
            "book/questions.yml": "[]",
            "book/sources.md": "# Sources\n\n<!-- items -->\n",
            "book/errata.md": "# Errata\n\n<!-- mistakes -->\n",
        }
        for name, text in files.items():
            (root / name).write_text(text, encoding="utf-8")
        self.write(cells)

    def write(self, cells: list[Any]) -> None:
        notebook: dict[str, Any] = {"cells": cells, "nbformat": 4, "nbformat_minor": 5}
        notebook["metadata"] = {"language_info": {"name": "python"}}
        path = self.root / "book/04_masks.ipynb"
        path.write_text(json.dumps(notebook), encoding="utf-8")

    def build(self) -> tuple[set[str], str]:
        """Build, and give the pages that were read and the warnings."""
        out, warnings, read = self.root / "_build", io.StringIO(), set[str]()
        with docutils_namespace():
            app = Sphinx(
                *(self.root, self.root, out, out / "trees", "html"),
                confoverrides={"nitpicky": True},
                status=None,
                warning=warnings,
            )
            app.connect("source-read", lambda app, docname, source: read.add(docname))
            app.build()
        return read, warnings.getvalue()

    def page(self, name: str) -> str:
        path = self.root / f"_build/book/{name}.html"
        return html.unescape(path.read_text(encoding="utf-8"))
