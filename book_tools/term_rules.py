"""The rule that a term of the glossary is a link where a chapter first uses it.

First use means the first time in running text: the promises at a chapter's beginning,
headings, tables, code, mathematics and the texts of other links do not count.
A few terms are also words of everyday English. They count only in a paragraph that
says what is meant: a key is the term beside a query, and not in a dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it.token import Token
from nbformat import NotebookNode

from book_tools.notebook_parts import headings, sections, slug, tokens
from book_tools.template import PROMISES

GLOSSARY = "glossary.md"
# The line that opens the list, and its items up to an empty line and other text.
PROMISE_LIST = re.compile(
    rf"^.*{PROMISES}.*\n+(?:(?:[-*]|\d+\.|  ).*\n+)*(?:(?:[-*]|\d+\.|  ).*$)?",
    re.MULTILINE,
)
EVERYDAY = {  # the word: what its paragraph must say for it to be the term
    "key": re.compile(r"\bquer(y|ies)\b", re.IGNORECASE),
    "value": re.compile(r"\bquer(y|ies)\b", re.IGNORECASE),
    "score": re.compile(r"\b(quer(y|ies)|keys?|softmax)\b", re.IGNORECASE),
    "memory": re.compile(r"\b(en|de)coders?\b", re.IGNORECASE),
}


@dataclass(frozen=True)
class Use:
    """A term in a text: its anchor in the glossary, its words, is it a link there?"""

    slug: str
    words: str
    linked: bool


def glossary_terms(path: Path) -> dict[str, str]:
    """The terms of the glossary, each with its anchor; none where there is no file."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return {name: slug(name) for level, name in headings(text) if level == 2}


def term_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """What finds a whole term, in any case, singular or plural, over a line's end.

    The number of the group that matched is the term's position in the names, from 1.
    Longer names must stand before those that they contain.
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
    return r"\s+".join([*map(re.escape, before), last])


def uses(markdown: str, terms: Mapping[str, str]) -> Iterator[Use]:
    """The terms in the running text of a cell, in order, with links to them."""
    for before, line in pairwise(tokens(markdown)):
        if before.type == "paragraph_open":
            yield from _uses_in(line.children or [], terms)


def _uses_in(paragraph: list[Token], terms: Mapping[str, str]) -> list[Use]:
    found = []  # each with its position in the words
    words, link = "", None
    for piece in paragraph:
        match piece.type:
            case "link_open":
                link = str(piece.attrs["href"])
                page, _, anchor = link.partition("#")
                if page == GLOSSARY and anchor in terms.values():
                    found.append((len(words), Use(anchor, anchor, linked=True)))
            case "link_close":
                link = None
            case "text" if link is None:
                words += piece.content
            case "softbreak":
                words += "\n"
            case _:
                words += "\0"  # no words, and no part of one
    everything = " ".join(piece.content for piece in paragraph if piece.type == "text")
    longest_first = sorted(terms, key=len, reverse=True)
    for term in term_pattern(longest_first).finditer(words) if terms else ():
        name = longest_first[term.lastindex - 1]
        if name not in EVERYDAY or EVERYDAY[name].search(everything):
            use = Use(terms[name], " ".join(term.group().split()), linked=False)
            found.append((term.start(), use))
    return [use for _, use in sorted(found, key=lambda pair: pair[0])]


def first_uses(
    notebook: NotebookNode, terms: Mapping[str, str]
) -> dict[str, tuple[int, Use]]:
    """The anchor of every term in the chapter: index of the cell and first use."""
    first: dict[str, tuple[int, Use]] = {}
    for section in sections(notebook)[1:]:
        for index, cell in section.of_type("markdown"):
            for use in uses(PROMISE_LIST.sub("", cell.source), terms):
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
            yield (
                f"cell {index}: first use of {use.words!r} is no link to "
                f"{GLOSSARY}#{use.slug}"
            )


FILE_RULES = [unlinked_terms]
