"""The table of the source documents is whole, and the book covers it."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from book_tools.ledger import coverage_problems, main, read_coverage, report
from book_tools.source_places import cell_anchor, page_files
from book_tools.source_table import LedgerError, Table, load_table, parse_table

# --- the book ----------------------------------------------------------------


@pytest.fixture(scope="module")
def book() -> Table:
    return load_table()


def test_the_table_holds_every_item_of_the_five_documents(book: Table) -> None:
    items = {doc.short: len(doc.items) for doc in book.documents}
    assert items == {"S0": 80, "S1": 54, "S2": 81, "S3": 91, "S4": 33}
    assert len(book.items) == 339


def test_the_items_of_a_document_are_numbered_without_a_gap(book: Table) -> None:
    for doc in book.documents:
        numbers = [f"{doc.short}-{n:02}" for n in range(1, len(doc.items) + 1)]
        assert [item.id for item in doc.items] == numbers


def test_no_verdict_was_lost(book: Table) -> None:
    assert Counter(item.verdict for item in book.items.values()) == {
        "correct": 161,
        "correct-with-caveat": 76,
        "ambiguous": 35,
        "wrong": 62,
        "unverifiable-here": 5,
    }


def test_every_chapter_of_the_table_has_items(book: Table) -> None:
    assert set(book.chapters) == {item.chapter for item in book.items.values()}


def test_the_texts_name_only_items_that_exist(book: Table) -> None:
    texts = [text for item in book.items.values() for text in (item.says, item.truth)]
    named = {name for text in texts for name in re.findall(r"\bS\d-\d\d\b", text)}
    assert named, "the pattern finds nothing"
    assert named <= set(book.items)


def test_code_and_mathematics_are_closed_in_every_text(book: Table) -> None:
    for item in book.items.values():
        for text in (item.says, item.truth):
            assert text.count("`") % 2 == text.count("$") % 2 == 0, item.id


def test_the_book_covers_every_item_that_no_later_chapter_will(book: Table) -> None:
    if problems := coverage_problems(book, read_coverage(book)):
        pytest.fail("\n".join(problems), pytrace=False)


# --- a tiny book -------------------------------------------------------------

ITEM = {
    "lines": "1, 3-4",
    "kind": "claim",
    "chapter": "masks",
    "says": "It says so.",
    "truth": "It is so.",
}
TABLE: dict[str, Any] = {
    "chapters": {"masks": "Masks", "training": "Training"},
    "waiting": ["training"],
    "documents": [
        {
            "short": "S0",
            "title": "A document",
            "source": "A blog post.",
            "sections": [
                {
                    "title": "Opening",
                    "items": [
                        {**ITEM, "id": "S0-01", "verdict": "correct"},
                        {**ITEM, "id": "S0-02", "verdict": "wrong"},
                        {
                            **ITEM,
                            "id": "S0-03",
                            "verdict": "correct",
                            "chapter": "training",
                        },
                    ],
                }
            ],
        }
    ],
}


def table(**changes: Any) -> Table:
    """The tiny table, with the keys of its first item or of the table changed."""
    data = copy.deepcopy(TABLE)
    first = data["documents"][0]["sections"][0]["items"][0]
    for key, value in changes.items():
        (data if key in data else first)[key] = value
    return parse_table(data)


def markdown(source: str, *ids: str) -> dict[str, Any]:
    metadata = {"ledger": list(ids)} if ids else {}
    return {"cell_type": "markdown", "metadata": metadata, "source": [source]}


def code(*ids: str, tags: tuple[str, ...] = ()) -> dict[str, Any]:
    metadata = {"ledger": list(ids), "tags": list(tags)}
    return {"cell_type": "code", "metadata": metadata, "source": ["assert mask()"]}


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a book of one notebook and one page, and give its folder."""

    def write(*cells: dict[str, Any], notes: str = "# Notation\n") -> Path:
        toc = "root: book/notation\nparts:\n- chapters:\n  - file: book/04_masks\n"
        (tmp_path / "_toc.yml").write_text(toc)
        (tmp_path / "book").mkdir(exist_ok=True)
        (tmp_path / "book/notation.md").write_text(notes)
        notebook = json.dumps({"cells": list(cells)})
        (tmp_path / "book/04_masks.ipynb").write_text(notebook)
        return tmp_path

    return write


def problems(root: Path, **changes: Any) -> list[str]:
    tiny = table(**changes)
    return coverage_problems(tiny, read_coverage(tiny, root))


def test_a_covered_book_has_no_problems(write: Write) -> None:
    assert problems(write(markdown("Text", "S0-01"), code("S0-02"))) == []


def test_an_item_that_no_cell_carries_is_named(write: Write) -> None:
    found = problems(write(code("S0-02")))
    assert found == ["S0-01 (masks) is carried by no cell: It says so."]


def test_text_alone_does_not_cover_a_mistake(write: Write) -> None:
    found = problems(write(markdown("Text", "S0-01", "S0-02")))
    assert len(found) == 1
    assert found[0].startswith("S0-02 (masks) is wrong and needs a code cell")


