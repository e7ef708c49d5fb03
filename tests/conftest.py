"""A browser for the tests that look at pages: cut off from the network, and watched."""

import pytest
from built_site import SITE
from file_server import serving_folder

from book_tools.chromium import HELP, find_browser


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    if not (path := find_browser()):
        pytest.fail(HELP)
    return {
        **browser_type_launch_args,
        "executable_path": path,
        "args": ["--no-sandbox", "--disable-gpu"],
    }


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

    def note_console(message):
        if message.type in ("error", "warning"):
            trouble.append(f"says on the console {message.text}")

    page.on("request", note_request)
    page.on("requestfailed", lambda request: trouble.append(f"misses {request.url}"))
    page.on("console", note_console)
    page.on("pageerror", lambda error: trouble.append(f"throws {error}"))
    yield page
    assert trouble == []
