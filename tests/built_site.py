"""The built pages that tests read: where they are, and whether they are current."""

from __future__ import annotations

import os
from pathlib import Path

from book._ext.sphinx_book import STAMP
from book._ext.toc import ROOT

SITE = Path(os.environ.get("BOOK_SITE", ROOT / "_build" / "html"))
SOURCES = ["_config.yml", "_toc.yml", "book/**/*", "transformer_book/**/*"]


def stale(site: Path, root: Path) -> str | None:
    """Say why the pages do not stand for their sources, if they do not."""
    stamp = site / STAMP
    if not stamp.exists():
        return f"no pages without warnings in {site}: run make book first"
    files = (path for pattern in SOURCES for path in root.glob(pattern))
    for path in files:
        name = path.relative_to(root)
        if any(part.startswith((".", "__pycache__")) for part in name.parts):
            continue  # what linters and Python keep
        if name.is_relative_to("book/machine") and path.suffix not in (".gz", ".xz"):
            continue  # the pages have what is made of it, and packed
        if path.is_file() and path.stat().st_mtime > stamp.stat().st_mtime:
            return f"{name} is newer: run make book first"
    return None
