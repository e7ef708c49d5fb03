"""Which cells of a notebook show something: running them again can fail.

A mistake of a document counts as shown only where a code cell would turn red if it
were no mistake: the cell asserts what is true, or it catches the error that the
mistake raises and prints it. The replay of the chapters runs every cell again and
compares what it prints, so each such cell is a regression test.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

NOT_REPLAYED = {"nbval-skip", "raises-exception", "nbval-raises-exception"}
NOT_COMPARED = {"nbval-ignore-output"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def demonstrations(cells: Sequence[Mapping[str, Any]]) -> set[int]:
    """Find the cells whose replay fails once what they show is no longer so.

    Args:
        cells: The cells of a notebook's JSON.

    Returns:
        The places of the code cells with an assertion about something computed, made
        there or in a function of the notebook that they call, and of those that
        catch an error and print, where the replay compares what is printed.
    """
    trees = {i: _parse(c) for i, c in enumerate(cells) if c["cell_type"] == "code"}
    checks = {
        function.name
        for tree in trees.values()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and any(_asserts(node, ()) for part in function.body for node in _run(part))
    }
    found = set()
    for index, tree in trees.items():
        tags = set(cells[index]["metadata"].get("tags", []))
        compared = not tags & NOT_COMPARED
        if not tags & NOT_REPLAYED and any(
            _asserts(node, checks) or (compared and _prints_an_error(node))
            for node in _run(tree)
        ):
            found.add(index)
    return found


def _parse(cell: Mapping[str, Any]) -> ast.AST:
    try:
        return ast.parse("".join(cell["source"]))
    except SyntaxError:  # a magic of the notebook: nothing that shows a mistake
        return ast.Module([], [])


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run with this one, so not the bodies of functions it defines."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, FUNCTIONS):
            yield from _run(child)


def _asserts(node: ast.AST, checks: Collection[str]) -> bool:
    """An assert that looks at something, or a call of a function that does."""
    if isinstance(node, ast.Assert):
        return any(isinstance(part, ast.Name) for part in ast.walk(node.test))
    return isinstance(node, ast.Call) and (
        _name(node) in checks or _name(node).startswith("assert_")
    )


def _prints_an_error(node: ast.AST) -> bool:
    """An except clause that prints: without the error, the line would be missing."""
    return isinstance(node, ast.ExceptHandler) and any(
        isinstance(part, ast.Call) and _name(part) == "print" for part in ast.walk(node)
    )


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", None) or getattr(call.func, "id", "")
