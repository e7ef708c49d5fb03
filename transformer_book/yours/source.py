"""The library's model as the first chapters print it, made of the library's text.

A chapter leaves out what it doesn't teach: annotations, guards, the cache of chapter
12, the device. `plain` leaves them out of a source, and keeps its lines and comments as
they are wherever nothing was left out.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterator
from typing import Any

WIDTH = 72  # of a cell in a chapter
_ENTRY = re.compile(r"^ {4}(?! )", re.MULTILINE)


def plain(source: str, left_out: Collection[str] = ()) -> str:
    """Leave out of a source what the first chapters don't teach.

    Gone are annotations, an `if` that only raises, and whatever mentions a name that is
    left out: parameters, arguments, statements. Docstrings become short, see
    `short_docstring`.

    Args:
        source: of definitions.
        left_out: names of variables, attributes and parameters.

    Returns:
        The source, with the same definitions.
    """
    lines = source.split("\n")
    for node, text in reversed([*_edits(ast.parse(source).body, lines, left_out)]):
        start, end = _span(node)
        first, last = lines[start[0]], lines[end[0]]
        if text is None:  # its lines, and the comment above them
            top = start[0]
            while lines[top - 1].lstrip().startswith("#"):
                top -= 1
            lines[top : end[0] + 1] = []
        else:
            new = first[: start[1]] + text + last[end[1] :]
            lines[start[0] : end[0] + 1] = new.split("\n")
    return "\n".join(lines)


def open_stub(source: str, given: Collection[str] = ("__init__",)) -> str:
    """Leave out the bodies: what is left is signatures, docstrings and `...`.

    Args:
        source: of definitions.
        given: names of functions that stay as they are.

    Returns:
        The source, ready to be filled in.
    """
    lines = source.split("\n")
    for node in reversed([*_functions(ast.parse(source).body)]):
        if node.name not in given:
            body = node.body[1 if ast.get_docstring(node) is not None else 0 :]
            start = body[0].lineno - 1
            while not lines[start - 1] or lines[start - 1].lstrip().startswith("#"):
                start -= 1  # a blank line or a comment above it
            lines[start : node.end_lineno] = [" " * body[0].col_offset + "..."]
    return "\n".join(lines)


def source_of(definition: Callable[..., Any] | type) -> str:
    """Return the source of a function or class, without decorators."""
    text = textwrap.dedent(inspect.getsource(definition))
    node = ast.parse(text).body[0]
    return "\n".join(text.split("\n")[node.lineno - 1 : node.end_lineno])


def definitions(module: Any) -> dict[str, str]:
    """Return the sources of a module's functions, classes and values, by name."""
    text, found = inspect.getsource(module), {}
    for node in ast.parse(text).body:
        source = "\n".join(text.split("\n")[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = source
        elif isinstance(node, ast.Assign):
            found[node.targets[0].id] = source
    return found


def short_docstring(text: str, left_out: Collection[str], brief: bool) -> str:
    """Make a docstring short enough for a phone.

    What stands before "Args:" stays, what is said about each argument, and the first
    sentence about each result.

    Args:
        text: the docstring, cleaned.
        left_out: arguments that are not mentioned.
        brief: only the first paragraph.
    """
    parts = re.split(r"^(Args|Returns|Raises|Attributes):\n", text, flags=re.MULTILINE)
    if brief:
        return parts[0].split("\n\n")[0].strip()
    short = [parts[0].strip()]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        entries = [" ".join(each.split()) for each in _ENTRY.split(body)]
        entries = [e for e in entries if e and e.split(":")[0] not in left_out]
        if title == "Returns":  # the first sentence, of which "..." is no end
            entries = [re.split(r"(?<=[^.]\.) ", each)[0] for each in entries]
        if title in ("Args", "Returns") and entries:
            indents = {"initial_indent": " " * 4, "subsequent_indent": " " * 8}
            lines = [textwrap.fill(each, WIDTH - 4, **indents) for each in entries]
            short.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join(short)


def _functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """Yield functions and methods, but none that stands in another."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body)


def _edits(
    body: list[ast.stmt], lines: list[str], left_out: Collection[str]
) -> Iterator[tuple[Any, str | None]]:
    """Yield (what is replaced, its new text), in order; None where nothing is left."""
    for node in body:
        if isinstance(node, ast.If) and (
            _mentions(node.test, left_out)
            or all(isinstance(each, ast.Raise) for each in node.body)
        ):
            yield node, None
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from _edit_definition(node, lines, left_out)
        elif hasattr(node, "body"):
            yield from _edits(node.body, lines, left_out)
        else:
            yield from _edit_statement(node, left_out)


def _edit_definition(
    node: ast.FunctionDef | ast.ClassDef, lines: list[str], left_out: Collection[str]
) -> Iterator[tuple[Any, str | None]]:
    if isinstance(node, ast.FunctionDef):
        header = ast.Pass(
            lineno=node.lineno,
            col_offset=node.col_offset,
            end_lineno=node.body[0].lineno,
            end_col_offset=node.body[0].col_offset,
        )
        inner = " " * node.body[0].col_offset
        yield header, f"{_header(node, lines, left_out)}\n{inner}"
    body = node.body
    if (docstring := ast.get_docstring(node)) is not None:
        indent = " " * body[0].col_offset
        brief = isinstance(node, ast.ClassDef)
        text = short_docstring(docstring, left_out, brief)
        end = f"\n{indent}" if "\n" in text else ""
        text = textwrap.indent(text, indent).lstrip() + end
        yield body[0], f'"""{text}"""'
        body = body[1:]
    yield from _edits(body, lines, left_out)


def _header(node: ast.FunctionDef, lines: list[str], left_out: Collection[str]) -> str:
    """Write the first lines of a function, without annotations."""
    defaults = [None] * len(node.args.args) + node.args.defaults
    parameters = []
    for arg, default in zip(
        node.args.args, defaults[len(node.args.defaults) :], strict=True
    ):
        if arg.arg not in left_out:
            value = ast.get_source_segment("\n".join(lines), default) if default else ""
            parameters.append(f"{arg.arg}={value}" if default else arg.arg)
    indent = " " * node.col_offset
    header = f"def {node.name}({', '.join(parameters)}):"
    if len(indent + header) <= WIDTH:
        return header
    broken = "".join(f"\n{indent}    {each}," for each in parameters)
    return f"def {node.name}({broken}\n{indent}):"


def _edit_statement(
    node: ast.stmt, left_out: Collection[str]
) -> Iterator[tuple[Any, str | None]]:
    new = ast.parse(ast.unparse(node)).body[0]
    if isinstance(new, ast.AnnAssign):
        new = ast.Assign([new.target], new.value, lineno=1)
    before = ast.unparse(node)
    new = _WithoutArguments(left_out).visit(new)
    if _mentions(new, left_out):
        yield node, None
    elif ast.unparse(new) != before:
        yield node, ast.unparse(new)


class _WithoutArguments(ast.NodeTransformer):
    """Leaves out arguments of calls that mention a name."""

    def __init__(self, left_out: Collection[str]) -> None:
        self.left_out = left_out

    def visit_Call(self, node: ast.Call) -> ast.Call:  # noqa: N802
        self.generic_visit(node)
        node.args = [each for each in node.args if not _mentions(each, self.left_out)]
        node.keywords = [
            each
            for each in node.keywords
            if each.arg not in self.left_out
            and not _mentions(each.value, self.left_out)
        ]
        return node


def _mentions(node: ast.AST, names: Collection[str]) -> bool:
    return any(
        getattr(part, "id", None) in names or getattr(part, "attr", None) in names
        for part in ast.walk(node)
    )


def _span(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
    return (
        (node.lineno - 1, node.col_offset),
        (node.end_lineno - 1, node.end_col_offset),
    )
