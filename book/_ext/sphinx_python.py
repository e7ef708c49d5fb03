"""Sphinx extension: Python for the pages, as scripts that are loaded when it is wanted.

Pyodide and the book's own modules are packed (gzip) and written as base64, since a page
that is opened from a file may load scripts and nothing else. Each script calls
`machine_python`: list.js with the names and sizes of the others and of the files in
them, the others with a part of all bytes. See book/machine/yours/python.js.
"""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from pathlib import Path
from typing import Any
from zlib import crc32

from sphinx.application import Sphinx

from book._ext import pyodide
from transformer_book.yours.bundle import sources
from transformer_lib.files import write_text

LICENSE = "LICENSE.txt"
PART = 600_000  # letters of a script; a multiple of 4, so that each can be read alone


def available() -> bool:
    """Whether the pages can run Python: Pyodide's files are here."""
    return all(pyodide.path_of(name).exists() for name in pyodide.FILES)


def write_scripts(folder: Path) -> list[Path]:
    """Write all scripts into a folder, each whole or not at all; the list comes first.

    Returns no path where Pyodide's files are missing.
    """
    runtime = pyodide.committed()
    if runtime is None:
        return []
    own = {"sources.json": json.dumps(sources()).encode()}
    paths, scripts, files = [folder / "list.js"], [], []
    for stem, group in ("python", runtime), ("book", own):  # which changes more often
        packed = {name: gzip.compress(each, mtime=0) for name, each in group.items()}
        files += [(name, len(each)) for name, each in packed.items()]
        letters = base64.b64encode(b"".join(packed.values())).decode("ascii")
        for number, start in enumerate(range(0, len(letters), PART)):
            part = letters[start : start + PART]
            name = f"{stem}-{number:02}.js"
            paths.append(folder / name)
            write_script(paths[-1], part)
            version = f"{crc32(part.encode()):08x}"
            scripts.append((f"{name}?v={version}", len(part) * 3 // 4))
    write_script(paths[0], {"scripts": scripts, "files": files})
    shutil.copy(pyodide.FOLDER / LICENSE, folder)
    return paths


def write_script(path: Path, argument: Any) -> None:
    """Write a script that calls the page's function with something."""
    write_text(path, f"machine_python({json.dumps(argument)});\n")


def write_files(app: Sphinx) -> None:
    """Write the scripts beside the pages."""
    if app.builder.format == "html":
        write_scripts(Path(app.outdir) / "_static" / "yours")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("builder-inited", write_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
