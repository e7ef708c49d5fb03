"""Take pictures of built pages, wide and narrow, light and dark.

python -m book_tools.screenshots pictures book/01_embeddings book/index#part
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from playwright.sync_api import sync_playwright

from book_tools.browser import find_browser
from book_tools.page_rules import visit
from book_tools.toc import ROOT


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where to write to")
    parser.add_argument("pages", nargs="+", help="after a # the place to show")
    options = parser.parse_args(arguments)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser())
        for width, scheme in product((1280, 390), ("light", "dark")):
            page = browser.new_page(
                viewport={"width": width, "height": 900},
                color_scheme=scheme,
                reduced_motion="reduce",
            )
            for name, _, anchor in (name.partition("#") for name in options.pages):
                visit(page, (ROOT / "_build" / "html" / f"{name}.html").as_uri())
                if anchor:  # only now: drawing charts and formulas moves what follows
                    page.locator(f"[id='{anchor}']").scroll_into_view_if_needed()
                path = options.folder / f"{Path(name).name}-{width}-{scheme}.png"
                page.screenshot(path=path, full_page=not anchor)
                print(path)


if __name__ == "__main__":
    main()
