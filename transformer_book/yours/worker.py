"""What the pages' worker calls: it puts the page's torch in place, and answers.

This runs in the browser alone. Kernels get addresses in Python's memory for arrays.
"""

import math
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from transformer_book.yours import page_torch

HIDDEN = ("js", "pyodide", "pyodide_js", "_pyodide", "_pyodide_core")


def start(kernels: Any) -> None:
    """Take the page's kernels (book/machine/yours/kernels.js), and import the rest."""
    for name in "linear", "add", "softmax", "layer_norm", "relu":
        setattr(page_torch.KERNELS, name, _with_addresses(getattr(kernels, name)))
    multiply = _with_addresses(kernels.multiply)
    page_torch.KERNELS.multiply = lambda a, starts_a, *rest: multiply(
        a, starts_a, *rest, len(starts_a)
    )
    page_torch.install()
    from transformer_book.yours import desk, machine  # noqa: F401 - they import torch

    machine.widen = _widening(kernels.widen)
    _hide_javascript()


def answer(task: str, question: dict, progress: Callable[[float], Any]) -> dict:
    """Answer a question of the page: {"answer": ...} or {"problem": sentence}."""
    from transformer_book.yours import desk

    found = desk.reply(task, _plain(question), progress)
    return {"problem": found["error"]} if "error" in found else found


class _Hiding:
    """Finds none of the modules that lead to JavaScript, and says so first."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _hide_javascript() -> None:
    """Take away what leads from Python to the page's JavaScript."""
    for name in [*sys.modules]:
        if name.partition(".")[0] in HIDDEN:
            del sys.modules[name]
    others = [one for one in sys.meta_path if "_pyodide" not in type(one).__module__]
    sys.meta_path[:] = [_Hiding, *others]


def _plain(question: Any) -> Any:
    """A question with bytes for what JavaScript has as bytes."""
    if isinstance(question, dict):
        return {name: _plain(value) for name, value in question.items()}
    return bytes(question) if isinstance(question, memoryview) else question


def _address(numbers: array | None) -> int:
    """Where an array lies; 0 stands for none."""
    return 0 if numbers is None else numbers.buffer_info()[0]


def _with_addresses(kernel: Callable) -> Callable:
    """Let a kernel take arrays among its numbers."""

    def call(*arguments: Any) -> None:
        kernel(*[
            x if isinstance(x, (int, float)) else _address(x) for x in arguments
        ])  # fmt: skip

    return call


def _widening(kernel: Callable) -> Callable:
    """Make `machine.widen` of the kernel, which reads an array instead of bytes."""
    last: list = [None, array("b")]  # the data of a model, and an array of them

    def widen(
        data: bytes, offset: int, shape: Sequence[int], scale: int | None
    ) -> array:
        n, n_rows = math.prod(shape), shape[0]
        if scale is None:
            return array("f", data[offset : offset + 4 * n])
        if last[0] is not data:
            last[:] = data, array("b", data)
        where, out = _address(last[1]), array("f", bytes(4 * n))
        kernel(where, offset, where, scale // 4, _address(out), n_rows, n // n_rows)
        return out

    return widen
