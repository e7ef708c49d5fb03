"""Which items of the source documents the book covers, and what is missing.

    python -m book_tools.ledger          # every chapter, a line each
    python -m book_tools.ledger masks    # one chapter, item by item

The items are those of `book/sources.yml`; the cells that cover them carry their ids.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

from book_tools.source_places import (
    Place,
    describe,
    metadata_problems,
    notebook_places,
    page_files,
    page_places,
)
from book_tools.source_table import ROOT, Item, LedgerError, Table, load_table

Coverage = Mapping[str, Sequence[Place]]


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
            where = describe(place)
            problems += metadata_problems(ids, known, where)
            if not problems:
                for name in ids:
                    coverage[name].append(place)
    if problems:
        raise LedgerError(problems)
    return coverage


def is_covered(item: Item, places: Sequence[Place]) -> bool:
    """Whether the book treats the item: a mistake counts once code shows it."""
    return any(place.shows for place in places) if item.is_mistake else bool(places)


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
            f"is {item.verdict} and needs a code cell that asserts it or catches it"
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
        f"  {item.id}  {', '.join(map(describe, coverage[item.id]))}" for item in done
    ]
    lines.append("missing:")
    for item in items:
        if item not in done:
            needs = " [needs an assertion or a caught error]" * item.is_mistake
            unshown = " [carried, not shown]" if coverage[item.id] else ""
            lines.append(f"  {item.id}  {item.kind}, {item.verdict}{needs}{unshown}")
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
