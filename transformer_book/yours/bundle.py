"""The files that the pages' Python needs: the book's own, as they are.

`sources()` follows the imports of the graders and of this package. A package's
`__init__.py` comes without the imports of what the pages don't have: NumPy, the
tokenizer, the shipped models' reader.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

# Where imports are followed from, beside this package: the exercises of chapters 0 to 8
# and 11, the searches, and the parts of a model.
EXERCISES = (
    "one_sitting",
    "embeddings",
    "attention",
    "multi_head",
    "masks",
    "residual",
    "encoder",
    "decoder",
    "full_model",
    "generation",
)
LIBRARY = (
    "transformer_lib.generation.beam_search",
    "transformer_lib.generation.greedy",
    "transformer_lib.model",
)
KNOWN = {"torch", *sys.stdlib_module_names}


def sources() -> dict[str, str]:
    """Return the path of each file, from the folder that Python searches, and its text.

    Raises:
        ImportError: a module imports what is neither the book's, nor Python's, nor
            PyTorch.
    """
    own = {path.stem for path in HERE.glob("*.py")} - {"__init__", "bundle"}
    names = [f"{__package__}.{name}" for name in own]
    names += [f"transformer_book.exercises.{name}" for name in EXERCISES]
    modules = _follow([*names, *LIBRARY])
    texts = {path: path.read_text(encoding="utf-8") for path in HERE.glob("*.json")}
    for path in map(_find, modules):
        text = path.read_text(encoding="utf-8")
        texts[path] = _reduce(text, modules) if path.stem == "__init__" else text
    return {path.relative_to(ROOT).as_posix(): texts[path] for path in sorted(texts)}


def _follow(names: list[str]) -> set[str]:
    """Name these modules, all that they import, and the packages around them."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if not name or name in found:
            continue
        found.add(name)
        waiting.append(name.rpartition(".")[0])  # the package around it
        path = _find(name)
        if path.stem == "__init__" and name not in names:
            continue  # it offers what is there, and asks for nothing
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for imported in _imports(node):
                if _is_ours(imported):
                    waiting.append(imported)
                elif imported.partition(".")[0] not in KNOWN:
                    raise ImportError(f"{name} imports {imported}, which no page has")
    return found


def _reduce(text: str, modules: set[str]) -> str:
    """Take the imports out of a package's text that lead to none of the modules."""
    lines = text.splitlines(keepends=True)
    for node in reversed(ast.parse(text).body):
        if any(_is_ours(name) and name not in modules for name in _imports(node)):
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines)


def _imports(node: ast.stmt) -> Iterator[str]:
    """Name the modules that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if _is_ours(inner) and _find(inner).exists() else node.module


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in ("transformer_book", "transformer_lib")


def _find(name: str) -> Path:
    """Return the file of one of our modules, or where it would be."""
    path = ROOT.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
