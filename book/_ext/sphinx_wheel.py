"""Sphinx extension: the library beside the pages, for notebooks that fetch it there.

Every build puts a wheel into the folder of the pages, where the notebooks are already.
If it is known where the pages will be published, these notebooks install the wheel from
there: one folder of static files is the whole book. The address is in the variable
BOOK_URL, or in one that a host of pages sets by itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from sphinx.application import Sphinx

from book._ext import repository
from book._ext.toc import ROOT

# Read the Docs, Cloudflare and Netlify set the other three.
VARIABLES = ("BOOK_URL", "READTHEDOCS_CANONICAL_URL", "CF_PAGES_URL", "DEPLOY_URL")
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "transformer_lib",
           "transformer_book")  # fmt: skip
BOOTSTRAP = """\
try:
    import transformer_lib
except ModuleNotFoundError:  # fetch the library once, from beside the pages
    %pip install -q "transformer-lib[book] @ {wheel}\""""


def build_wheel(folder: Path) -> Path:
    """Put the wheel of the library as it is into a folder, instead of an older one."""
    for old in folder.glob("transformer_lib-*.whl"):
        old.unlink()
    with TemporaryDirectory() as place:
        for name in SOURCES:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, Path(place, name))
        command = [sys.executable, "-m", "pip", "wheel", place, "--wheel-dir", folder]
        options = ["--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*command, *options], check=True)
    [wheel] = folder.glob("transformer_lib-*.whl")
    return wheel


def publish(folder: Path, url: str | None) -> None:
    """Make the wheel; let the notebooks install it if the pages have an address."""
    wheel = build_wheel(folder)
    if not url:
        return
    old = repository.bootstrap(repository.address())
    new = BOOTSTRAP.format(wheel=f"{url.rstrip('/')}/{wheel.name}")
    for path in (folder / "_sources" / "book").glob("*.ipynb"):
        notebook = nbformat.read(ROOT / "book" / path.name, as_version=4)
        for cell in notebook.cells:
            if cell.source == old:
                cell.source = new
        nbformat.write(notebook, path)


def when_built(app: Sphinx, error: Exception | None) -> None:
    """Publish what `make book` has built."""
    if not error and app.builder.format == "html":
        addresses = [os.environ.get(name) for name in VARIABLES]
        publish(Path(app.outdir), next(filter(None, addresses), None))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("build-finished", when_built)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
