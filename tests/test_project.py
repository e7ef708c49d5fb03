"""What the files about the project say agrees with the project."""

import re
import sys
import tomllib
from fnmatch import fnmatch

import pytest

from book_tools.toc import ROOT

MODULES = sorted((ROOT / "transformer_lib").rglob("*.py"))
PINNED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def pins(name):
    return {package.lower(): version for package, version in PINNED.findall(text(name))}


def test_one_version():
    [version] = re.findall(r'^version = "(.*)"', text("pyproject.toml"), re.MULTILINE)
    assert f"\nversion: {version}\n" in text("CITATION.cff")
    assert (
        re.search(r"^## (.*)", text("CHANGELOG.md"), re.MULTILINE).group(1) == version
    )


@pytest.mark.parametrize("name", ["requirements.txt", "constraints.txt"])
def test_every_requirement_is_pinned(name):
    lines = [line.partition("#")[0].strip() for line in text(name).splitlines()]
    loose = [line for line in lines if line and not PINNED.match(line)]
    assert loose in ([], ["-c constraints.txt"])


def test_no_package_is_pinned_twice():
    assert not set(pins("requirements.txt")) & set(pins("constraints.txt"))


def test_the_library_gives_lower_bounds_that_the_pins_satisfy():
    project = tomllib.loads(text("pyproject.toml"))["project"]
    pinned = pins("requirements.txt")
    for dependency in project["dependencies"]:
        name, bound = dependency.split(">=")
        assert [int(part) for part in bound.split(".")] <= [
            int(part) for part in pinned[name].split(".")[:3]
        ]


def test_the_packages_installed_here_are_the_pinned_ones():
    from importlib.metadata import version

    found = {name: version(name).partition("+")[0] for name in pins("requirements.txt")}
    assert found == pins("requirements.txt"), f"run make book; this is {sys.prefix}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_library_modules_are_short_and_on_the_map(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 250, f"{path.name}: {lines} lines, at most 250"
    if path.parent.name == "transformer_lib" and path.name != "__init__.py":
        named = re.findall(r"[\w*]+\.py", text("README.md"))
        assert any(fnmatch(path.name, name) for name in named), "not in README.md"


def test_make_targets_that_the_pages_name_exist():
    targets = set(re.findall(r"^([a-z]+):", text("Makefile"), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        named = re.findall(r"`make ([a-z]+)|^make ([a-z]+)", text(name), re.MULTILINE)
        assert {"".join(groups) for groups in named} <= targets, name
