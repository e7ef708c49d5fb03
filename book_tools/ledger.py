"""The table of the five source documents, and the cells that cover it.

`book/sources.yml` lists every statement, equation, picture, listing and number of
the documents the book grew out of. A cell that teaches, computes or mends one of
them carries its id in the cell metadata, `"ledger": ["S3-12"]`; a Markdown page
carries ids in its front matter. This module reads both sides and says what is
still missing:

    python -m book_tools.ledger          # every chapter, a line each
    python -m book_tools.ledger masks    # one chapter, item by item
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
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
FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
FENCED = re.compile(r"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)


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


@dataclass(frozen=True)
class Place:
    """A cell that carries ids, or a whole Markdown page (then `cell` is None)."""

    docname: str  # as in _toc.yml, such as book/04_masks
    title: str  # of the page
    heading: str  # the nearest heading above the cell
    cell: int | None
    cell_type: str  # "code", "markdown" or "page"
    anchor: str  # the label Sphinx gives to the cell; unique in the book


Coverage = Mapping[str, Sequence[Place]]


# --- the table ---------------------------------------------------------------


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


# --- the cells ---------------------------------------------------------------


def page_files(root: Path = ROOT) -> dict[str, Path]:
    """The pages of the table of contents that exist: docname to file, in order."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    pages = {}
    for entry in _toc_entries(toc):
        stem = re.sub(r"\.(ipynb|md)$", "", entry)
        for suffix in (".ipynb", ".md"):
            if (root / f"{stem}{suffix}").is_file():
                pages[stem] = root / f"{stem}{suffix}"
                break
    return pages


