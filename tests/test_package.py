"""The library as others install it: what it needs, what it brings, what it loads."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions

import nbformat
import pytest

from book._ext.notebook_parts import code_cells
from book._ext.toc import ROOT

PACKAGES = ("transformer_lib", "transformer_book")
DONE_WITHOUT = {"vl_convert"}  # a notebook then has no still picture of a chart


def test_exactly_what_is_imported_is_declared() -> None:
    paths = ROOT.glob("transformer_*/**/*.py")
    sources = [path.read_text(encoding="utf-8") for path in paths]
    for path in ROOT.glob("book/*.ipynb"):
        sources += [cell.source for _, cell in code_cells(nbformat.read(path, 4))]
    modules = set()
    for source in sources:
        for node in ast.walk(ast.parse(source.replace("%pip", "pass  #"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules.add(node.module.partition(".")[0])
    modules -= {*PACKAGES, *DONE_WITHOUT, *sys.stdlib_module_names}
    distributions = packages_distributions()
    needed = {name.lower() for each in modules for name in distributions[each]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    declared = sum(extras, project["project"]["dependencies"])
    declared = {re.match(r"[\w-]+", entry)[0].lower() for entry in declared}
    assert needed == declared - {"transformer-lib"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of this tree; built from a copy, where no earlier build is left."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in (*PACKAGES, "book/_ext", "tests", "benchmarks"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "-w", "built"]
    command = [sys.executable, "-m", "pip", "wheel", ".", "-q", *options]
    subprocess.run(command, cwd=folder, check=True)
    [path] = (folder / "built").glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_packages_and_nothing_else(wheel) -> None:
    files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert files == {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = {name.partition("/")[2] for name in wheel.namelist()} - {""}
    assert "METADATA" in about
    assert "entry_points.txt" not in about  # it takes part in no other program


BARE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

import torch, torch._dynamo  # looks for packages that it can do without

sys.meta_path.insert(0, Blocked())
import transformer_lib as tl
from transformer_lib.data import corpora

config = tl.TransformerConfig(src_vocab_size=9, tgt_vocab_size=9, d_model=8,
    n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1)
model = tl.Transformer(config)
src, tgt = torch.tensor([[4, 5, 2]]), torch.tensor([[1, 6, 7, 2]])
optimizer = torch.optim.Adam(model.parameters(), lr=tl.learning_rate(1, 8, 4000))
tl.label_smoothed_loss(model(src, tgt[:, :-1]), tgt[:, 1:], pad_id=0).backward()
optimizer.step()
rules = tl.GenerationConfig(bos_id=1, eos_id=2, max_len=5)
found = tl.greedy_decode(model, src, rules), tl.beam_search(model, src, rules, 2)
place = tl.__path__[0].removesuffix("/transformer_lib")
print(place, *map(len, found), len(corpora.load("grammar").train))
"""
BLOCKED = {
    *("book", "altair", "filelock", "lightning", "matplotlib", "pooch"),
    *("pydantic", "requests"),
    *("sacrebleu", "safetensors", "sklearn", "tokenizers", "tqdm", "transformers"),
}


@pytest.mark.slow
def test_the_installed_core_needs_torch_and_numpy_alone(wheel, tmp_path) -> None:
    wheel.extractall(tmp_path)
    run = [sys.executable, "-c", f"BLOCKED = {BLOCKED}\n{BARE}"]
    # Without this tree on the path, only the folder it runs in holds the library.
    bare = {name: v for name, v in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(run, cwd=tmp_path, env=bare, capture_output=True, text=True)
    assert done.stdout == f"{tmp_path} 1 1 20000\n", done.stderr
