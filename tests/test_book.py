"""The stored notebooks, read as data, follow the rules of the book."""

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from book_tools import link_rules, notebook_rules
from book_tools.toc import ROOT, chapters, notebook_pages

NOTEBOOKS = notebook_pages()
PAGES = [*ROOT.glob("*.md"), *(ROOT / "book").glob("*.md")]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    assert notebook_rules.complaints(path) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page(path):
    text = path.read_text(encoding="utf-8")
    page = new_notebook(cells=[new_markdown_cell(text)])
    assert list(link_rules.broken_links(page, path)) == []
    for rule in (link_rules.pictures, link_rules.link_text):
        assert list(rule(page)) == []
    assert list(notebook_rules.heading_levels(page)) == []


def test_labels_are_unique_in_the_book():
    notebooks = {path.name: nbformat.read(path, as_version=4) for path in NOTEBOOKS}
    assert list(link_rules.repeated_labels(notebooks)) == []


def test_every_notebook_is_in_the_table_of_contents():
    assert chapters()
    assert set(NOTEBOOKS) == set((ROOT / "book").glob("*.ipynb"))


def test_chapters_stand_in_the_order_of_their_numbers():
    assert chapters() == sorted(chapters())
