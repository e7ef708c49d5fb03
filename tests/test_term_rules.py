"""A term of the glossary is a link where a chapter first uses it."""

import re

import nbformat
import pytest
from good_notebook import PAGE_NAME, good_page, markdown

from book_tools.term_rules import (
    EVERYDAY,
    first_uses,
    glossary_terms,
    term_pattern,
    unlinked_terms,
)
from book_tools.toc import ROOT, chapters

TERMS = ["attention weights", "key", "mask", "padding", "padding mask", "query"]


@pytest.fixture
def path(tmp_path):
    """Where the chapter is stored; the glossary lies beside it."""
    entries = [f"## {name}\n\nWhat it is.\n" for name in TERMS]
    (tmp_path / "glossary.md").write_text("\n".join(["# Glossary\n", *entries]))
    return tmp_path / PAGE_NAME


def unlinked(path, *texts, after="## One"):
    """The words of first uses without a link, where a chapter has these cells."""
    notebook = good_page()
    at = next(i for i, c in enumerate(notebook.cells) if c.source.startswith(after))
    notebook.cells[at + 1 : at + 1] = map(markdown, texts)
    messages = list(unlinked_terms(notebook, path))
    assert all(re.match(rf"cell {at + 1}|cell {at + 2}", line) for line in messages)
    return [re.search("first use of '(.*)' is no link", line)[1] for line in messages]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two masks and a mask.", ["masks"]),
        ("A **mask**.", ["mask"]),
        ("The mask's rows meet *queries*.", ["mask", "queries"]),
        ("- Queries ask.", ["Queries"]),
        (":::{note} A mask\nOne attention weight.\n:::", ["attention weight"]),
        ("A padding\nmask.", ["padding mask"]),
        ("`mask` is a mask", ["mask"]),
        ("A mask hides. A [mask](glossary.md#mask).", ["mask"]),
        ("A [mask](glossary.md#mask). A mask hides.", []),
        ("### A mask", []),
        ("`mask` and ``a mask``", []),
        ("```python\nmask = 1\n```", []),
        ("$mask$ and $$\nmask\n$$", []),
        ("| mask | x |\n| --- | --- |\n| a | mask |", []),
        ("See [how a mask works](#three) and <https://a.b/mask>.", []),
        ("<!-- mask -->", []),
        ("masked, unmask, key-mask and mask_of are other words", []),
        ("**[mask](glossary.md#mask)** and [**mask**](glossary.md#mask)", []),
        ("A [rule\nof hiding](glossary.md#mask), later called mask.", []),
        ("A dictionary has a key.", []),
        ("A dictionary has a key.\n\nIts `x` query meets this key.", ["query", "key"]),
    ],
)
def test_first_uses_without_a_link(path, text, words):
    assert unlinked(path, text) == words


def test_a_link_counts_for_the_cells_after_it(path):
    assert unlinked(path, "A mask hides.", "A [mask](glossary.md#mask).") == ["mask"]
    assert unlinked(path, "A [mask](glossary.md#mask).", "A mask hides.") == []


def test_a_longer_term_does_not_count_as_a_shorter_one(path):
    assert unlinked(path, "A padding mask.", "A mask.") == ["padding mask", "mask"]


def test_the_opening_of_a_page_is_left_alone(path):
    assert unlinked(path, "A mask.", after="# Counting") == []


def test_without_a_glossary_there_is_nothing_to_link(path):
    (path.parent / "glossary.md").unlink()
    assert unlinked(path, "A mask.") == []


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        ("query", ["query", "Queries"]),
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


def test_the_glossary_is_in_order_and_each_entry_names_a_chapter_that_uses_it():
    path = ROOT / "book/glossary.md"
    terms = glossary_terms(path)
    assert list(terms) == sorted(terms, key=str.casefold)
    entries = path.read_text(encoding="utf-8").split("\n## ")[1:]
    used = {
        chapter.name: first_uses(nbformat.read(chapter, as_version=4), terms)
        for chapter in chapters()
    }
    for name, entry in zip(terms, entries, strict=True):
        text = re.fullmatch(r".+\n\n(.+) \[[^\]]+\]\((\d\d_\w+\.ipynb)\)\n*", entry)
        assert text, f"{name}: one paragraph that ends in a link to its chapter"
        assert terms[name] in used[text[2]], f"{name}: {text[2]} never uses it"


def test_everyday_words_are_terms_of_the_glossary():
    assert set(EVERYDAY) <= set(glossary_terms(ROOT / "book/glossary.md"))
