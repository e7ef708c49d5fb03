"""The table of the five source documents: `book/sources.yml`, read and checked.

It lists every statement, equation, picture, listing and number of the documents
the book grew out of: where it stands, what it says, whether it holds, what is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path("book/sources.yml")

KINDS = (
    "advice",
    "claim",
    "code",
    "concept",
    "equation",
    "example",
    "figure",
    "number",
    "open-question",
    "reference",
    "shape",
    "system",
)
VERDICTS = (
    "correct",
    "correct-with-caveat",
    "ambiguous",
    "wrong",
    "unverifiable-here",
)
MISTAKES = frozenset({"wrong", "ambiguous"})  # a code cell has to show these

ITEM_KEYS = ("id", "lines", "kind", "verdict", "chapter", "says", "truth")
DOCUMENT_KEYS = ("short", "title", "source", "sections")
ID = re.compile(r"S\d-\d\d")
LINES = re.compile(r"\d+(-\d+)?(, \d+(-\d+)?)*")


class LedgerError(ValueError):
    """The table or the metadata of a cell is malformed; the message says where."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


@dataclass(frozen=True)
class Item:
    """One statement, equation, picture, listing or number of a document."""

    id: str
    lines: str
    kind: str
    verdict: str
    chapter: str
    says: str
    truth: str

    @property
    def is_mistake(self) -> bool:
        """Wrong or ambiguous: a code cell has to show it and mend it."""
        return self.verdict in MISTAKES


@dataclass(frozen=True)
class Section:
    """A section of a document, under the document's own heading."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Document:
    """One of the source documents; `source` says who wrote it and where it stood."""

    short: str
    title: str
    source: str
    sections: tuple[Section, ...]

    @property
    def items(self) -> list[Item]:
        """The items of all sections, in the order of the document."""
        return [item for section in self.sections for item in section.items]


@dataclass(frozen=True)
class Table:
    """The whole table: documents, names of the chapters, and those to be written."""

    documents: tuple[Document, ...]
    chapters: Mapping[str, str]
    waiting: tuple[str, ...]

    @property
    def items(self) -> dict[str, Item]:
        """Every item by its id."""
        return {item.id: item for doc in self.documents for item in doc.items}


def load_table(path: Path = ROOT / TABLE) -> Table:
    """Read and check the table of the documents.

    Args:
        path: The YAML file.

    Returns:
        The table; ids are unique, kinds, verdicts and chapters are known.

    Raises:
        LedgerError: A key is missing or unknown, or a value is not one of those
            allowed; all problems are listed.
    """
    return parse_table(yaml.safe_load(path.read_text(encoding="utf-8")))


def parse_table(data: Any) -> Table:
    """Turn the parsed YAML into a table; see `load_table`."""
    problems: list[str] = []
    if not isinstance(data, dict) or set(data) != {"chapters", "waiting", "documents"}:
        raise LedgerError(["the table needs the keys chapters, waiting, documents"])
    chapters, waiting = data["chapters"], data["waiting"] or []
    problems += [
        f"waiting: unknown chapter {c!r}" for c in waiting if c not in chapters
    ]
    seen: set[str] = set()
    documents = []
    for entry in data["documents"]:
        problems += _wrong_keys(entry, DOCUMENT_KEYS, f"document {entry.get('short')}")
        sections = []
        for part in entry.get("sections", []):
            where = f"{entry.get('short')}, section {part.get('title')!r}"
            problems += _wrong_keys(part, ("title", "items"), where)
            items = part.get("items", [])
            for raw in items:
                problems += _item_problems(raw, str(entry.get("short")), chapters, seen)
            sections.append((part.get("title"), items))
        documents.append((entry, sections))
    if problems:
        raise LedgerError(problems)
    return Table(
        documents=tuple(
            Document(
                short=entry["short"],
                title=entry["title"],
                source=entry["source"],
                sections=tuple(
                    Section(title, tuple(Item(**raw) for raw in items))
                    for title, items in sections
                ),
            )
            for entry, sections in documents
        ),
        chapters=chapters,
        waiting=tuple(waiting),
    )


def _wrong_keys(entry: Mapping[str, Any], keys: Iterable[str], where: str) -> list[str]:
    expected = set(keys)
    return [f"{where}: {key!r} is missing" for key in sorted(expected - set(entry))] + [
        f"{where}: unknown key {key!r}" for key in sorted(set(entry) - expected)
    ]


def _item_problems(
    raw: Mapping[str, Any], short: str, chapters: Iterable[str], seen: set[str]
) -> list[str]:
    name = str(raw.get("id"))
    problems = _wrong_keys(raw, ITEM_KEYS, name)
    if problems:
        return problems
    problems = [
        f"{name}: {key} must be text, got {value!r}"
        for key, value in raw.items()
        if not isinstance(value, str) or not value.strip()
    ]
    if problems:
        return problems
    if not ID.fullmatch(name) or not name.startswith(short + "-"):
        problems.append(f"{name}: an id of {short} looks like {short}-07")
    if name in seen:
        problems.append(f"{name}: the id is used twice")
    seen.add(name)
    if not LINES.fullmatch(raw["lines"]):
        problems.append(
            f"{name}: lines {raw['lines']!r} should look like '53, 379-381'"
        )
    for key, allowed in (("kind", KINDS), ("verdict", VERDICTS), ("chapter", chapters)):
        if raw[key] not in allowed:
            problems.append(f"{name}: unknown {key} {raw[key]!r}")
    return problems
