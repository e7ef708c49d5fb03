"""The built pages in a real browser that cannot reach the network.

`tests/test_site.py` and `book_tools/screenshots.py` stand on the same four pieces:
find Chromium, serve a folder on this machine, open a page with every other address
refused, and wait until mathematics and charts are drawn.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    Route,
    sync_playwright,
)
from playwright.sync_api import TimeoutError as TookTooLong

NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT_MS = 20_000
CHART_MS = 10_000

# Everything that is drawn after the page has loaded.
DRAWN = """
async () => {
  await document.fonts.ready;
  if (document.querySelector(".math") && window.MathJax)
    await MathJax.startup.promise;
}
"""
CHARTS_DRAWN = """
() => !document.querySelector("div.vega-chart:not(.vega-drawn)")
"""


def find_browser() -> str:
    """Return the path of Chromium or Chrome on this machine.

    Raises:
        FileNotFoundError: If there is none; the message says how to install one.
    """
    for name in NAMES:
        if path := shutil.which(name):
            return path
    raise FileNotFoundError(
        "no Chromium on this machine. Install one, for example with "
        "'apt-get install chromium fonts-dejavu' or 'brew install --cask chromium', "
        "or set BOOK_SKIP_BROWSER=1 to leave the browser tests out."
    )


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Say nothing: the pages' own errors are recorded in the browser."""


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on a free local port; yields the address without a final slash."""
    handler = partial(_QuietHandler, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a headless browser; it is closed at the end of the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Trouble:
    """What went wrong while pages were open."""

    outside: list[str] = field(default_factory=list)  # addresses off this machine
    failed: list[str] = field(default_factory=list)  # not loaded, or status >= 400
    console: list[str] = field(default_factory=list)  # errors and warnings
    errors: list[str] = field(default_factory=list)  # exceptions nobody caught

    def clear(self) -> None:
        """Forget all of it."""
        for kind in (self.outside, self.failed, self.console, self.errors):
            kind.clear()

    def listed(self) -> list[str]:
        """Every complaint as one line, the first of each kind first."""
        kinds = {
            "asks the network for": self.outside,
            "could not load": self.failed,
            "says on the console": self.console,
            "throws": self.errors,
        }
        return [f"{kind} {text}" for kind, texts in kinds.items() for text in texts]


def watch(context: BrowserContext, trouble: Trouble) -> None:
    """Refuse every address that is not local, and record all that goes wrong."""

    def is_local(url: str) -> bool:
        local = ("http://127.0.0.1:", "data:", "blob:", "about:", "file:")
        return url.startswith(local)

    def refuse(route: Route) -> None:
        trouble.outside.append(route.request.url)
        route.abort()

    def on_failed(request: Request) -> None:
        if is_local(request.url):
            trouble.failed.append(f"{request.url} ({request.failure})")

    def on_response(response: Response) -> None:
        if response.status >= 400:
            trouble.failed.append(f"{response.url} (status {response.status})")

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            trouble.console.append(message.text)

    context.route(lambda url: not is_local(url), refuse)
    context.on("requestfailed", on_failed)
    context.on("response", on_response)
    context.on("console", on_console)
    context.on("weberror", lambda error: trouble.errors.append(str(error.error)))


@contextmanager
def open_context(
    browser: Browser, *, width: int = 1280, height: int = 900, dark: bool = False
) -> Iterator[tuple[BrowserContext, Trouble]]:
    """Open a window of one size and color scheme, cut off from the network."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(TIMEOUT_MS)
    trouble = Trouble()
    watch(context, trouble)
    try:
        yield context, trouble
    finally:
        context.close()


def visit(page: Page, url: str) -> None:
    """Go to a page and wait until its mathematics and charts are drawn."""
    page.goto(url)
    page.evaluate(DRAWN)
    with suppress(TookTooLong):  # the rules of the page tell what is missing
        page.wait_for_function(CHARTS_DRAWN, timeout=CHART_MS)
