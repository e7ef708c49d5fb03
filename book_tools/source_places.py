"""The places of the book that carry ids of the source documents.

A cell that teaches, computes or mends an item of `book/sources.yml` carries its id
in the cell metadata, `"ledger": ["S3-12"]`; a Markdown page carries ids in its
front matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from book_tools.demonstrations import demonstrations
from book_tools.notebook_parts import headings
from book_tools.source_table import ROOT

FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)


@dataclass(frozen=True)
class Place:
    """A cell that carries ids, or a whole Markdown page (then `cell` is None)."""

    docname: str  # as in _toc.yml, such as book/04_masks
    title: str  # of the page
    heading: str  # the nearest heading above the cell
    cell: int | None
    cell_type: str  # "code", "markdown" or "page"
    anchor: str  # the label Sphinx gives to the cell; unique in the book
    shows: bool = False  # running it again can fail: see demonstrations.py


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
    showing = demonstrations(cells)
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
        place = Place(
            docname, title, heading, index, cell["cell_type"], anchor, index in showing
        )
        places.append((place, ids))
        if "remove-cell" in cell["metadata"].get("tags", []):
            problems.append(
                f"{describe(place)}: a cell tagged remove-cell is not on the page"
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
    return [text for _, text in headings(markdown)]


def _first_heading(markdown: str) -> str:
    return next(iter(_headings(markdown)), "")


def _last_heading(markdown: str) -> str:
    return next(reversed(_headings(markdown)), "")


def describe(place: Place) -> str:
    """Name a place in a message: book/04_masks, cell 3 (code)."""
    if place.cell is None:
        return f"{place.docname}, front matter"
    return f"{place.docname}, cell {place.cell} ({place.cell_type})"
