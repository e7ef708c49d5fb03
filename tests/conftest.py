"""A browser for the tests that look at pages: cut off from the network, and watched."""

import os
from pathlib import Path

import matplotlib
import pytest
from built_site import SITE, stale
from file_server import serving_folder

from book._ext.browser import find_browser
from book._ext.toc import ROOT

# The fonts that a page meets beside its own: Matplotlib's, the same on every machine.
FONTS = """<fontconfig><dir>{folder}</dir><cachedir>{cache}</cachedir><selectfont>
<rejectfont><glob>*</glob></rejectfont><acceptfont><glob>*/DejaVu*</glob></acceptfont>
</selectfont></fontconfig>"""


@pytest.fixture(scope="session")
def browser_wanted():
    if os.environ.get("BOOK_SKIP_BROWSER") == "1":
        pytest.skip("BOOK_SKIP_BROWSER is set")


@pytest.fixture(scope="session")
def current_pages():
    if reason := stale(SITE, ROOT):
        pytest.fail(reason)


@pytest.fixture(scope="session")
def browser(browser_wanted, browser_type, tmp_path_factory):
    cache = tmp_path_factory.mktemp("fonts")
    folder = Path(matplotlib.get_data_path(), "fonts", "ttf")
    settings = cache / "fonts.conf"
    settings.write_text(FONTS.format(folder=folder, cache=cache))
    with browser_type.launch(
        executable_path=find_browser(),
        args=["--no-sandbox", "--disable-gpu"],
        env={**os.environ, "FONTCONFIG_FILE": str(settings)},
    ) as browser:
        yield browser


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args):
    return {**browser_context_args, "offline": True, "reduced_motion": "reduce"}


@pytest.fixture(scope="session")
def pages_server():
    """The address of the built pages on a web server of this machine."""
    with serving_folder(SITE) as address:
        yield address


@pytest.fixture
def trouble():
    """What went wrong while a page was open."""
    return []


@pytest.fixture
def page(page, trouble):
    """A page cut off from the network; at the end nothing may have gone wrong on it."""

    def note_request(request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            trouble.append(f"asks the network for {request.url}")

    def note_failure(request):
        if request.failure != "net::ERR_ABORTED":  # the page was left meanwhile
            trouble.append(f"misses {request.url}")

    def note_console(message):
        if message.type in ("error", "warning"):
            trouble.append(f"says on the console {message.text}")

    page.on("request", note_request)
    page.on("requestfailed", note_failure)
    page.on("console", note_console)
    page.on("pageerror", lambda error: trouble.append(f"throws {error}"))
    yield page
    assert trouble == []
