"""The notebooks as students get them: nothing leads to the solutions."""

import nbformat
import pytest

from book._ext.students import for_students, without_colab
from book._ext.toc import ROOT, notebook_pages

COLAB = "https://colab.research.google.com/github/a/b/blob/main/book/04_masks.ipynb"
LINK = f"[Open this chapter in Colab]({COLAB})"


@pytest.mark.parametrize("path", notebook_pages(), ids=lambda path: path.stem)
def test_a_students_notebook_holds_no_way_to_the_solutions(path):
    notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    for cell in for_students(notebook).cells:
        assert "colab.research" not in cell.source
        assert not cell.source.startswith("# @title Solution")
        assert not cell.get("outputs") and not cell.get("attachments")


def test_the_other_pages_hold_none_either():
    for path in (ROOT / "book").glob("*.md"):
        assert "colab.research" not in without_colab(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"35 minutes · {LINK}", "35 minutes"),
        (f"# Title\n\n{LINK}\n\nText.", "# Title\n\n\n\nText."),
        (f"First. {LINK} to run it (slowly). Last.", "First. Last."),
        ("[In Colab](05_other.ipynb)", "[In Colab](05_other.ipynb)"),
    ],
)
def test_a_link_to_colab_goes_with_its_sentence(text, left):
    assert without_colab(text) == left
