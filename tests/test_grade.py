"""A planted folder of submissions: each gets its rows, whatever is wrong with it."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from book_tools.students import for_students
from book_tools.toc import chapters
from transformer_book.exercises.masks import check_window_mask
from transformer_book.grade import ROOT

START = "from transformer_book.exercises.masks import *\nimport ctypes, os, sys\n"
ASK = "def window_mask(length, window):\n    %s\n\n\ncheck_window_mask(window_mask)"
RIGHT = "return causal_mask(length).triu(1 - window)"
COMMAND = ["-m", "transformer_book", "grade", ".", "--chapter", "4", "--seconds", "12"]
CHAPTER = for_students(nbformat.read(ROOT / "book" / "04_masks.ipynb", 4))
LATE, AHEAD = (sentence for sentence, *_ in check_window_mask.mistakes)


def notebook(*cells: str) -> str:
    cells = [new_code_cell(START + cell) for cell in cells]
    return nbformat.writes(new_notebook(cells=cells))


def wrong(mistake: str, status: str = "ok") -> tuple[str, ...]:
    return "4.2", "yes", "no", mistake, status


def refused(reason: str) -> tuple[str, ...]:
    return "", "no", "no", "", f"no grades: {reason}"


OK = ("4.2", "yes", "yes", "", "ok")
TWICE = ("4.2", "yes", "yes", "", "ok: several cells, the last attempt counts")
OPEN = ("4.2", "no", "no", "", "ok")
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
    "tensor": ("torch.zeros(10**12)", wrong("", "stopped: memory")),
    "writes": ("open('large', 'wb').write(bytes(10**8))", wrong("", "stopped: output")),
    "prints": (f"print('x' * 10**7)\n    {RIGHT}", OK),
    "deletes": (f"[os.remove(name) for name in os.listdir()]\n    {RIGHT}", OK),
}
SUBMISSIONS = {
    f"{name}.ipynb": (notebook(ASK % text), row)
    for name, (text, row) in ANSWERS.items()
} | {
    "twice.ipynb": (notebook(ASK % "1 / 0", ASK % RIGHT, ASK % "..."), TWICE),
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
    told = subprocess.check_output([sys.executable, *COMMAND], cwd=folder, text=True)
    assert "They are no sandbox" in " ".join(told.split())
    assert len([*folder.rglob("*.*")]) == 1 + len(SUBMISSIONS), "a file is gone"
    return [*csv.reader(Path(f"{folder}.csv").read_text("utf-8").splitlines())]


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_a_submission_gets_its_row_whatever_is_wrong_with_it(rows, name):
    *expected, mistake, status = SUBMISSIONS[name][1]
    own = [row for row in rows if row[0] == name]
    [found] = (row[1:] for row in own if row[-1] != "no cell calls its grader")
    assert found[:3] == expected and found[4].startswith(status)
    assert mistake in found[3] and bool(mistake) == bool(found[3])
    assert len(own) == (4 if found[0] else 1)


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
