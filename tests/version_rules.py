"""What holds the lists of versions together; each rule returns its complaints.

pyproject.toml says what is needed, and from which version on. Of the other lists,
`.github/constraints/lowest.txt` has just these versions, the requirements have the
exact ones behind the stored outputs, and the locks have these with all hashes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

LOWEST = ".github/constraints/lowest.txt"
LOCKED = {
    "requirements.txt": "requirements.lock",
    "requirements-test.txt": "requirements-test.lock",
}
NOT_LOCKED = {"torch"}  # its build for the CPU is on another index, see the Makefile

Versions = dict[str, Version]


def lower_bounds(root: Path, *extras: str) -> Versions:
    """The lower bound of every dependency, and of those that extras add."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    needed = [*project["dependencies"]]
    for extra in extras:
        needed += project["optional-dependencies"][extra]
    bounds = {}
    for text in needed:
        requirement = Requirement(text)
        if requirement.name != project["name"]:  # an extra that holds another one
            [bound] = requirement.specifier
            assert bound.operator == ">=", text
            bounds[canonicalize_name(requirement.name)] = Version(bound.version)
    return bounds


def pins(path: Path) -> Versions:
    """The packages of a list and their exact versions."""
    lines = re.findall(r"^([\w.-]+)==([^\s;]+)", path.read_text("utf-8"), re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in lines}


def lowest(root: Path) -> Iterator[str]:
    """The lowest versions that the chapters are run with are the lower bounds."""
    bounds, tested = lower_bounds(root, "train", "book"), pins(root / LOWEST)
    for name in sorted(bounds.keys() | tested.keys()):
        bound, version = bounds.get(name), tested.get(name)
        if bound != version:
            yield f"{name}: from {bound} on, but {version} in {LOWEST}"


def exact(root: Path) -> Iterator[str]:
    """Every dependency has an exact version, at or above its lower bound."""
    chosen = pins(root / "requirements.txt")
    for name, bound in lower_bounds(root, "train", "book", "export").items():
        if name not in chosen:
            yield f"{name} is not in requirements.txt"
        elif chosen[name] < bound:
            yield f"{name}: {chosen[name]} in requirements.txt, but from {bound} on"


def locks(root: Path) -> Iterator[str]:
    """A lock holds its requirements, and both locks agree."""
    for name, lock in LOCKED.items():
        locked = pins(root / lock)
        for package, version in pins(root / name).items():
            if package not in NOT_LOCKED and locked.get(package) != version:
                yield f"{package}: {version} in {name}, {locked.get(package)} in {lock}"
    first, second = (pins(root / lock) for lock in LOCKED.values())
    for package in sorted(first.keys() & second.keys()):
        if first[package] != second[package]:
            yield f"{package}: {first[package]} in one lock, not {second[package]}"


def hashes(root: Path) -> Iterator[str]:
    """A lock names no place, and has a hash for each package."""
    for lock in LOCKED.values():
        text = (root / lock).read_text(encoding="utf-8")
        if "://" in text:
            yield f"{lock} names a place"
        for entry in re.split(r"\n(?=\w)", text)[1:]:
            if "--hash=sha256:" not in entry:
                yield f"{lock} has no hash for {entry.split()[0]}"


RULES = (lowest, exact, locks, hashes)


def complaints(root: Path) -> list[str]:
    """What all rules say of the lists in a folder."""
    return [text for rule in RULES for text in rule(root)]
