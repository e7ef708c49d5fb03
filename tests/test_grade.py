"""A planted folder of submissions: each gets its rows, whatever is wrong with it."""

import ast
import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from book._ext.students import for_students
from book._ext.toc import chapters
from transformer_book import grade
from transformer_book.exercises.masks import check_window_mask
from transformer_book.grade import ROOT, Cell, Chapter

START = "from transformer_book.exercises.masks import *\nimport ctypes, os, sys"
CALL = "check_window_mask(window_mask)"
ASK = f"def window_mask(length, window):\n    %s\n\n\n{CALL}"
RIGHT = "return causal_mask(length).triu(1 - window)"
COMMAND = ["-m", "transformer_book", "grade", ".", "--chapter", "4", "--seconds", "12"]
CHAPTER = for_students(nbformat.read(ROOT / "book" / "04_masks.ipynb", 4))
LATE, AHEAD = (mistake.sentence for mistake in check_window_mask.mistakes)


def bare_notebook(*cells: str) -> str:
    return nbformat.writes(new_notebook(cells=[*map(new_code_cell, cells)]))


def notebook(*cells: str) -> str:
    return bare_notebook(START, *cells)


def reformat(source: str) -> str:
    """Other quotes, other line breaks, spaces at the ends of lines, no comments."""
    return ast.unparse(ast.parse(source)).replace("\n", "  \r\n")


def wrong(mistake: str, status: str = "ok") -> tuple[str, ...]:
    return "4.2", "yes", "no", mistake, status


def refused(reason: str) -> tuple[str, ...]:
    return "", "no", "no", "", f"no grades: {reason}"


