"""The library as others install it: what it needs, what it brings, what it loads."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions

import pytest

from book_tools.toc import ROOT

LIBRARY = ROOT / "transformer_lib"


def imported(code: ast.AST) -> set[str]:
    """The top-level modules that code imports, those it can do without left out."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(code):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.partition(".")[0])
        elif not (isinstance(node, ast.Try) and any(map(is_optional, node.handlers))):
            found |= imported(node)
    return found


def is_optional(handler: ast.ExceptHandler) -> bool:
    caught = handler.type and ast.unparse(handler.type)
    return caught in ("ImportError", "ModuleNotFoundError")


@pytest.mark.parametrize(
    ("code", "modules"),
    [
        ("import numpy as np, pandas.api", {"numpy", "pandas"}),
        ("def f():\n    from PIL.Image import open", {"PIL"}),
        ("from .near import x", set()),
        ("try:\n    import a\nexcept ImportError:\n    import b", set()),
        ("try:\n    import a\nexcept ValueError:\n    import b", {"a", "b"}),
    ],
)
def test_imports_are_found_unless_they_are_optional(code, modules) -> None:
    assert imported(ast.parse(code)) == modules


def test_exactly_what_is_imported_is_declared() -> None:
    modules = set()
    for path in ROOT.glob("transformer_*/**/*.py"):
        modules |= imported(ast.parse(path.read_text(encoding="utf-8")))
    modules -= {
        "transformer_lib",
        "transformer_fast",
        "transformer_book",
        *sys.stdlib_module_names,
    }
    distributions = packages_distributions()
    needed = {name.lower() for each in modules for name in distributions[each]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    declared = sum(extras, project["project"]["dependencies"])
    declared = {re.match(r"[\w-]+", entry)[0].lower() for entry in declared}
    of_torch = {"onnx", "onnxscript"}  # whose exporter imports them
    assert needed == declared - of_torch - {"transformer-lib"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of this tree; built from a copy, where no earlier build is left."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("transformer_lib", "book_tools", "tests", "benchmarks"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "-w", "built"]
    command = [sys.executable, "-m", "pip", "wheel", ".", "-q", *options]
    subprocess.run(command, cwd=folder, check=True)
    [path] = (folder / "built").glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_library_and_nothing_else(wheel) -> None:
    files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    paths = (path for path in LIBRARY.rglob("*") if path.is_file())
    assert files == {
        path.relative_to(ROOT).as_posix()
        for path in paths
        if "__pycache__" not in path.parts
    }


def test_the_wheel_takes_part_in_no_other_program(wheel) -> None:
    about = {name.partition("/")[2] for name in wheel.namelist()} - {""}
    assert "METADATA" in about
    assert "entry_points.txt" not in about


BARE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

import torch, torch._dynamo  # looks for packages that it can do without

sys.meta_path.insert(0, Blocked())
import transformer_lib as tl

config = tl.TransformerConfig(src_vocab_size=9, tgt_vocab_size=9, d_model=8,
    n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1)
model = tl.Transformer(config)
src, tgt = torch.tensor([[4, 5, 2]]), torch.tensor([[1, 6, 7, 2]])
optimizer = torch.optim.Adam(model.parameters(), lr=tl.learning_rate(1, 8, 4000))
tl.label_smoothed_loss(model(src, tgt[:, :-1]), tgt[:, 1:], pad_id=0).backward()
optimizer.step()
rules = tl.GenerationConfig(bos_id=1, eos_id=2, max_len=5)
found = tl.greedy_decode(model, src, rules), tl.beam_search(model, src, rules, 2)
print(*map(len, found))
"""
BLOCKED = {
    *("altair", "filelock", "lightning", "matplotlib", "pooch", "pydantic", "requests"),
    *("sacrebleu", "safetensors", "sklearn", "tokenizers", "tqdm", "transformers"),
}


def test_the_core_needs_torch_and_numpy_alone() -> None:
    run = [sys.executable, "-c", f"BLOCKED = {BLOCKED}\n{BARE}"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "1 1\n", done.stderr
