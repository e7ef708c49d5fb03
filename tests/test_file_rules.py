"""Rules that need more than one notebook: its file, its neighbors, the settings."""

import nbformat
import pytest
from good_notebook import ADDRESS, FILE_NAME, good_notebook, markdown

from book_tools.link_rules import broken_links, repeated_labels
from book_tools.normal_form import dumps
from book_tools.notebook_rules import file_rules, number_matches, stamped
from book_tools.output_rules import stored_form


@pytest.fixture
def book(tmp_path):
    """A folder with the good chapter and what it links to."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "three.svg").write_text("<svg/>")
    (tmp_path / "glossary.md").write_text(
        "# Glossary\n\n(look-ahead)=\n## Causal mask\n\n```\n# no heading\n```\n"
    )
    (tmp_path / FILE_NAME).write_text(dumps(good_notebook()))
    return tmp_path


def test_good_file_breaks_no_rule(book):
    assert list(file_rules(book / FILE_NAME, ADDRESS)) == []


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("[masks](04_masks.ipynb)", "no file 04_masks.ipynb"),
        ("[masks](glossary.md#mask)", "no anchor #mask in glossary.md"),
        ("[masks](glossary.md#no-heading)", "no anchor #no-heading"),
        ("[four](#four)", "no anchor #four in this page"),
        (f"[four]({FILE_NAME}#four)", f"no anchor #four in {FILE_NAME}"),
        ("[nothing]()", "empty link"),
        ("![four](figures/four.svg)", "no file figures/four.svg"),
        ("[![dots](figures/no.svg)](glossary.md)", "no file figures/no.svg"),
        ('<img alt="a" src="a.png">', "no file a.png"),
        ("[masks](glossary.md#causal-mask)", None),
        ("[masks](glossary.md#look-ahead)", None),
        (f"[three]({FILE_NAME}#three)", None),
        ("[elsewhere](https://example.org/a#b)", None),
        ("`[not](a-link)`", None),
        ("```python\nx[0](key)\n```", None),
    ],
)
def test_links(book, link, message):
    notebook = good_notebook()
    notebook.cells.append(markdown(link))
    found = list(broken_links(notebook, book / FILE_NAME))
    if message is None:
        assert found == []
    else:
        assert len(found) == 1
        assert message in found[0]


def test_stored_form_names_a_leftover_timestamp(book):
    notebook = good_notebook()
    notebook.cells[3].metadata["execution"] = {"iopub.execute_input": "2024-01-01"}
    (book / FILE_NAME).write_text(dumps(notebook))
    assert "not in normal form" in next(stored_form(book / FILE_NAME))


def test_stored_form_refuses_a_big_file(book):
    notebook = good_notebook()
    notebook.cells[1].source += "\n" + 50_000 * "word word "
    (book / FILE_NAME).write_text(dumps(notebook))
    [message] = stored_form(book / FILE_NAME)
    assert message.endswith("bytes, under 500000")


def test_labels_repeated_in_one_chapter_or_in_two():
    one, two = good_notebook(), good_notebook()
    [message] = repeated_labels({"01.ipynb": one, "02.ipynb": two})
    assert message == "02.ipynb, cell 7: label '1.1' is also in 01.ipynb, cell 7"
    two.cells[7].source = "## Two\n\n(here)=\n\n(here)=\n"
    [message] = repeated_labels({"01.ipynb": one, "02.ipynb": two})
    assert message == "02.ipynb, cell 7: label 'here' is also in 02.ipynb, cell 7"


def test_number():
    assert list(number_matches(good_notebook(), 1)) == []
    assert list(number_matches(good_notebook(), 2)) == [
        "title says 1, table of contents 2"
    ]


def test_stamp():
    notebook = good_notebook()
    assert list(stamped(notebook, ADDRESS, FILE_NAME)) == []
    assert len(list(stamped(notebook, ADDRESS + "2", FILE_NAME))) == 2
    assert len(list(stamped(notebook, ADDRESS, "02_counting.ipynb"))) == 1
    notebook.cells[3].source += "\n"
    [message] = stamped(notebook, ADDRESS, FILE_NAME)
    assert message.startswith("the first code cell must be:\ntry:")


def test_stored_text_is_what_nbformat_reads(book):
    stored = nbformat.read(book / FILE_NAME, as_version=4)
    assert stored == good_notebook()
