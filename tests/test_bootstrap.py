"""A chapter on its own, as in Colab: its first cell fetches the library.

A fresh environment has torch and the other packages, but neither this project nor
what only its pages need. It has no package index either, so whatever the library
requires must be there already: nothing replaces the torch that Colab ships.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from file_server import serving_folder

from book._ext.notebooks import KERNEL_ENV
from book._ext.repository import address
from book._ext.sphinx_wheel import SOURCES, publish
from book._ext.toc import ROOT, chapters

NOT_IN_COLAB = ("transformer_", "__editable__", "vl_convert", "jupyter_book")

RUN = """
import sys
import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
where = "import transformer_lib; print(transformer_lib.__file__)"
notebook.cells.append(nbformat.v4.new_code_cell(where))
manager = AsyncKernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
NotebookClient(notebook, km=manager, timeout=300).execute()
nbformat.write(notebook, sys.argv[1])
"""


def make_clone(folder):
    """A Git repository of the library as it is in the working tree."""
    folder.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    author = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return f"file://localhost{folder}"  # older pips want a host


def make_environment(folder):
    """A fresh environment that sees every package here but those not in Colab."""
    packages = folder / "colab"
    packages.mkdir(parents=True)
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(NOT_IN_COLAB):
            (packages / path.name).symlink_to(path)
    venv.create(folder / "venv", symlinks=True, with_pip=False)
    [site] = (folder / "venv").glob("lib/python*/site-packages")
    (site / "colab.pth").write_text(f"{packages}\n")
    return folder / "venv" / "bin" / "python", site


@pytest.fixture
def colab(tmp_path):
    folder = tmp_path
    python, site = make_environment(folder / "environment")
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        **KERNEL_ENV,
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this name as "isolation: no"
        "IPYTHONDIR": str(folder / "ipython"),
    }

    def run(*arguments, cwd=folder):
        how = {"env": environment, "capture_output": True, "text": True}
        return subprocess.run([python, *arguments], cwd=cwd, **how)

    return run, site


@contextmanager
def from_the_repository(folder):
    """Chapter 1 as it is stored; chapter 0 trains."""
    clone = make_clone(folder)
    text = chapters()[1].read_text(encoding="utf-8")
    yield text.replace(f'book = \\"{address()}', f'book = \\"{clone}')


@contextmanager
def from_the_pages(folder):
    """Chapter 1 as it lies beside the pages, which a server shows."""
    beside = folder / "_sources" / "book"
    beside.mkdir(parents=True)
    shutil.copy(chapters()[1], beside)
    with serving_folder(folder) as url:
        publish(folder, url)
        yield (beside / chapters()[1].name).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("git"), reason="pip fetches the library with git")
@pytest.mark.skipif(sys.platform == "win32", reason="links packages by symlink")
@pytest.mark.parametrize("source", [from_the_repository, from_the_pages])
def test_a_chapter_alone_fetches_the_library_and_runs(colab, tmp_path, source):
    run, site = colab
    missing = run("-c", "import torch, transformer_lib")
    assert "No module named 'transformer_lib'" in missing.stderr

    path = tmp_path / "chapter.ipynb"
    with source(tmp_path / "source") as text:
        path.write_text(text)
        result = run("-c", RUN, path.name)
    assert result.returncode == 0, result.stderr[-3000:]

    cells = nbformat.read(path, as_version=4).cells
    assert Path(cells[-1].outputs[0].text.strip()).is_relative_to(site)
    assert sys.prefix not in cells[-1].outputs[0].text
    assert all(cell.execution_count for cell in cells if cell.cell_type == "code")
