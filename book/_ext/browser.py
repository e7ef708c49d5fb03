"""Find a Chromium or Chrome for the tests of the pages, or install one.

    python -m book._ext.browser

Needs nothing but Python. `BOOK_SKIP_BROWSER=1` leaves this, and the tests, out.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
APPLICATIONS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
HELP = """\
The tests of the pages need Chromium or Chrome. Install one and try again, for example
with `sudo apt-get install chromium` or `brew install --cask chromium`. Or leave these
tests out: BOOK_SKIP_BROWSER=1 make test"""


def find_browser() -> str | None:
    """Return the path of this system's browser; None stands for Playwright's own."""
    paths = [*map(shutil.which, NAMES), *filter(os.path.exists, APPLICATIONS)]
    for path in filter(None, paths):  # some systems install a mere signpost
        if subprocess.run([path, "--version"], capture_output=True).returncode == 0:
            return path
    return None


def install() -> int:
    """Install one: the system's, else Playwright's; the exit status is 0 if it came."""
    print("No Chromium or Chrome on this machine: installing one.", flush=True)
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if all(map(shutil.which, ["apt-get", *root[:1]])):
        packages = ["--no-install-recommends", "chromium", "libatomic1"]
        for step in (["update"], ["install", *packages]):
            subprocess.run([*root, "apt-get", "-qq", "-y", *step], check=False)
    if find_browser():
        return 0
    python = Path(os.environ.get("VENV", ".venv"), "bin", "python")
    ready = ["make", "--no-print-directory", "ready-to-test"]
    command = [python, "-m", "playwright", "install", "--with-deps", "chromium"]
    status = subprocess.call(ready) or subprocess.call(command)
    if status:
        print(HELP, file=sys.stderr)
    return status


if __name__ == "__main__":
    there = os.environ.get("BOOK_SKIP_BROWSER") == "1" or find_browser()
    sys.exit(0 if there else install())
