"""What an environment gets that installs the project: the library, and nothing else."""

import os
import shutil
import subprocess
import sys
import zipfile

import nbformat
import pytest

from book_tools.toc import ROOT

SOURCES = ["pyproject.toml", "README.md", "LICENSE", "transformer_lib", "book_tools"]

# Neither the tools of this book nor the package that draws its charts can be imported.
BUILD_ANOTHER_BOOK = """
import sys
sys.modules["book_tools"] = sys.modules["vl_convert"] = None
from importlib.metadata import distribution
from sphinx.application import Sphinx
print(distribution("transformer-lib").locate_file(""))
folder = sys.argv[1]
settings = {"extensions": ["myst_nb"], "nb_execution_mode": "off"}
app = Sphinx(folder, None, f"{folder}/out", f"{folder}/trees", "html", settings)
app.build()
sys.exit(app.statuscode)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the working tree, built in a copy: a build leaves files behind."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    flags = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", folder]
    subprocess.run([sys.executable, "-m", "pip", "wheel", source, *flags], check=True)
    [path] = folder.glob("*.whl")
    return path


def test_the_wheel_holds_the_library_with_its_data_and_nothing_else(wheel):
    files = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].partition("-")[0] for name in files} == {
        "transformer_lib"
    }
    assert not [name for name in files if name.endswith("entry_points.txt")]
    suffixes = {name.rpartition(".")[2] for name in files}
    assert suffixes >= {"py", "json", "safetensors"}


def test_another_book_builds_where_the_library_is_installed(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    chart = {"application/vnd.vegalite.v5+json": {}, "text/plain": "a chart"}
    output = nbformat.v4.new_output("display_data", data=chart)
    cell = nbformat.v4.new_code_cell("show()", outputs=[output])
    title = nbformat.v4.new_markdown_cell("# Another book")
    (tmp_path / "book").mkdir()
    other = nbformat.v4.new_notebook(cells=[title, cell])
    nbformat.write(other, tmp_path / "book" / "index.ipynb")
    result = subprocess.run(
        [sys.executable, "-c", BUILD_ANOTHER_BOOK, tmp_path / "book"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(str(tmp_path / "installed"))
    assert "a chart" in (tmp_path / "book/out/index.html").read_text(encoding="utf-8")
