"""What a reader writes: its text read, run, counted, and its errors told.

    spaces = execute({"attention": "def scaled_dot_product_attention(…): …"})

Each text runs in a namespace of its own, as the file `<your attention>`: so two answers
may use the same name for a helper, and an error tells the reader's line and no other.
"""

import ast
import builtins
import inspect
import io
import linecache
import math
import re
import sys
import tokenize
import traceback
from collections.abc import Mapping
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor, nn

from transformer_book.yours.parts import PARTS, namespace

# Modules that a reader may import: they compute, and reach nothing outside.
MODULES = {
    "__future__", "abc", "cmath", "collections", "contextlib", "copy", "dataclasses",
    "decimal", "enum", "fractions", "functools", "heapq", "inspect", "itertools",
    "math", "numbers", "operator", "random", "re", "statistics", "string", "textwrap",
    "time", "torch", "transformer_lib", "typing", "warnings",
}  # fmt: skip

# Signs that come out of a PDF or a word processor in the place of Python's own
_PASTED = {
    **dict.fromkeys("\u00a0\u1680\u202f\u205f\u3000", " "),
    **dict.fromkeys(map(chr, range(0x2000, 0x200B)), " "),
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff", ""),
    **dict.fromkeys("“”„‟″", '"'),
    **dict.fromkeys("‘’‚‛′", "'"),
    **dict.fromkeys("−–‐‑", "-"),
    "…": "...",
    "\0": "",
}
_LONGEST = 600  # letters of an error's text


class Problem(Exception):  # noqa: N818 - a sentence for the reader, and no error of ours
    """Why the machine can't run on what a reader has written, in one sentence."""


# --- from a text to code --------------------------------------------------------------


def compile_source(source: str, part: str) -> CodeType:
    """Compile a reader's text for a file named after its part, `<your attention>`.

    What is certain is repaired: ends of lines, and what pasting has put in the place
    of Python's own signs. No line moves, so numbers of lines are those of the text.

    Raises:
        SyntaxError: of the text as it is read.
    """
    source = read(source)
    name = f"<your {part}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    try:
        return compile(source, name, "exec", dont_inherit=True)
    except SyntaxError:
        raise
    except (RecursionError, MemoryError, OverflowError):
        message = "this is too deeply nested"
        raise SyntaxError(message, (name, None, None, None)) from None
    except ValueError as error:  # a character that no file can hold
        raise SyntaxError(str(error), (name, None, None, None)) from None


@lru_cache
def read(source: str) -> str:
    """Return a text as Python can take it, with its lines where they were."""
    source = source.removeprefix("\ufeff")
    source = re.sub(r"\r\n?|\x0b|\x0c|\x85|\u2028|\u2029", "\n", source)
    if _parses(source):
        return source
    pasted = "".join(_PASTED.get(sign, sign) for sign in source)
    if _parses(pasted):
        return pasted
    # Tabs among spaces: certain if all widths that can be read are read alike.
    readings = {_parses(pasted.expandtabs(width)): width for width in (4, 8)}
    readings.pop(None, None)
    if len(readings) == 1:
        return pasted.expandtabs(*readings.values())
    return pasted


def _parses(source: str) -> str | None:
    """Return a text's tree, None where Python refuses the text."""
    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def count_lines(source: str) -> int:
    """Count lines of code: no empty ones, no comments, no docstrings."""
    source = read(source)
    code: set[int] = set()
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in (*skipped, tokenize.NEWLINE, tokenize.ENDMARKER):
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            code -= {*range(node.lineno, node.end_lineno + 1)}
    return len(code)


# --- running it -----------------------------------------------------------------------


