"""The stored notebooks, read as data, follow the rules of the book."""

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from book_tools import link_rules, notebook_rules, repository
from book_tools.normal_form import read
from book_tools.toc import ROOT, chapters, notebook_pages

CHAPTERS = chapters()
NOTEBOOKS = {path.name: read(path) for path in CHAPTERS}
PAGES = [*ROOT.glob("*.md"), *(ROOT / "book").glob("*.md")]
ADDRESS = repository.address()

each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def expect_nothing(messages, path):
    found = list(messages)
    if found:
        pytest.fail(f"{path}:\n  " + "\n  ".join(found), pytrace=False)


@pytest.mark.parametrize("rule", notebook_rules.RULES, ids=lambda rule: rule.__name__)
@each_chapter
def test_rule(path, rule):
    expect_nothing(rule(NOTEBOOKS[path.name]), path)


@each_chapter
def test_file(path):
    expect_nothing(notebook_rules.file_rules(path, ADDRESS), path)


@pytest.mark.parametrize(("number", "path"), list(enumerate(CHAPTERS, start=1)))
def test_number_is_the_place_in_the_table_of_contents(number, path):
    expect_nothing(notebook_rules.number_matches(NOTEBOOKS[path.name], number), path)
    assert path.name.startswith(f"{number:02d}_")


def test_labels_are_unique_in_the_book():
    expect_nothing(link_rules.repeated_labels(NOTEBOOKS), ROOT / "book")


def test_every_notebook_is_in_the_table_of_contents():
    assert CHAPTERS
    assert set(notebook_pages()) == set((ROOT / "book").glob("*.ipynb"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page(path):
    text = path.read_text(encoding="utf-8")
    page = new_notebook(cells=[new_markdown_cell(text)])
    expect_nothing(link_rules.broken_links(page, path), path)
    expect_nothing(link_rules.pictures(page), path)
    expect_nothing(link_rules.link_text(page), path)
