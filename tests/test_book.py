"""The stored notebooks, read as data, follow the rules of the book."""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import nbformat
import notebook_rules
import pytest
from chapter_rules import glossary_terms

from book._ext import pencil_page, repository
from book._ext.sphinx_html import ask_link
from book._ext.toc import ROOT, chapters, notebook_pages

NOTEBOOKS = notebook_pages()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    assert notebook_rules.complaints(path) == []


def test_the_table_of_contents_holds_every_notebook_in_the_order_of_its_number():
    assert chapters() == sorted(chapters()) != []
    assert set(NOTEBOOKS) == set((ROOT / "book").glob("*.ipynb"))


def test_the_page_with_the_whole_calculation_is_that_of_the_chapters():
    stored = nbformat.read(ROOT / pencil_page.PAGE, as_version=4)
    made = pencil_page.page()
    assert [cell.source for cell in stored.cells] == [c.source for c in made.cells]


def test_the_glossary_is_in_order_and_each_entry_leads_to_its_chapter():
    path = ROOT / "book/glossary.md"
    terms = list(glossary_terms(path))
    assert terms == sorted(terms, key=str.casefold)
    entries = path.read_text(encoding="utf-8").split("\n## ")[1:]
    page = re.compile(r"\]\(((?:\d\d_\w+|practice)\.ipynb)\)\n*\Z")
    ends = [page.search(entry) for entry in entries]
    assert all(end and (ROOT / "book" / end[1]).exists() for end in ends)


def test_the_pages_about_the_project_lead_to_files_and_targets_that_exist():
    """Sphinx looks at the links of all others."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for page in ROOT.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
            assert (ROOT / link).exists(), f"{page.name}: {link}"
        named = {*re.findall(r"`make ([a-z-]+)", text)} - {"one-file"}  # of the past
        assert named <= {*targets}, page.name
        tests = {*re.findall(r"\btest_[a-z_]+", text)}
        if page.name != "CHANGELOG.md":
            assert tests <= {path.stem for path in ROOT.glob("tests/*.py")}, page.name


def test_the_address_is_stamped_everywhere(tmp_path):
    old, new = repository.address(), "https://github.com/some-one/an.other"
    names = ["_config.yml", "README.md", "CITATION.cff", "book/04_masks.ipynb"]
    (tmp_path / "book").mkdir()
    for name in names:
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    for url, wanted in ((f"{new}.git/", new), (old, old)):
        repository.stamp(url, tmp_path)
        assert repository.address(tmp_path) == wanted
        texts = [(tmp_path / name).read_text("utf-8") for name in names]
        assert all(wanted.removeprefix("https://") in text for text in texts)
        assert repository.colab_link(wanted, "04_masks.ipynb") in texts[-1]
    assert texts == [(ROOT / name).read_text("utf-8") for name in names]
    with pytest.raises(ValueError, match="not an address like"):
        repository.stamp("https://example.org/owner/name", tmp_path)


@pytest.mark.parametrize("url", [repository.UNKNOWN, "https://github.com/a/b"])
def test_a_reader_can_ask_about_a_section_of_a_book_with_an_address(monkeypatch, url):
    monkeypatch.setattr(repository, "address", lambda: url)
    link = ask_link("book/04_masks.ipynb", "A & B", "a-b")
    if url == repository.UNKNOWN:
        assert link == ""
        return
    address = unescape(re.search(r'class="unclear" href="([^"]+)"', link)[1])
    words = parse_qs(urlsplit(address).query)
    assert words["title"] == ["Unclear: A & B"]
    section = "book/04_masks.ipynb\nSection: A & B (#a-b)\nEdition: 0."
    assert section in words["body"][0]


@pytest.mark.parametrize("owned", [False, True])
def test_a_book_without_an_address_installs_nothing(owned):
    """A stranger may own the name that stands for an address."""
    url = "https://github.com/owner/name" if owned else "https://github.com/OWNER/REPO"
    code = repository.bootstrap(url).replace("transformer_lib", "no_such_library")
    asked = []
    try:
        exec(code.replace("%pip", "asked.append('%pip") + "')", {"asked": asked})
    except RuntimeError as error:
        assert "is no address" in str(error)
    assert len(asked) == owned
