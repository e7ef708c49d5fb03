"""Print built pages through Chromium, each as one PDF.

    make pdf                                        every page, into _build/pdf
    python -m book._ext.pdf book/04_masks          one page

What is folded is open on paper, charts are their pictures, and the outline comes from
the headings.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from book._ext.browser import find_browser
from book._ext.page_rules import visit
from book._ext.toc import ROOT, pages

SITE, FOLDER = ROOT / "_build" / "html", ROOT / "_build" / "pdf"
MARGIN = {"top": "17mm", "bottom": "17mm", "left": "16mm", "right": "16mm"}


def print_files(files: dict[Path, Path], **layout: Any) -> None:
    """Print pages, each into its PDF; the layout is that of Playwright's `Page.pdf`."""
    with sync_playwright() as playwright:
        options = {"args": ["--no-sandbox", "--disable-gpu"]}
        browser = playwright.chromium.launch(executable_path=find_browser(), **options)
        page = browser.new_page(color_scheme="light", reduced_motion="reduce")
        for file, path in files.items():
            visit(page, file.resolve().as_uri())
            page.pdf(path=path, outline=True, tagged=True, **layout)
            print(path)


if __name__ == "__main__":
    names = sys.argv[1:] or pages()
    files = {SITE / f"{name}.html": FOLDER / f"{Path(name).name}.pdf" for name in names}
    print_files(files, format="A4", margin=MARGIN)
