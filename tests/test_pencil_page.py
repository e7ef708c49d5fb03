"""The page with the whole calculation is made of the chapters, and prints the same."""

import shutil

import nbformat
import pytest
from nbformat.v4 import (
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_output,
)

from book_tools import pencil_page
from book_tools.pencil_page import differences, names

CONFIG = "repository: {url: https://github.com/owner/name}\n"


def write(root, name, title, *cells):
    """Store a chapter."""
    notebook = new_notebook(cells=[new_markdown_cell(f"# {title}"), *cells])
    nbformat.write(notebook, root / "book" / name)


def pencil(source, printed="", text=True):
    """A cell for the page, and what it printed in its chapter."""
    outputs = [new_output("stream", text=printed)] if printed else []
    return new_code_cell(source, metadata={"pencil": text}, outputs=outputs)


def second(printed="20\n"):
    return pencil("print(20)", printed, "Count *on*.")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A book of three chapters with its page."""
    root = tmp_path_factory.mktemp("made")
    (root / "_config.yml").write_text(CONFIG)
    (root / "book").mkdir()
    first = [pencil("x = 7"), new_code_cell("1 / 0"), pencil("print(x)", "7\n")]
    write(root, "02_b.ipynb", "2. Second", second())
    write(root, "01_a.ipynb", "1. First", *first)
    write(root, "09_c.ipynb", "9. Later", pencil("print('no part')"))
    assert pencil_page.main(root) == 0
    return root


@pytest.fixture
def root(made, tmp_path):
    return shutil.copytree(made, tmp_path / "book_of_three")


def test_the_page_holds_the_cells_of_the_chapters_in_order(root):
    page = nbformat.read(root / "book/pencil.ipynb", as_version=4)
    title, bootstrap, imports, *cells = page.cells
    assert title.source.startswith("# The whole calculation on one page")
    assert "github.com/owner/name" in bootstrap.source
    assert bootstrap.metadata.tags == ["remove-cell"]
    assert "from transformer_book import pencil" in imports.source
    assert [(cell.cell_type, cell.source) for cell in cells] == [
        ("markdown", "## [1. First](01_a.ipynb)"),
        ("code", "x = 7"),
        ("code", "print(x)"),
        ("markdown", "## [2. Second](02_b.ipynb)"),
        ("markdown", "Count *on*."),
        ("code", "print(20)"),
    ]
    code = [cell for cell in cells if cell.cell_type == "code"]
    printed = [output.text for cell in code for output in cell.outputs]
    assert printed == ["7\n", "20\n"]
    assert list(differences(root)) == []


def test_a_second_run_leaves_no_difference(root):
    before = (root / "book/pencil.ipynb").read_bytes()
    assert pencil_page.main(root) == 0
    assert (root / "book/pencil.ipynb").read_bytes() == before


@pytest.mark.parametrize(
    ("title", "cells"),
    [
        ("2. Second", [pencil("print(20)", "20\n")]),
        ("2. Second", [pencil("print(20)", "20\n", "Count.")]),
        ("2. Second", [pencil("print(21)", "20\n", "Count *on*.")]),
        ("2. Second", [new_code_cell("print(20)")]),
        ("2. Second", [second(), pencil("print(21)")]),
        ("2. Other", [second()]),
    ],
)
def test_a_page_that_is_behind_the_chapters_is_seen(root, title, cells):
    write(root, "02_b.ipynb", title, *cells)
    [found] = differences(root)
    assert "is not made of these chapters" in found


def test_a_cell_that_prints_something_else_in_its_chapter_is_seen(root):
    write(root, "02_b.ipynb", "2. Second", new_code_cell("x = 1"), second("21\n"))
    [found] = differences(root)
    assert (
        found == "02_b.ipynb, cell 2: prints something else than on book/pencil.ipynb"
    )


@pytest.mark.slow
@pytest.mark.parametrize("there", [True, False])
def test_a_cell_that_fails_leaves_the_page_as_it_was(root, capsys, there):
    path = root / "book/pencil.ipynb"
    stored = path.read_bytes() if there else path.unlink()
    write(root, "02_b.ipynb", "2. Second", new_code_cell("y = 1"), pencil("print(y)"))
    assert pencil_page.main(root) == 1
    assert "name 'y' is not defined" in capsys.readouterr().err
    assert (path.read_bytes() if path.exists() else None) == stored


def test_a_missing_page_is_seen(root):
    (root / "book/pencil.ipynb").unlink()
    assert "is missing" in "".join(differences(root))


@pytest.mark.parametrize(
    ("source", "needs", "defines"),
    [
        ("x = y", {"y"}, {"x"}),
        ("def f(a):\n    return a + b\n\n\nf(1)", {"f", "b"}, {"f"}),
        ("from a.b import c as d, e", set(), {"d", "e"}),
        ("for i, (j, k) in z: pass", {"z"}, {"i", "j", "k"}),
        ("class A(B):\n    c = D\n    def f(self): return E", set("BDE"), {"A"}),
        ("[x for x in y if x > z]", {"y", "z"}, set()),
        ("f'{x:.2f}'", {"x"}, set()),
        ("x += 1", {"x"}, {"x"}),
        ("lambda a: a + b", {"b"}, set()),
    ],
)
def test_the_names_that_a_cell_uses_and_defines(source, needs, defines):
    found, defined = names(source)
    assert found - defined == needs - defines
    assert defined == defines


def test_the_stored_page_is_that_of_the_chapters():
    assert list(differences()) == []
