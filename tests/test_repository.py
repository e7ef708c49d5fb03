"""The address of the repository is set once and the same everywhere."""

import subprocess
import sys

import nbformat
import pytest
from good_notebook import ADDRESS, PAGE_NAME, good_page

from book_tools import repository
from book_tools.notebook_rules import stamped
from book_tools.output_rules import stored_form
from book_tools.toc import ROOT

OTHER = "https://github.com/some-one/an.other"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "_config.yml").write_text(
        f"title: T\nrepository:\n  url: {ADDRESS}  # set here\n  branch: main\n"
    )
    (tmp_path / "README.md").write_text(
        f"Clone {ADDRESS}, or see [another]({ADDRESS}-two).\n"
        "[Colab](https://colab.research.google.com/github/owner/name/blob/main/x)\n"
    )
    (tmp_path / "CITATION.cff").write_text(f'repository-code: "{ADDRESS}"\n')
    book = tmp_path / "book"
    book.mkdir()
    (book / "index.md").write_text("Nothing to stamp.\n")
    nbformat.write(good_page(), book / PAGE_NAME)
    return tmp_path


def test_stamp_changes_every_mention_and_executes_nothing(project):
    path = project / "book" / PAGE_NAME
    changed = repository.stamp(OTHER + ".git/", project)
    assert {file.name for file in changed} == {
        "_config.yml",
        "README.md",
        "CITATION.cff",
        PAGE_NAME,
    }
    assert repository.address(project) == OTHER
    assert (project / "README.md").read_text() == (
        f"Clone {OTHER}, or see [another]({ADDRESS}-two).\n"
        "[Colab](https://colab.research.google.com/github/some-one/an.other"
        "/blob/main/x)\n"
    )
    assert "# set here" in (project / "_config.yml").read_text()
    after = nbformat.read(path, as_version=4)
    assert list(stamped(after, path, OTHER)) == []
    assert list(stored_form(after, path)) == []
    before = [cell.get("outputs") for cell in good_page().cells]
    assert [cell.get("outputs") for cell in after.cells] == before


def test_stamp_twice_or_there_and_back_leaves_no_difference(project):
    before = {path: path.read_bytes() for path in repository.stamped_files(project)}
    assert repository.stamp(ADDRESS, project) == []
    repository.stamp(OTHER, project)
    repository.stamp(ADDRESS, project)
    after = {path: path.read_bytes() for path in repository.stamped_files(project)}
    assert after == before


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://github.com/owner",
        "https://example.org/owner/name",
        "http://github.com/owner/name",
        "https://github.com/owner/name; ls",
        'https://github.com/owner/na"me',
    ],
)
def test_stamp_refuses_what_is_no_address(project, url, capsys):
    with pytest.raises(ValueError, match="not an address like"):
        repository.stamp(url, project)
    assert repository.main([url]) == 1
    assert "error: not an address" in capsys.readouterr().err
    assert repository.address(project) == ADDRESS


def test_a_clone_on_this_computer_is_for_named_notebooks_only(project):
    with pytest.raises(ValueError, match="name the notebooks"):
        repository.stamp("file:///some/clone", project)
    path = project / "book" / PAGE_NAME
    assert repository.main(["git+file:///some/clone", str(path)]) == 0
    cell = nbformat.read(path, as_version=4).cells[1]
    assert 'book = "file:///some/clone"' in cell.source
    assert repository.address(project) == ADDRESS


@pytest.mark.parametrize(
    ("url", "refused"), [(repository.DEFAULT, True), (ADDRESS, False)]
)
def test_a_book_without_an_address_installs_nothing(url, refused):
    """A stranger may own the name that stands for an address."""
    asked = []
    code = repository.bootstrap(url).replace("%pip", "install('%pip")
    code = code.replace("transformer_lib", "no_such_library") + "')"
    try:
        exec(code, {"install": asked.append})
    except RuntimeError as error:
        assert refused and f"{url} is no address" in str(error)
        assert asked == []
    else:
        assert not refused and len(asked) == 1


def test_a_notebook_without_bootstrap_cannot_be_stamped():
    notebook = good_page()
    del notebook.cells[1]
    with pytest.raises(ValueError, match="no bootstrap cell"):
        repository.stamp_bootstrap(notebook, ADDRESS)


def test_the_project_names_one_address():
    """The chapters are looked at by test_book.py."""
    address = repository.address()
    assert f'repository-code: "{address}"' in (ROOT / "CITATION.cff").read_text()
    assert f"git clone {address}" in (ROOT / "README.md").read_text()
    if address != repository.DEFAULT:
        for path in repository.stamped_files():
            assert "OWNER/REPO" not in path.read_text(encoding="utf-8"), path


def test_it_runs_where_nothing_of_the_book_is_installed():
    block = "import sys; sys.modules.update(dict.fromkeys(sys.argv[1].split()))"
    absent = "transformer_lib myst_parser sphinx sphinx_external_toc nbstripout"
    code = f"{block}; import book_tools.repository"
    subprocess.run([sys.executable, "-c", code, absent], cwd=ROOT, check=True)