def execute(sources: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Execute the texts of parts in the book's order; return their namespaces.

    Each finds the book's names, and the reader's own other parts in their place.

    Raises:
        Problem: a part is unknown, or its text defines not what it should.
        BaseException: whatever a text raises.
    """
    unknown = sources.keys() - PARTS.keys()
    if unknown:
        raise Problem(f"The book has no part {min(unknown)}.")
    spaces: dict[str, dict[str, Any]] = {}
    for part in PARTS:
        if part in sources:
            spaces[part] = run(sources[part], part, own(spaces))
    for space in spaces.values():
        space.update(own(spaces))
    return spaces


def run(source: str, part: str, others: Mapping[str, Any]) -> dict[str, Any]:
    """Execute one part's text among these names; return all that is there then.

    Raises:
        Problem: what the part should define is not there.
        BaseException: whatever the text raises.
    """
    space = namespace(part)  # this very dictionary is what the book's own names see
    space.update(others, __name__="__main__")
    space["__builtins__"] = _builtins()
    exec(compile_source(source, part), space)
    for name in PARTS[part].defines:
        found = space.get(name)
        if found is None:
            kind = "class" if name[0].isupper() else "function"
            raise Problem(f"Your text defines no {kind} {name}.")
        if name[0].isupper():
            if not (isinstance(found, type) and issubclass(found, nn.Module)):
                raise Problem(f"{name} must be a class made from nn.Module.")
        elif not callable(found) or isinstance(found, type):
            raise Problem(f"{name} must be a function, but is {kind_of(found)}.")
    for name, value in {"torch": torch, "nn": nn, "math": math}.items():
        if space.get(name) is not value:
            raise Problem(
                f"Your text gives the name {name} to something else: choose another."
            )
    return space


@lru_cache
def assigned(source: str) -> set[str]:
    """Return the names of attributes that a text may set: `torch.softmax = …`."""
    names = set()
    for node in ast.walk(ast.parse(read(source))):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)  # of setattr, say
    return names


def own(spaces: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the functions and classes that are the reader's, by name."""
    return {
        name: space[name]
        for part, space in spaces.items()
        for name in PARTS[part].defines
    }


def _builtins() -> dict[str, Any]:
    """Return Python's own names, without a way out and with a print that may end."""
    names = vars(builtins) | {"__import__": _import, "input": _input}

    def write(*args: Any, **options: Any) -> None:
        if getattr(sys.stdout, "is_full", False):
            names["print"] = _write_nothing  # a million calls more take no time
        else:
            print(*args, **options)  # noqa: T201 - the reader's

    names["print"] = write
    return names


def _write_nothing(*args: Any, **options: Any) -> None:
    pass


def _import(name: str, *args: Any, **options: Any) -> Any:
    root = name.partition(".")[0]
    if root not in MODULES:
        raise ImportError(
            f"{root or 'this module'} isn't here: your code finds torch, math, and the "
            "modules of Python that only compute"
        )
    return builtins.__import__(name, *args, **options)


def _input(*args: Any) -> str:
    raise RuntimeError("input() waits for nobody here: write the value into the code")


# --- telling about it -----------------------------------------------------------------


def tell(error: BaseException) -> tuple[str, int | None]:
    """Return what an error says, with the reader's lines only, and the last line."""
    text = short(error)
    if isinstance(error, SyntaxError) and str(error.filename).startswith("<your "):
        line = _cut((error.text or "").strip(), 100)
        where = f"Line {error.lineno}: {line}\n" if error.lineno else ""
        return f"{where}{type(error).__name__}: {error.msg}", error.lineno
    frames = reader_frames(error)
    if not frames:
        return text, getattr(error, "lineno", None)
    shown = [
        f"Line {frame.lineno}"
        + ("" if frame.name == "<module>" else f", in {frame.name}")
        + f":\n    {_cut(frame.line or '', 100)}"
        for frame in frames
    ]
    shown = [*dict.fromkeys(shown)]  # not again what calls itself
    facts = facts_at(error)
    return "\n".join([*shown, text, *[facts] * bool(facts)]), frames[-1].lineno


def facts_at(error: BaseException) -> str:
    """Say what the error's own text doesn't tell of the reader's last line, or "".

    PyTorch tells two sizes that don't fit, and not whose they are; Python tells that
    something is None, and not what, and no name that isn't given.
    """
    frame = None
    for each, _ in traceback.walk_tb(error.__traceback__):
        if each.f_code.co_filename.startswith("<your "):
            frame = each
    if frame is None:
        return ""
    if isinstance(error, NameError):
        return _size_called(error.name, frame)
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    used = {
        name: value
        for name, value in frame.f_locals.items()
        if re.search(rf"\b{re.escape(name)}\b", line)
    }
    facts = []
    if isinstance(error, RuntimeError | IndexError | ValueError):
        facts = [
            f"{name} has the shape {tuple(value.shape)}"
            for name, value in used.items()
            if isinstance(value, Tensor)
        ]
    elif "NoneType" in str(error):
        facts = [
            f"{name} is None: ask if {name} is not None"
            for name in inspect.getargvalues(frame).args
            if name in used and used[name] is None
        ]
    if not facts:
        return ""
    return f"Here, {' and '.join(filter(None, [', '.join(facts[:-1]), facts[-1]]))}."


def _size_called(name: str, frame: FrameType) -> str:
    """Say which size a docstring calls so: of "query: (..., q_len, d_head)" d_head."""
    stub = PARTS[_part_in(frame.f_code.co_filename)].stub
    for argument, shape in re.findall(r"(?m)^ +(\w+): \((.*?)\)", stub):
        axes = shape.split(", ")
        if argument in frame.f_locals and name in axes:
            return f"Here, {name} is {argument}.size({axes.index(name) - len(axes)})."
    return ""


def reader_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the places in a reader's texts that led to an error, the last one last."""
    walked = traceback.walk_tb(error.__traceback__)
    inside = [
        step for step in walked if step[0].f_code.co_filename.startswith("<your ")
    ]
    return [*traceback.StackSummary.extract(iter(inside[-4:]))]


def _part_in(filename: str) -> str:
    return filename.removeprefix("<your ").removesuffix(">")


def short(error: BaseException) -> str:
    """Return the type and the text of an error, as Python writes them."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # whatever a reader's class does
        text = ""
    if isinstance(error, SystemExit):
        text = "your code ends the program, but nothing else would run then"
    elif isinstance(error, RecursionError):
        text = "a function calls itself again and again, and never stops"
    text = _cut(text, _LONGEST)
    return f"{name}: {text}" if text else name


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]} …"


def sentence(error: BaseException) -> str:
    """Return what a reader's code raised in the machine, as one sentence."""
    if isinstance(error, SyntaxError) and str(error.filename).startswith("<your "):
        where = f" (line {error.lineno})" if error.lineno else ""
        part = named(_part_in(error.filename))
        return f"{part} can't be read: {error.msg}{where}."
    said = short(error).rstrip(".")
    frames = reader_frames(error)
    if not frames:
        return f"With your code, the book's raised {said}."
    frame, facts = frames[-1], facts_at(error)
    said = f"{named(_part_in(frame.filename))} raised {said} (line {frame.lineno})."
    return f"{said} {facts}".strip()


def named(part: str) -> str:
    """Return the name of a part at the beginning of a sentence: "Your attention"."""
    owned = PARTS[part].owned
    return owned[0].upper() + owned[1:]


def kind_of(value: Any) -> str:
    """Say what a value is, where a tensor was expected."""
    if value is None:
        return "nothing"
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, tuple | list):
        several = (
            ", ".join(map(kind_of, value[:3])) if len(value) < 4 else "many things"
        )
        return f"a {type(value).__name__} ({several})"
    return f"a value of type {type(value).__name__}"