def test_code_that_cannot_fail_does_not_cover_a_mistake(write: Write) -> None:
    weak = {**code("S0-02"), "source": ["print(mask())"]}
    found = problems(write(markdown("Text", "S0-01"), weak))
    assert len(found) == 1
    assert found[0].startswith("S0-02 (masks) is wrong and needs a code cell")


def test_a_chapter_whose_items_are_all_covered_must_leave_the_list(
    write: Write,
) -> None:
    found = problems(write(code("S0-01", "S0-02", "S0-03")))
    assert found == ["training: every item is covered, so take it out of waiting"]


def test_a_chapter_taken_out_of_the_list_must_be_covered(write: Write) -> None:
    found = problems(write(code("S0-01", "S0-02")), waiting=[])
    assert found == ["S0-03 (training) is carried by no cell: It says so."]


def test_an_unknown_id_in_a_cell_is_refused(write: Write) -> None:
    root = write(markdown("Text"), code("S0-01", "S0-99"))
    with pytest.raises(LedgerError, match=r"04_masks, cell 1 \(code\): .*'S0-99'"):
        problems(root)


def test_an_unknown_id_in_front_matter_is_refused(write: Write) -> None:
    root = write(notes='---\nledger: ["S0-99"]\n---\n# Notation\n')
    with pytest.raises(LedgerError, match="notation, front matter: unknown id"):
        problems(root)


@pytest.mark.parametrize("value", ["S0-01", [], [1], {"id": "S0-01"}, None])
def test_malformed_metadata_is_refused(write: Write, value: object) -> None:
    cell = code("S0-01")
    cell["metadata"]["ledger"] = value
    with pytest.raises(LedgerError, match="cell 0.*must be a list of ids"):
        problems(write(cell))


def test_an_id_twice_in_one_cell_is_refused(write: Write) -> None:
    with pytest.raises(LedgerError, match="an id stands twice"):
        problems(write(code("S0-01", "S0-01")))


def test_a_cell_that_the_page_leaves_out_cannot_carry_ids(write: Write) -> None:
    with pytest.raises(LedgerError, match="remove-cell is not on the page"):
        problems(write(code("S0-01", tags=("remove-cell",))))


def test_the_ids_of_a_page_stand_in_its_front_matter(write: Write) -> None:
    root = write(notes='---\nledger: ["S0-03"]\n---\n\n# Notation\n')
    (place,) = read_coverage(table(), root)["S0-03"]
    assert (place.docname, place.title, place.cell) == (
        "book/notation",
        "Notation",
        None,
    )


def test_a_place_names_the_chapter_and_the_nearest_heading(write: Write) -> None:
    cells = [
        markdown("# 4. Masks\n"),
        markdown("## Use\n```\n# no\n```"),
        code("S0-01"),
    ]
    (place,) = read_coverage(table(), write(*cells))["S0-01"]
    assert (place.title, place.heading, place.cell) == ("4. Masks", "Use", 2)
    assert place.cell_type == "code"


def test_two_cells_of_one_id_have_their_own_anchors(write: Write) -> None:
    places = read_coverage(table(), write(code("S0-01"), code("S0-01")))["S0-01"]
    assert [place.anchor for place in places] == ["masks-s0-01", "masks-s0-01-2"]
    assert cell_anchor("book/01_x_y", ["S1-20"]) == "x-y-s1-20"


def test_a_page_of_the_contents_that_is_not_written_yet_is_left_out(
    write: Write,
) -> None:
    root = write(code("S0-01"))
    assert list(page_files(root)) == ["book/notation", "book/04_masks"]
    (root / "book/notation.md").unlink()
    assert list(page_files(root)) == ["book/04_masks"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "S0-02"}, "the id is used twice"),
        ({"id": "S1-01"}, "looks like S0-07"),
        ({"verdict": "right"}, "unknown verdict 'right'"),
        ({"kind": "joke"}, "unknown kind 'joke'"),
        ({"chapter": "mask"}, "unknown chapter 'mask'"),
        ({"lines": "line 3"}, "should look like"),
        ({"says": ""}, "says must be text"),
        ({"note": "x"}, "unknown key 'note'"),
        ({"waiting": ["decoder"]}, "waiting: unknown chapter 'decoder'"),
    ],
)
def test_a_malformed_table_is_refused(changes: dict[str, Any], message: str) -> None:
    assert table().items["S0-01"].lines == "1, 3-4"
    with pytest.raises(LedgerError, match=message):
        table(**changes)


def test_the_report_tells_covered_from_missing(write: Write) -> None:
    tiny = table()
    coverage = read_coverage(tiny, write(markdown("Text", "S0-01", "S0-02")))
    covered, missing = report(tiny, coverage, "masks").split("missing:")
    assert "S0-01  book/04_masks, cell 0 (markdown)" in covered
    assert "S0-02  claim, wrong [needs an assertion" in missing
    assert "[carried, not shown]" in missing
    assert report(tiny, coverage).splitlines()[0].split()[:4] == [
        "masks",
        "1",
        "of",
        "2",
    ]


def test_the_command_refuses_an_unknown_chapter(capsys: pytest.CaptureFixture) -> None:
    assert main(["nonsense"]) == 2
    assert "usage" in capsys.readouterr().out
