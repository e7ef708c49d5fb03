"""Print built pages through Chromium, each as one PDF.

    make pdf                                        every page, into _build/pdf
    python -m book_tools.pdf book/04_masks          one page

What is folded is open on paper, charts are their pictures, and the outline comes from
the headings.
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from book_tools.browser import find_browser
from book_tools.page_rules import visit
from book_tools.toc import ROOT, pages

SITE, FOLDER = ROOT / "_build" / "html", ROOT / "_build" / "pdf"
MARGIN = {"top": "17mm", "bottom": "17mm", "left": "16mm", "right": "16mm"}


def print_pages(names: list[str]) -> None:
    """Write a PDF for each page; a name is such as "book/04_masks"."""
    with sync_playwright() as playwright:
        options = {"args": ["--no-sandbox", "--disable-gpu"]}
        browser = playwright.chromium.launch(executable_path=find_browser(), **options)
        page = browser.new_page(color_scheme="light", reduced_motion="reduce")
        for name in names:
            visit(page, (SITE / f"{name}.html").resolve().as_uri())
            path = FOLDER / f"{Path(name).name}.pdf"
            page.pdf(path=path, format="A4", outline=True, tagged=True, margin=MARGIN)
            print(path)


if __name__ == "__main__":
    print_pages(sys.argv[1:] or pages())
