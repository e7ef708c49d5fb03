"""A reader's parts in words, and as a file that does the same with PyTorch."""

import ast
from collections.abc import Mapping

from transformer_book.yours import parts, reader
from transformer_book.yours.parts import PARTS
from transformer_book.yours.reader import Problem

_SENTENCE = '"Im Schnee spielt ein Hund."'  # of `parts.program`


def say(sources: Mapping[str, str]) -> str:
    """Return what a translation is told to be made of.

    Args:
        sources: the text of each part that is the reader's.
    """
    if not sources:
        return "All of it is the book's."
    if sources.keys() >= PARTS.keys():
        n_lines = sum(map(reader.count_lines, sources.values()))
        return f"This sentence was translated by your code alone: {n_lines} lines."
    owned = ", ".join(PARTS[name].owned for name in PARTS if name in sources)
    return f"{owned[0].upper()}{owned[1:]}; the rest is the book's."


def as_script(sources: Mapping[str, str], sentence: str = "") -> str:
    """Return a file that translates on a reader's parts; or a cell of a notebook.

    Args:
        sources: the text of each part that is the reader's.
        sentence: in the source language; one of the book's if empty.

    Raises:
        Problem: a text can't be read, or two texts give a name to different things: a
            file has one of each.
    """
    try:
        texts = {name: reader.read(text) for name, text in sources.items()}
        _require_different_names(texts)
    except SyntaxError as error:
        raise Problem(f"This can't be read: {reader.short(error)}.") from None
    program = parts.program(texts)
    return program.replace(_SENTENCE, repr(sentence)) if sentence else program


def _require_different_names(texts: Mapping[str, str]) -> None:
    seen: dict[str, tuple[str, str]] = {}
    for part, text in texts.items():
        for node in ast.parse(text).body:
            name, code = getattr(node, "name", None), ast.dump(node)
            if name is None:
                continue
            other, same = seen.setdefault(name, (part, code))
            if same != code:
                raise Problem(
                    f"{reader.named(other)} and {PARTS[part].owned} both define "
                    f"{name}, and not alike: give one of them another name, since a "
                    "file has only one of each."
                )