OK = ("4.2", "yes", "yes", "", "ok")
TWICE = ("4.2", "yes", "yes", "", "ok: several cells, the last attempt counts")
OPEN = ("4.2", "no", "no", "", "ok")
BOOK = [  # the cells of the chapter that ask nothing
    cell.source
    for cell in CHAPTER.cells
    if cell.cell_type == "code" and not re.search(r"check_\w+\(|%pip", cell.source)
]
ABOVE = f"def window_mask(length, window) -> torch.Tensor:\n    {RIGHT}"
DRAWS = "from py_mini_racer import MiniRacer\nassert MiniRacer().eval('1 + 1') == 2"
ALLOWED = """\
display(sys)
sys.path?
files = !ls
%pip install nothing
for file in files:
    !cat {file}
import asyncio
await asyncio.sleep(0)"""
# Answers to exercise 4.2, and what their rows say.
ANSWERS = {
    "right": (RIGHT, OK),
    "late": (RIGHT.replace("1 -", "-"), wrong(LATE)),
    "ahead": (f"mask = {RIGHT[7:]}; return mask | mask.T", wrong(AHEAD)),
    "open": ("...", OPEN),
    "forged": (f"{RIGHT}\n\n\ncheck_window_mask = print", OPEN),
    "raises": ("1 / 0", wrong("your function raised ZeroDivisionError")),
    "name": (f"{RIGHT}\n\n\nnowhere", wrong("", "raised: NameError: name 'nowhere'")),
    "grammar": (f"{RIGHT}\n\n\nif:", wrong("", "raised: SyntaxError: invalid syntax")),
    "leaves": ("sys.exit()", wrong("", "raised: SystemExit")),
    "loop": ("while True: pass", wrong("", "stopped: time")),
    "exit": ("os._exit(0)", wrong("", "stopped: crash")),
    "segfault": ("ctypes.string_at(0)", wrong("", "stopped: crash")),
    "tensor": ("torch.empty(2**31)", wrong("", "stopped: memory")),
    "writes": ("open('large', 'wb').write(bytes(10**8))", wrong("", "stopped: output")),
    "prints": (f"print('x' * 10**7)\n    {RIGHT}", OK),
    "forks": (f"os.fork()\n    {RIGHT}", OK),
    "source": (f"import inspect; inspect.getsource(window_mask)\n    {RIGHT}", OK),
    "deletes": (f"[os.remove(name) for name in os.listdir()]\n    {RIGHT}", OK),
}
SUBMISSIONS = {
    f"{name}.ipynb": (notebook(ASK % text), row)
    for name, (text, row) in ANSWERS.items()
} | {
    "twice.ipynb": (notebook(ASK % "1 / 0", ASK % RIGHT, ASK % "..."), TWICE),
    "crash.ipynb": (notebook("os._exit(0)", "n = os._exit(1)", ASK % RIGHT), OK),
    "effect.ipynb": (
        notebook("n = [9]", "n[0] = 1", ASK % RIGHT.replace("1", "n[0]")),
        OK,
    ),
    "draws.ipynb": (notebook(f"{DRAWS}\n{ASK % RIGHT}"), OK),
    "touched.ipynb": (bare_notebook(*map(reformat, [*BOOK, ASK % RIGHT])), OK),
    "allowed.ipynb": (notebook(f"%%time\n{ALLOWED}\n{ASK % RIGHT}"), OK),
    "above.ipynb": (bare_notebook(ABOVE, *BOOK, CALL), OK),
    "other.ipynb": (notebook("check_softmax(...)"), refused("it belongs to chapter 2")),
    "empty.ipynb": (notebook(), refused("no cell calls a grader of the book")),
    "essay.ipynb": ("No notebook.", refused("it can't be read as a notebook")),
    "random.py": ("raise SystemExit", refused("it can't be read as a notebook")),
    "torch.py": ("raise SystemExit", refused("it can't be read as a notebook")),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    (folder := tmp_path_factory.mktemp("homework")).joinpath("group").mkdir()
    nbformat.write(CHAPTER, folder / "group" / "whole.ipynb")
    for name, (text, _) in SUBMISSIONS.items():
        (folder / name).write_text(text, encoding="utf-8")
    output = subprocess.check_output([sys.executable, *COMMAND], cwd=folder, text=True)
    assert "They are no sandbox" in " ".join(output.split())
    assert len([*folder.rglob("*.*")]) == 1 + len(SUBMISSIONS), "a file is gone"
    return [*csv.reader(Path(f"{folder}.csv").read_text("utf-8-sig").splitlines())]


@pytest.mark.slow  # two dozen submissions, in processes that may have to be ended
@pytest.mark.parametrize("name", SUBMISSIONS)
def test_a_submission_gets_its_row_whatever_is_wrong_with_it(rows, name):
    *expected, mistake, status = SUBMISSIONS[name][1]
    own = [row for row in rows if row[0] == name]
    [graded] = (row[1:] for row in own if row[-1] != "no cell calls its grader")
    assert graded[:3] == expected and graded[4].startswith(status)
    assert mistake in graded[3] and bool(mistake) == bool(graded[3])
    assert len(own) == (4 if graded[0] else 1)


CELLS = "import torch", "x = 1\nprint(x)", "y = x + 1", "x = 2", "f = lambda: y"
SAYS = 'def g():\n    """It\n    is 1."""\n    return 1'
SAYS_ALIKE = "def g( ):\r\n  'It is 1.'  # one\r\n  return (1)\r\n"


@pytest.mark.parametrize(
    ("cells", "steps"),
    [
        # What defines a name in use, by the last definition above it, and no more.
        ([*CELLS, "check_a(y)"], "x = 1 | y = x + 1 | check_a(y)"),
        (["x=1 ; print( x )  # one", "check_a(x)"], "x = 1 | check_a(x)"),
        ([SAYS_ALIKE, "check_a(3)"], "check_a(3)"),
        ([*CELLS[1:3], "check_b(x)\nz = y", "check_a(3)"], "check_a(3)"),
        (["z = 4\ncheck_b(z)", "check_a(z)"], "z = 4 | check_a(z)"),
        # A cell that a student wrote or changed runs whole, if it runs.
        (["x = 3\nprint(x)", "check_a(3)"], "check_a(3)"),
        (["x = 3\nprint(x)", "check_a(x)"], "x = 3\nprint(x) | check_a(x)"),
        (["from a import *", "check_a(x)"], "from a import * | check_a(x)"),
        ([*CELLS[:2], "x = x * 3", "check_a(x)"], "x = 1 | x = x * 3 | check_a(x)"),
        ([*CELLS[:2], "x += 3", "check_a(x)"], "x = 1 | x += 3 | check_a(x)"),
        (["check_a(", "x = 1"], "check_a("),
        # What is defined further down has run before.
        (["check_a(torch)", *CELLS], "import torch | check_a(torch)"),
        (
            ["g = f", *CELLS, "check_a(g)"],
            "x = 1 | y = x + 1 | f = lambda: y | g = f | check_a(g)",
        ),
    ],
)
def test_only_what_an_answer_needs_runs(cells, steps):
    book = [Cell.read(cell) for cell in (*CELLS, SAYS)]
    known = frozenset(part.code for cell in book for part in cell.statements)
    chapter = Chapter({}, known)
    chosen = grade.plan([*map(Cell.read, cells)], chapter, "check_a")
    assert " | ".join(code.strip() for code in chosen) == steps


def test_all_cells_of_a_students_own_can_run():
    cells = map(Cell.read, ["x = 1", "y = [x]", "y[0] = 2", "check_b(y)", "check_a(3)"])
    chapter = Chapter({}, frozenset(["x = 1"]))
    chosen = grade.plan([*cells], chapter, "check_a", all_own=True)
    assert [code.strip() for code in chosen] == [
        "x = 1",
        "y = [x]",
        "y[0] = 2",
        "check_a(3)",
    ]


def test_a_table_is_harmless_to_spreadsheets_and_holds_any_name(tmp_path):
    row = ["=cmd|' /C calc'!A0", "+1", "-1", "@a", "\ta", "a;=1", "3-1", "Mü\udcfc"]
    grade.write_table(tmp_path / "a.csv", [row])
    content = (tmp_path / "a.csv").read_bytes().decode("utf-8")
    assert content.startswith("\ufeff")
    cells = content.removeprefix("\ufeff").removesuffix("\r\n").split(",")
    safe = ["'=cmd|' /C calc'!A0", "'+1", "'-1", "'@a", "'\ta", "a;=1", "3-1", "Mü?"]
    assert cells == [f'"{text}"' for text in safe]


@pytest.fixture
def homework(tmp_path, monkeypatch):
    """A folder with one submission, about to be graded."""
    (folder := tmp_path / "homework").mkdir()
    (folder / "a.ipynb").write_text(notebook(ASK % RIGHT), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", {**os.environ})
    monkeypatch.setattr(sys, "argv", ["transformer_book", "grade", "homework"])
    monkeypatch.setattr(grade, "read_chapters", lambda: {"4": Chapter({}, frozenset())})
    return folder


def test_a_table_that_is_there_stays_and_another_can_be_named(homework, capsys):
    table, other = homework.with_suffix(".csv"), homework.with_name("other.csv")
    table.write_text("marks", encoding="utf-8")
    (copies := homework / ".ipynb_checkpoints").mkdir()
    (copies / "a.ipynb").write_bytes((homework / "a.ipynb").read_bytes())
    with pytest.raises(SystemExit):
        grade.main()
    assert "with --table FILE" in " ".join(capsys.readouterr().err.split())
    sys.argv += ["--table", "other.csv"]
    grade.main()
    assert table.read_text(encoding="utf-8") == "marks"
    assert "checkpoints" not in other.read_text(encoding="utf-8-sig")
    assert "no cell calls a grader" in other.read_text(encoding="utf-8-sig")


def test_a_table_is_written_after_the_last_grade_or_not_at_all(homework, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(grade, "grade", interrupt)
    with pytest.raises(KeyboardInterrupt):
        grade.main()
    assert [path.name for path in homework.parent.iterdir()] == ["homework"]


@pytest.mark.slow
def test_a_students_notebook_is_open_and_has_neither_solutions_nor_outputs(rows):
    whole = [row[2:] for row in rows if row[0] == "group/whole.ipynb"]
    assert whole == [[*OPEN[1:]]] * 4
    assert not any(cell.get("outputs") for cell in CHAPTER.cells)
    assert "# @title Solution" not in nbformat.writes(CHAPTER)


def test_the_page_for_teachers_has_the_chapters_own_minutes():
    page = (ROOT / "book" / "for_teachers.md").read_text(encoding="utf-8")
    stated = re.findall(r"(?m)^\| \[\d+\]\((\S+)\) .*? \| (\d+) \| (.*?) \|$", page)
    assert [name for name, *_ in stated] == [path.name for path in chapters()]
    for name, minutes, exercises in stated:
        text = (ROOT / "book" / name).read_text(encoding="utf-8")
        assert f"Core path {minutes} minutes" in text
        solved = re.findall(r"# @title Solution (\d+\.\d+)", text)
        assert solved == re.findall(r"(\d+\.\d+) \(", exercises)
