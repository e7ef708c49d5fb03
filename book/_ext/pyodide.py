"""Pyodide, the Python of the pages, as it is committed.

    python -m book._ext.pyodide

takes it anew from the package that `npm ci` puts into book/machine/node_modules. It is
committed (LZMA, which Python reads), so that the book is built without Node and without
a network; whoever builds without these files gets pages that don't run Python.
"""

from __future__ import annotations

import lzma
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from book._ext.toc import ROOT

FOLDER = ROOT / "book" / "machine" / "pyodide"
FILES = ("pyodide.js", "pyodide.asm.wasm", "python_stdlib.zip")


def path_of(name: str) -> Path:
    """Where one of the files is committed."""
    return FOLDER / f"{name}.xz"


def committed() -> dict[str, bytes] | None:
    """Return Pyodide's files by name, or None where one of them is missing."""
    if not all(path_of(name).exists() for name in FILES):
        return None
    return {name: lzma.decompress(path_of(name).read_bytes()) for name in FILES}


def packaged() -> dict[str, bytes]:
    """Make the same files of the npm package; needs Node."""
    with TemporaryDirectory() as place:
        subprocess.run(["node", FOLDER / "make.js", place], check=True)
        return {name: Path(place, name).read_bytes() for name in FILES}


def commit() -> None:
    """Write the files, compressed."""
    for name, content in packaged().items():
        path = path_of(name)
        path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    commit()
