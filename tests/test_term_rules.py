"""A term is linked where a chapter first uses it, and the tool links it there."""

import re

import pytest
from good_notebook import FILE_NAME, good_notebook, markdown

from book_tools.link_terms import link_terms, main
from book_tools.normal_form import dumps, normalize, read
from book_tools.notebook_rules import file_rules
from book_tools.term_rules import (
    EVERYDAY,
    first_uses,
    glossary_terms,
    term_pattern,
    unlinked_terms,
)
from book_tools.toc import ROOT

GLOSSARY = """# Glossary

## attention weights

Shares. A mask hides some.

## key

What a query meets.

## mask

A rule.

## padding

Filling.

## padding mask

A mask for `<pad>`.

## query

A question.
"""


@pytest.fixture
def path(tmp_path):
    """A folder with the good chapter, which uses no term, and the glossary."""
    (tmp_path / "glossary.md").write_text(GLOSSARY)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "three.svg").write_text("<svg/>")
    (tmp_path / FILE_NAME).write_text(dumps(good_notebook()))
    return tmp_path / FILE_NAME


def with_text(*sources, after="## One"):
    notebook = good_notebook()
    at = next(i for i, c in enumerate(notebook.cells) if c.source.startswith(after))
    notebook.cells[at + 1 : at + 1] = map(markdown, sources)
    return notebook


def linked(path, *sources):
    """The cells after the tool has linked their terms."""
    notebook = with_text(*sources)
    link_terms(notebook, glossary_terms(path.parent / "glossary.md"))
    assert list(unlinked_terms(notebook, path)) == []
    at = next(i for i, c in enumerate(notebook.cells) if c.source.startswith("## One"))
    return [cell.source for cell in notebook.cells[at + 1 : at + 1 + len(sources)]]


def test_an_unlinked_term_is_named_with_its_cell(path):
    found = list(unlinked_terms(with_text("Two masks.", "A mask."), path))
    assert len(found) == 1
    assert found[0].startswith("cell 6: first use of 'masks' is no link to glossary.md")


def test_the_rule_is_one_of_those_for_every_chapter(path):
    address = "https://github.com/owner/name"
    assert list(file_rules(path, address)) == []
    path.write_text(dumps(normalize(with_text("A mask."))))
    assert any("first use of 'mask'" in line for line in file_rules(path, address))


def test_a_link_that_comes_after_the_first_use_is_too_late(path):
    late = with_text("A mask hides.", "A [mask](glossary.md#mask).")
    assert len(list(unlinked_terms(late, path))) == 1
    early = with_text("A [mask](glossary.md#mask).", "A mask hides.")
    assert list(unlinked_terms(early, path)) == []


@pytest.mark.parametrize(
    "text",
    [
        "### A mask",
        "`mask` and ``a mask``",
        "```python\nmask = 1\n```",
        "$mask$ and $$\nmask\n$$",
        "| mask | x |\n| --- | --- |\n| a | mask |",
        "See [how a mask works](#three) and <https://a.b/mask>.",
        ":::{note} A mask\nText.\n:::",
        "<!-- mask -->",
        "masked, unmask, key-mask and mask_of are other words",
        "**[mask](glossary.md#mask)** and [**mask**](glossary.md#mask)",
        "A [rule\nof hiding](glossary.md#mask), later called mask.",
    ],
)
def test_what_is_no_first_use(path, text):
    assert list(unlinked_terms(with_text(text), path)) == []


@pytest.mark.parametrize("after", ["# 1. Counting", "## What you", "## Setup"])
def test_the_opening_of_a_chapter_is_left_alone(path, after):
    assert list(unlinked_terms(with_text("A mask.", after=after), path)) == []
    assert list(unlinked_terms(with_text("A mask."), path)) != []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A **mask**.", "A **[mask](glossary.md#mask)**."),
        ("Queries ask.", "[Queries](glossary.md#query) ask."),
        ("Masks: two masks.", "[Masks](glossary.md#mask): two masks."),
        ("The mask's rows.", "The [mask](glossary.md#mask)'s rows."),
        ("One attention weight.", None),
        ("A padding\nmask.", "A [padding\nmask](glossary.md#padding-mask)."),
        ("padding mask", "[padding mask](glossary.md#padding-mask)"),
        (
            "`mask` is a mask for a query",
            "`mask` is a [mask](glossary.md#mask) for a [query](glossary.md#query)",
        ),
    ],
)
def test_the_first_use_becomes_a_link(path, text, expected):
    expected = expected or "One [attention weight](glossary.md#attention-weights)."
    assert linked(path, text, "A text.") == [expected, "A text."]


def test_a_longer_term_does_not_count_as_a_shorter_one(path):
    first, second = linked(path, "A padding mask.", "A mask.")
    assert first == "A [padding mask](glossary.md#padding-mask)."
    assert second == "A [mask](glossary.md#mask)."


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        ("query", ["query", "Queries"]),
        ("key", ["Key", "keys"]),
        ("attention weights", ["attention weight", "Attention\nweights"]),
        ("softmax", ["softmax", "softmaxes"]),
        ("loss", ["loss", "losses"]),
        ("1×1 convolution", ["1×1 convolutions"]),
    ],
)
def test_one_entry_stands_for_singular_and_plural(name, uses):
    pattern = term_pattern([name])
    assert all(pattern.fullmatch(use) for use in uses)
    assert not pattern.search(f"un{name} {name}ing pre-{name} {name}-like")


def test_an_everyday_word_is_the_term_only_beside_what_says_so(path):
    text = "A dictionary has a key.\n\nIts query meets this key.\n\nA key."
    plain, term, _ = linked(path, text)[0].split("\n\n")
    assert plain == "A dictionary has a key."
    assert "this [key](glossary.md#key)" in term


def test_the_glossary_is_in_order_and_each_entry_names_a_chapter_that_uses_it():
    path = ROOT / "book/glossary.md"
    terms = glossary_terms(path)
    assert list(terms) == sorted(terms, key=str.casefold)
    entries = path.read_text(encoding="utf-8").split("\n## ")[1:]
    for name, entry in zip(terms, entries, strict=True):
        text = re.fullmatch(r".+\n\n(.+) \[[^\]]+\]\((\d\d_\w+\.ipynb)\)\n*", entry)
        assert text, f"{name}: one paragraph that ends in a link to its chapter"
        used = first_uses(read(path.parent / text[2]), terms)
        assert terms[name] in used, f"{name}: {text[2]} never uses it"


def test_everyday_words_are_terms_of_the_glossary():
    assert set(EVERYDAY) <= set(glossary_terms(ROOT / "book/glossary.md"))


def test_the_tool_changes_text_and_nothing_else(path, capsys):
    path.write_text(dumps(normalize(with_text("A mask."))))
    before = read(path)
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == f"{FILE_NAME}: 1 link added\n"
    after = read(path)
    changed = [
        (old, new)
        for old, new in zip(before.cells, after.cells, strict=True)
        if old != new
    ]
    assert [new.source for _, new in changed] == ["A [mask](glossary.md#mask)."]
    main([str(path)])
    assert read(path) == after


def test_without_a_glossary_there_is_nothing_to_link(path):
    (path.parent / "glossary.md").unlink()
    assert first_uses(with_text("A mask."), {}) == {}
    assert list(unlinked_terms(with_text("A mask."), path)) == []
