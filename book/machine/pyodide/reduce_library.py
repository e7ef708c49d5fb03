"""The standard library of the pages' Python: make.js runs this there.

What left_out.txt names is left out. The rest is compiled: without that,
Python takes twice as long to start. Docstrings and asserts go.
"""

import importlib._bootstrap_external as importing
import zipfile
from fnmatch import fnmatch
from pathlib import Path

left_out, kept_all_the_same = [], []
for line in (
    Path("/left_out.txt").read_text(encoding="utf-8").splitlines()
):
    if line.startswith("+"):
        kept_all_the_same += line[1:].split()
    elif not line.startswith("#"):
        left_out += line.split()


def matches(path: str, patterns: list[str]) -> bool:
    """Whether one of the patterns stands for a file."""
    return any(fnmatch(path, pattern) for pattern in patterns)


def compiled(text: bytes, path: str) -> bytes:
    """Compile a module as Python keeps it, and never compares it."""
    code = compile(text, path, "exec", dont_inherit=True, optimize=2)
    return importing._code_to_hash_pyc(code, bytes(8), checked=False)


with (
    zipfile.ZipFile("/given.zip") as given,
    zipfile.ZipFile("/kept.zip", "w") as kept,
):
    for path in sorted(given.namelist()):
        if matches(path, left_out) and not matches(
            path, kept_all_the_same
        ):
            continue
        if path.endswith(".py"):
            entry = zipfile.ZipInfo(f"{path}c")
            kept.writestr(entry, compiled(given.read(path), path))
