"""A browser for the tests of the pages is found, installed, or asked for at once.

The machine is a fake one: nothing is on its PATH but scripts that note their call.
"""

import os
import subprocess
import time

import pytest

from book_tools import chromium
from book_tools.toc import ROOT

BROWSER = "echo Chromium 1"
PROXIES = ("HTTPS_PROXY", "https_proxy", "PLAYWRIGHT_DOWNLOAD_HOST")


class Machine:
    """Programs that do what they are told to, and a note of every call."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.own = folder / "playwright" / "chromium-1" / "linux" / "chrome"
        self.bin = folder / "bin"
        self.log = folder / "calls"
        self.monkeypatch = monkeypatch
        self.log.touch()
        monkeypatch.setenv("PATH", str(self.bin))
        monkeypatch.setenv("VENV", str(folder / "venv"))
        monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(folder / "playwright"))
        for name in ("BOOK_SKIP_BROWSER", *PROXIES):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(chromium, "APPLICATIONS", ())
        self.be(root=False, online=False)

    def be(self, *, root, online):
        """Choose who runs the tests, and whether there is a network."""
        self.monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
        if online:
            self.monkeypatch.setenv("HTTPS_PROXY", "http://localhost:1")
        else:
            self.monkeypatch.setattr(chromium, "DOWNLOADS", "localhost.invalid")

    def program(self, name, does="true"):
        """Put a program on the PATH."""
        return self.write(self.bin / name, f'echo "{name} $*" >> {self.log}; {does}')

    def write(self, path, does):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)
        return path

    def making(self, path):
        """The command of a script that makes a browser."""
        source = self.write(self.folder / "browser", BROWSER)
        return f"/bin/mkdir -p {path.parent}; /bin/cp {source} {path}"

    def playwright(self, does):
        """Let make set up an environment whose Playwright does this."""
        self.program("make")
        note = f'echo "python $*" >> {self.log}'
        self.write(self.folder / "venv" / "bin" / "python", f"{note}; {does}")

    def calls(self):
        return [
            line for line in self.log.read_text().splitlines() if line[:4] != "chro"
        ]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return Machine(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", ["chromium", "google-chrome"])
def test_a_browser_on_the_path_is_used(machine, name):
    path = machine.program(name, BROWSER)
    assert chromium.find_browser() == str(path)
    machine.program("apt-get")
    machine.be(root=True, online=True)
    assert chromium.main() == 0
    assert not any("apt-get" in call for call in machine.calls())


def test_a_browser_of_playwright_is_used(machine):
    machine.write(machine.own, BROWSER)
    assert chromium.find_browser() == str(machine.own)
    assert chromium.main() == 0


def test_what_does_not_start_is_no_browser(machine, capsys):
    machine.program("chromium", "echo 'install the snap'; exit 1")
    assert chromium.find_browser() is None
    assert chromium.main() == 1


def test_root_installs_by_apt(machine):
    machine.be(root=True, online=False)
    machine.program("apt-get", machine.making(machine.bin / "chromium"))
    assert chromium.main() == 0
    update, install = machine.calls()
    assert update.endswith(" update")
    assert " install chromium " in install


def test_sudo_without_a_password_installs_by_apt(machine):
    machine.program("sudo", 'shift; "$@"')
    machine.program("apt-get", machine.making(machine.bin / "chromium"))
    assert chromium.main() == 0
    assert machine.calls()[0] == "sudo -n true"
    assert machine.calls()[-2].startswith("sudo -n apt-get")


def test_without_a_right_to_install_and_a_network_it_stops_at_once(machine, capsys):
    machine.program("sudo", "exit 1")  # asks for a password
    machine.program("apt-get", machine.making(machine.bin / "chromium"))
    machine.playwright(machine.making(machine.own))
    start = time.perf_counter()
    assert chromium.main() == 1
    assert time.perf_counter() - start < 1
    assert machine.calls() == ["sudo -n true"]
    said = capsys.readouterr()
    assert "apt-get install chromium" in said.err
    assert "BOOK_SKIP_BROWSER=1" in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("root", "arguments"), [(True, "--with-deps chromium"), (False, "chromium")]
)
def test_without_apt_playwright_installs_its_own(machine, root, arguments):
    machine.be(root=root, online=True)
    machine.playwright(machine.making(machine.own))
    assert chromium.main() == 0
    ready, install = machine.calls()
    assert ready == "make --no-print-directory ready"
    assert install == f"python -m playwright install {arguments}"


def test_where_apt_brings_no_browser_playwright_does(machine):
    machine.be(root=True, online=True)
    signpost = f"printf '#!/bin/sh\\nexit 1\\n' > {machine.bin / 'chromium-browser'}"
    machine.program("apt-get", f"{signpost}; /bin/chmod +x {machine.bin}/*")
    machine.playwright(machine.making(machine.own))
    assert chromium.main() == 0
    assert chromium.find_browser() == str(machine.own)


def test_an_installation_that_brings_nothing_is_told(machine, capsys):
    machine.be(root=True, online=True)
    machine.program("apt-get", "exit 100")
    machine.playwright("exit 1")
    assert chromium.main() == 1
    assert len(machine.calls()) == 4
    assert "there is none on this machine" in capsys.readouterr().err


def test_the_browser_can_be_left_out(machine, monkeypatch):
    monkeypatch.setenv("BOOK_SKIP_BROWSER", "1")
    assert chromium.main() == 0
    assert machine.calls() == []


def test_make_test_looks_for_a_browser_before_all_else():
    mine = {k: v for k, v in os.environ.items() if "MAKE" not in k and k != "MFLAGS"}
    done = subprocess.run(
        ["make", "-n", "test"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=mine,  # not those of the make that runs this test
    )
    first, *others = done.stdout.splitlines()
    assert first.endswith("-m book_tools.chromium")
    assert any("pip install" in line or "ruff" in line for line in others)
