"""Take pictures of built pages, wide and narrow, light and dark.

python -m book_tools.screenshots book/01_embeddings book/index --into pictures
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser

from book_tools import browser

SITE = Path("_build/html")
WIDTHS = (1280, 390)


def take(
    window: Browser,
    url: str,
    path: Path,
    *,
    size: tuple[int, int],
    dark: bool,
    whole: bool,
) -> None:
    """Write one picture of one page.

    Args:
        window: The running browser.
        url: Address of the page, and after a # the place to show.
        path: File to write, PNG.
        size: Width and height of the window in pixels.
        dark: Whether the reader's system asks for dark colors.
        whole: The whole page, or only what the window shows first.
    """
    width, height = size
    with browser.open_context(window, width=width, height=height, dark=dark) as opened:
        page = opened[0].new_page()
        address, _, place = url.partition("#")
        browser.visit(page, address)
        if place:  # only now: drawing charts and formulas moves places
            page.locator(f"[id='{place}']").evaluate("(part) => part.scrollIntoView()")
        page.screenshot(path=path, full_page=whole)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", help="pages, such as book/index")
    parser.add_argument("--into", type=Path, required=True, help="folder to write to")
    parser.add_argument("--site", type=Path, default=SITE, help="the built site")
    parser.add_argument("--width", type=int, action="append", help="default: both")
    parser.add_argument("--height", type=int, default=900, help="of the window")
    parser.add_argument("--theme", choices=["light", "dark"], action="append")
    parser.add_argument("--top", action="store_true", help="only the first screen")
    options = parser.parse_args(arguments)
    options.into.mkdir(parents=True, exist_ok=True)
    with browser.serve(options.site) as base, browser.chromium() as window:
        for page in options.pages:
            for width in options.width or WIDTHS:
                for theme in options.theme or ("light", "dark"):
                    path, _, place = page.partition("#")
                    name = f"{Path(path).name}-{width}-{theme}.png"
                    take(
                        window,
                        f"{base}/{path}.html#{place}",
                        options.into / name,
                        size=(width, options.height),
                        dark=theme == "dark",
                        whole=not options.top,
                    )
                    print(options.into / name)


if __name__ == "__main__":
    main()
