"""Make sure that there is a Chromium or Chrome for the tests of the pages.

    python -m book_tools.chromium

Run before anything is installed: it needs nothing but Python. What it finds is used; if
it finds none, it installs one: by apt-get where it may (as root, or by sudo without a
password), else by Playwright, whose browser lies in the folder of the user. Where
neither can work, it says at once what to do. `BOOK_SKIP_BROWSER=1` leaves all of this,
and the tests, out.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
APPLICATIONS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
# Where Playwright keeps its own: one folder for each version.
KEPT = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
# Chromium, and what Playwright's driver is linked to.
PACKAGES = ("chromium", "libatomic1", "fonts-dejavu", "fonts-liberation")
DOWNLOADS = "cdn.playwright.dev"
HELP = """\
The tests of the pages need Chromium or Chrome, and there is none on this machine.
Install one, for example by one of these, and try again:
  sudo apt-get install chromium          Debian, Ubuntu
  brew install --cask chromium           macOS
Or leave these tests out: BOOK_SKIP_BROWSER=1 make test"""


def runs(path: str | Path) -> bool:
    """Whether this is a browser that starts; some systems install a mere signpost."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def find_browser() -> str | None:
    """Return the path of Chromium or Chrome on this machine, or None."""
    kept = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", f"{KEPT}/ms-playwright"))
    own = sorted(kept.expanduser().glob("chromium-*/*/chrome"), reverse=True)
    own += sorted(kept.expanduser().glob("chromium-*/*/*.app/Contents/MacOS/*"))
    installed = [path for name in NAMES if (path := shutil.which(name))]
    for path in (*installed, *APPLICATIONS, *own):
        if runs(path):
            return str(path)
    return None


def as_root() -> list[str] | None:
    """How to run a command as root: as it is, by sudo, or (None) not at all."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return []
    asks = ["sudo", "-n", "true"]
    if (
        shutil.which("sudo")
        and not subprocess.run(asks, capture_output=True).returncode
    ):
        return ["sudo", "-n"]
    return None


def can_download() -> bool:
    """Whether Playwright's browsers can be fetched, as far as one second tells."""
    proxies = ("HTTPS_PROXY", "https_proxy", "PLAYWRIGHT_DOWNLOAD_HOST")
    if any(os.environ.get(name) for name in proxies):
        return True
    try:
        socket.create_connection((DOWNLOADS, 443), timeout=0.7).close()
    except OSError:
        return False
    return True


def install_by_apt(root: list[str]) -> None:
    """Install the system's Chromium; whether it came is seen afterwards."""
    apt = [*root, "apt-get", "-qq", "-y", "--no-install-recommends"]
    for step in (["update"], ["install", *PACKAGES]):
        subprocess.run([*apt, *step], stdin=subprocess.DEVNULL, check=False)


def install_by_playwright(root: list[str] | None) -> None:
    """Let Playwright fetch its Chromium, with what it is linked to where it may."""
    subprocess.run(["make", "--no-print-directory", "ready"], check=True)
    python = Path(os.environ.get("VENV", ".venv")) / "bin" / "python"
    dependencies = [] if root is None else ["--with-deps"]
    command = [python, "-m", "playwright", "install", *dependencies, "chromium"]
    subprocess.run(command, check=False)


def main() -> int:
    """Find or install a browser; the exit status is 1 if there is none in the end."""
    if os.environ.get("BOOK_SKIP_BROWSER") == "1" or find_browser():
        return 0
    root = as_root()
    by_apt = shutil.which("apt-get") is not None and root is not None
    by_playwright = can_download()
    if by_apt or by_playwright:
        print("No Chromium or Chrome on this machine: installing one.", flush=True)
    if by_apt:
        install_by_apt(root)
    if by_playwright and not find_browser():
        install_by_playwright(root)
    if not (by_apt or by_playwright) or not find_browser():
        print(HELP, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