def _toc_entries(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (str(node[key]) for key in ("root", "file") if key in node)
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _toc_entries(child)


def read_coverage(table: Table, root: Path = ROOT) -> dict[str, list[Place]]:
    """Find every cell and page that carries ids.

    Args:
        table: The table that knows the ids.
        root: The folder of `_toc.yml`.

    Returns:
        For each id of the table its places, in the order of the book; an id that
        nothing carries has an empty list.

    Raises:
        LedgerError: A cell carries an unknown id or malformed metadata.
    """
    known = table.items
    coverage: dict[str, list[Place]] = {name: [] for name in known}
    problems = []
    for docname, path in page_files(root).items():
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            found = page_places(docname, text)
        else:
            found, wrong = notebook_places(docname, json.loads(text)["cells"])
            problems += wrong
        for place, ids in found:
            where = _describe(place)
            problems += metadata_problems(ids, known, where)
            if not problems:
                for name in ids:
                    coverage[name].append(place)
    if problems:
        raise LedgerError(problems)
    return coverage


def metadata_problems(ids: Any, known: Iterable[str], where: str) -> list[str]:
    """What is wrong with the value of a `ledger` key, a sentence for each fault."""
    if not isinstance(ids, list) or not ids or not all(isinstance(i, str) for i in ids):
        return [f'{where}: ledger must be a list of ids such as ["S3-12"], got {ids!r}']
    problems = [f"{where}: unknown id {name!r}" for name in ids if name not in known]
    if len(set(ids)) < len(ids):
        problems.append(f"{where}: an id stands twice in {ids}")
    return problems


def page_places(docname: str, text: str) -> list[tuple[Place, Any]]:
    """The place of a Markdown page and its ids, if its front matter has any."""
    front = FRONT_MATTER.match(text)
    meta = yaml.safe_load(front.group(1)) if front else None
    if not isinstance(meta, dict) or "ledger" not in meta:
        return []
    title = _first_heading(text[front.end() :]) or docname
    return [(Place(docname, title, title, None, "page", ""), meta["ledger"])]


def notebook_places(
    docname: str, cells: Sequence[Mapping[str, Any]]
) -> tuple[list[tuple[Place, Any]], list[str]]:
    """The cells of a notebook that carry ids, and faults of where they stand.

    Args:
        docname: The notebook as the table of contents names it.
        cells: The cells of the notebook's JSON.

    Returns:
        The places, each with its ids as written (not yet checked), and a list of
        problems: a cell that the page leaves out cannot be linked to.
    """
    places: list[tuple[Place, Any]] = []
    problems: list[str] = []
    taken: set[str] = set()
    title = heading = ""
    for index, cell in enumerate(cells):
        if cell["cell_type"] == "markdown":
            heading = _last_heading(cell_source(cell)) or heading
            title = title or heading
        if "ledger" not in cell["metadata"]:
            continue
        ids = cell["metadata"]["ledger"]
        anchor = cell_anchor(docname, ids, taken)
        taken.add(anchor)
        place = Place(docname, title, heading, index, cell["cell_type"], anchor)
        places.append((place, ids))
        if "remove-cell" in cell["metadata"].get("tags", []):
            problems.append(
                f"{_describe(place)}: a cell tagged remove-cell is not on the page"
            )
    return places, problems


def cell_anchor(docname: str, ids: Any, taken: Iterable[str] = ()) -> str:
    """The label of a cell: chapter and first id, with a number where that is taken.

    >>> cell_anchor("book/04_masks", ["S3-12", "S3-20"])
    'masks-s3-12'
    """
    chapter = re.sub(r"^\d+_", "", docname.rsplit("/", 1)[-1]).replace("_", "-")
    first = ids[0] if isinstance(ids, list) and ids else "ledger"
    base = f"{chapter}-{first}".lower()
    anchor, number = base, 1
    while anchor in taken:
        number += 1
        anchor = f"{base}-{number}"
    return anchor


def cell_source(cell: Mapping[str, Any]) -> str:
    """The source of a cell as one string; notebooks store a list of lines, too."""
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _headings(markdown: str) -> list[str]:
    return HEADING.findall(FENCED.sub("", markdown))


def _first_heading(markdown: str) -> str:
    return next(iter(_headings(markdown)), "")


def _last_heading(markdown: str) -> str:
    return next(reversed(_headings(markdown)), "")


def _describe(place: Place) -> str:
    if place.cell is None:
        return f"{place.docname}, front matter"
    return f"{place.docname}, cell {place.cell} ({place.cell_type})"


# --- both together -----------------------------------------------------------


def is_covered(item: Item, places: Sequence[Place]) -> bool:
    """Whether the book treats the item: a mistake counts once code shows it."""
    if item.is_mistake:
        return any(place.cell_type == "code" for place in places)
    return bool(places)


def coverage_problems(table: Table, coverage: Coverage) -> list[str]:
    """What keeps the table from being covered, a sentence for each fault.

    An item may be uncovered only while its chapter is in `waiting`, and a chapter
    may be in `waiting` only while one of its items is uncovered.
    """
    problems = []
    for item in table.items.values():
        places = coverage[item.id]
        if item.chapter in table.waiting or is_covered(item, places):
            continue
        fault = (
            f"is {item.verdict} and needs a code cell that shows it"
            if places
            else "is carried by no cell"
        )
        problems.append(f"{item.id} ({item.chapter}) {fault}: {item.says}")
    for chapter in table.waiting:
        items = [item for item in table.items.values() if item.chapter == chapter]
        if all(is_covered(item, coverage[item.id]) for item in items):
            problems.append(
                f"{chapter}: every item is covered, so take it out of waiting"
            )
    return problems


# --- the command -------------------------------------------------------------


def report(table: Table, coverage: Coverage, chapter: str | None = None) -> str:
    """Say what is covered and what is missing.

    Args:
        table: The table of the documents.
        coverage: The places of each id.
        chapter: The chapter to list item by item; all chapters in short if None.

    Returns:
        The lines to print.
    """
    if chapter is None:
        return "\n".join(_chapter_line(table, coverage, c) for c in table.chapters)
    items = [item for item in table.items.values() if item.chapter == chapter]
    done = [item for item in items if is_covered(item, coverage[item.id])]
    lines = ["covered:"]
    lines += [
        f"  {item.id}  {', '.join(map(_describe, coverage[item.id]))}" for item in done
    ]
    lines.append("missing:")
    for item in items:
        if item not in done:
            only_text = " [only text so far]" if coverage[item.id] else ""
            needs = " [needs a code cell]" if item.is_mistake else ""
            lines.append(f"  {item.id}  {item.kind}, {item.verdict}{needs}{only_text}")
            lines.append(_wrapped("says:  ", item.says))
            lines.append(_wrapped("truth: ", item.truth))
    lines.append(_chapter_line(table, coverage, chapter))
    return "\n".join(lines)


def _wrapped(label: str, text: str) -> str:
    return fill(label + text, 88, initial_indent=" " * 9, subsequent_indent=" " * 16)


def _chapter_line(table: Table, coverage: Coverage, chapter: str) -> str:
    items = [item for item in table.items.values() if item.chapter == chapter]
    done = sum(is_covered(item, coverage[item.id]) for item in items)
    state = "waiting" if chapter in table.waiting else "written"
    return f"{chapter:24} {done:3} of {len(items):3} covered  ({state})"


def main(arguments: Sequence[str]) -> int:
    """Print the report for the chapter named, or for all; 1 where a fault is found."""
    try:
        table = load_table()
        if len(arguments) > 1 or any(a not in table.chapters for a in arguments):
            print(f"usage: python -m book_tools.ledger [{'|'.join(table.chapters)}]")
            return 2
        coverage = read_coverage(table)
    except LedgerError as error:
        print(error, file=sys.stderr)
        return 1
    print(report(table, coverage, *arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
