"""The rule that a term of the glossary is a link where a chapter first uses it.

First use means the first time in running text: titles, promises and imports at the
top, headings, tables, code, mathematics and the texts of other links do not count.
A few terms are also words of everyday English. They count only in a paragraph that
says what is meant: a key is the term beside a query, and not in a dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from book_tools.link_rules import LINK
from book_tools.notebook_parts import (
    BEFORE_IDEAS,
    CODE_SPAN,
    FENCE,
    HEADING,
    MATH,
    headings,
    sections,
    slug,
)

GLOSSARY = "glossary.md"
NO_PROSE = [
    FENCE,
    re.compile(r"<!--.*?-->", re.DOTALL),
    HEADING,
    CODE_SPAN,
    MATH,
    re.compile(r"^ *\|.*$", re.MULTILINE),  # a row of a table
    re.compile(r"^:{3,}.*$", re.MULTILINE),  # where a box begins or ends
]
NO_WORDS = [LINK, re.compile(r"<[^>\n]+>|\bhttps?://\S+")]
PARAGRAPH = re.compile(r"(?:.+\n?)+")
EVERYDAY = {  # the word: what its paragraph must say for it to be the term
    "key": re.compile(r"\bquer(y|ies)\b", re.IGNORECASE),
    "value": re.compile(r"\bquer(y|ies)\b", re.IGNORECASE),
    "score": re.compile(r"\b(quer(y|ies)|keys?|softmax)\b", re.IGNORECASE),
    "memory": re.compile(r"\b(en|de)coders?\b", re.IGNORECASE),
}


@dataclass(frozen=True)
class Use:
    """A term in the text of a cell: where it stands, and whether it is a link."""

    start: int
    end: int
    slug: str
    linked: bool


def glossary_terms(path: Path) -> dict[str, str]:
    """The terms of the glossary, each with its anchor; none where there is no file."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return {name: slug(name) for level, name in headings(text) if level == 2}


def term_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """What finds a whole term, in any case, singular or plural, over a line's end.

    The number of the group that matched is the place of the term in the names, from
    1. Longer names must stand before those that they contain.
    """
    forms = "|".join(f"({_forms(name)})" for name in names)
    return re.compile(rf"(?<![\w-])(?:{forms})(?![\w-])", re.IGNORECASE)


def _forms(name: str) -> str:
    *before, last = name.split()
    if re.search("[^aeiou]y$", last):
        last = rf"{re.escape(last[:-1])}(?:y|ies)"
    elif last.endswith("s") and not last.endswith("ss"):
        last = rf"{re.escape(last)}?"
    else:
        last = rf"{re.escape(last)}(?:e?s)?"
    return r"(?: +| *\n *)".join([*map(re.escape, before), last])


def blank(patterns: list[re.Pattern[str]], text: str) -> str:
    """The text with what the patterns find blotted out; every place stays."""
    for pattern in patterns:
        text = pattern.sub(lambda match: "\0" * len(match.group()), text)
    return text


def uses(markdown: str, terms: Mapping[str, str]) -> list[Use]:
    """The terms in the running text of a cell, in order, with links to them."""
    prose = blank(NO_PROSE, markdown)
    found = []
    for link in LINK.finditer(prose):
        page, _, anchor = link.group(3).partition("#")
        if page == GLOSSARY and anchor in terms.values():
            found.append(Use(*link.span(), anchor, linked=True))
    longest_first = sorted(terms, key=len, reverse=True)
    words = blank(NO_WORDS, prose)
    for term in term_pattern(longest_first).finditer(words) if terms else ():
        name = longest_first[term.lastindex - 1]
        if is_meant(name, term.start(), prose):
            found.append(Use(*term.span(), terms[name], linked=False))
    return sorted(found, key=lambda use: use.start)


def is_meant(name: str, start: int, prose: str) -> bool:
    """False where a word of everyday English stands for itself, not for the term."""
    if name not in EVERYDAY:
        return True
    around = next(p for p in PARAGRAPH.finditer(prose) if p.end() > start)
    return bool(EVERYDAY[name].search(around.group()))


def first_uses(
    notebook: NotebookNode, terms: Mapping[str, str]
) -> dict[str, tuple[int, Use]]:
    """The anchor of every term in the chapter: index of the cell and first use."""
    first: dict[str, tuple[int, Use]] = {}
    for section in sections(notebook)[1:]:
        if section.title in BEFORE_IDEAS:
            continue
        for index, cell in section.of_type("markdown"):
            for use in uses(cell.source, terms):
                first.setdefault(use.slug, (index, use))
    return first


def unlinked_terms(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A term is a link to the glossary where the chapter first uses it.

    Args:
        notebook: the notebook to read.
        path: where it is stored; the glossary lies beside it.
    """
    terms = glossary_terms(path.parent / GLOSSARY)
    for index, use in first_uses(notebook, terms).values():
        if not use.linked:
            word = notebook.cells[index].source[use.start : use.end]
            yield (
                f"cell {index}: first use of {' '.join(word.split())!r} is no link to "
                f"{GLOSSARY}#{use.slug}; see python -m book_tools.link_terms"
            )
