"""Run the chapters and store them in one normal form.

    python -m book_tools.notebooks                     execute and store all chapters
    python -m book_tools.notebooks book/04_masks.ipynb       only this one
    python -m book_tools.notebooks --check             is every stored form normal?
    python -m book_tools.notebooks --coverage          how much does nbval compare?

The normal form holds nothing that changes from run to run, so a second run
leaves no difference; the output of a cell tagged nbval-ignore-output is kept
while its source stays. Progress bars are for whoever runs a cell: the kernels
started here do not draw them, and bars left by another front end are removed.
Anything else on stderr is refused.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from book_tools.normal_form import is_normal, normalize, read, write
from book_tools.toc import notebook_pages

KERNEL_ENV = {
    "PYTHONHASHSEED": "0",  # the order of sets of strings repeats
    "TQDM_DISABLE": "1",  # no progress bar in a stored output ...
    "QT_API": "none",  # ... and tqdm.auto takes the bar that listens to that
}


class NotebookError(Exception):
    """A notebook that cannot be stored; the message names the cell and the reason."""


def execute(path: Path, timeout: float = 600) -> bool:
    """Run the notebook at path in a fresh kernel and store it in normal form.

    Args:
        path: the notebook; its folder is the kernel's working directory.
        timeout: longest time a cell may take, in seconds.

    Returns:
        True where the stored file changed.

    Raises:
        NotebookError: a cell raised an exception or wrote to stderr. The stored
            file is left as it was.
    """
    notebook = nbformat.read(path, as_version=4)
    stored = _unrepeatable(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    # Without folders to search, the only kernel is the one of this environment.
    manager = AsyncKernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    client = NotebookClient(
        notebook,
        km=manager,
        timeout=timeout,
        force_raise_errors=True,
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute(env={**os.environ, **KERNEL_ENV}, stderr=subprocess.DEVNULL)
    except CellExecutionError as error:
        index = next(i for i, cell in enumerate(notebook.cells) if _failed(cell))
        raise NotebookError(f"{path}: cell {index} failed\n{error}") from None
    normal = normalize(notebook)
    for index, cell in enumerate(normal.cells):
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise NotebookError(
                    f"{path}: cell {index} wrote to stderr\n{output.text}"
                )
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            cell.metadata["source_digest"] = _digest(cell)
            cell.outputs = stored.get(cell.source, cell.outputs)
    return write(normalize(normal), path)


def _unrepeatable(notebook: NotebookNode) -> dict[str, list[NotebookNode]]:
    """Outputs that differ in every run, such as timings, by the source of their cell.

    They are kept as long as the digest stored with them says that they come from
    this very source; so a second run leaves no difference.
    """
    return {
        cell.source: cell.outputs
        for cell in normalize(notebook).cells
        if cell.metadata.get("source_digest") == _digest(cell)
    }


def _digest(cell: NotebookNode) -> str:
    return hashlib.sha256(cell.source.encode()).hexdigest()[:12]


def _failed(cell: NotebookNode) -> bool:
    return any(output.output_type == "error" for output in cell.get("outputs", []))


def coverage(notebook: NotebookNode) -> tuple[int, int]:
    """How many cells that print are compared by nbval, and how many print at all.

    A picture is no print: its text form `<Figure ...>` says nothing.
    """
    compared = printing = 0
    for cell in notebook.cells:
        if any(_prints(output) for output in cell.get("outputs", [])):
            printing += 1
            skipped = {"nbval-ignore-output", "nbval-skip"} & set(
                cell.metadata.get("tags", [])
            )
            compared += not skipped and "NBVAL_" not in cell.source
    return compared, printing


def _prints(output: NotebookNode) -> bool:
    data = output.get("data", {"text/plain": ""})
    return not any(mime.startswith("image/") for mime in data)


def _report_coverage(paths: Sequence[Path]) -> None:
    counts = [coverage(read(path)) for path in paths]
    compared, printing = (sum(column) for column in zip(*counts, strict=True))
    share = 100 * compared / max(printing, 1)
    print(f"compared {compared} of {printing} cells that print ({share:.1f} %)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m book_tools.notebooks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="*", type=Path, help="default: all of them")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="only look, do not run")
    mode.add_argument("--coverage", action="store_true", help="count compared cells")
    options = parser.parse_args(arguments)
    paths = [path.resolve() for path in options.paths] or notebook_pages()

    if options.coverage:
        _report_coverage(paths)
        return 0
    status = 0
    for path in paths:
        start = time.perf_counter()
        try:
            if options.check:
                if not is_normal(path):
                    raise NotebookError(f"{path}: not stored in normal form")
                continue
            changed = execute(path)
        except NotebookError as error:
            print(error, file=sys.stderr)
            status = 1
            continue
        seconds = time.perf_counter() - start
        print(f"{path.name}: {'stored' if changed else 'unchanged'}, {seconds:.1f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
