"""Sphinx extension: what a machine shows at first where code is written.

The places in chapters where a reader writes a part of the model have a machine that
comes when something is run. Its first picture is the stored sentence of the front page:
a script beside the model's own has it, with what `sphinx_outputs` writes into a page.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
from sphinx.application import Sphinx

from book._ext.sphinx_outputs import MACHINE, settings_of
from book._ext.toc import ROOT
from transformer_lib.files import write_text

PAGE = ROOT / "book" / "index.ipynb"
VIEW = "view.js"


def stored_machine(path: Path) -> dict[str, Any]:
    """Return the first machine that a notebook stores.

    Raises:
        ValueError: it stores none.
    """
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            if MACHINE in output.get("data", {}):
                return output["data"][MACHINE]
    raise ValueError(f"{path} stores no machine")


def write_view(app: Sphinx) -> None:
    """Write the script; its addresses are seen from its own folder."""
    stored = stored_machine(PAGE)
    settings = settings_of(app, {**stored, "options": {}}, root="../../")
    view = {**settings, "stored": stored["stored"]}
    text = json.dumps(view, ensure_ascii=False, separators=(",", ":"))
    path = Path(app.outdir) / "_static" / "machine" / VIEW
    write_text(path, f"window.machine_view={text};\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("builder-inited", write_view, priority=600)  # the model is written
    return {"parallel_read_safe": True, "parallel_write_safe": True}
