"""Rules about the exercises of a chapter: each yields what it finds wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nbformat import NotebookNode

from book_tools.notebook_parts import (
    chapter_number,
    headings,
    is_solution,
    printed_text,
    section,
    sections,
)
from book_tools.template import SOLUTION_METADATA

CHECK = re.compile(r"\bcheck_\w+(?=\()")
YOUR_TURN = "...  # your turn"
LEVEL = re.compile(r"(●○○|●●○|●●●) (?:[1-9]\d* minutes|(open))")
HINT = re.compile(r"^<details><summary>(Hint \d+)</summary>$", re.MULTILINE)


def ladder(notebook: NotebookNode) -> Iterator[str]:
    """Exercises tell how hard they are and give hints; the last one is open."""
    steps: list[str] = []
    is_open = False
    for index, cell, number, following in _tasks(notebook):
        if is_open:
            yield f"cell {index}: an exercise after the open one, which is the last"
        yield from _heading(index, cell, number)
        second = next(filter(str.strip, cell.source.splitlines()[1:]), "")
        level = LEVEL.fullmatch(second)
        if not level:
            yield (
                f"cell {index}: {second!r} below the heading, not '●○○ 5 minutes', "
                "'●●○ 10 minutes', '●●● 20 minutes' or '●●● open'"
            )
        steps += [level[1]] if level else []
        if steps != sorted(steps, key=lambda dots: dots.count("●")):
            yield f"cell {index}: easier than the exercise before it"
        hints = HINT.findall(cell.source)
        if hints != [f"Hint {n}" for n in range(1, len(hints) + 1)]:
            yield f"cell {index}: hints are numbered from 1, not {hints}"
        is_open = bool(level and level[2])
        if is_open:
            continue
        if not hints:
            yield f"cell {index}: no hint, <details><summary>Hint 1</summary>"
        yield from _answers(index, number, following)
        if [cell.cell_type for cell in following] == ["code", "code"]:
            stub, solution = following
            if YOUR_TURN not in stub.source:
                yield f"cell {index + 1}: stub without the line '{YOUR_TURN}'"
            if "✓" not in _printed(solution):
                yield f"cell {index + 2}: the check of the solution does not print ✓"
    if not is_open:
        yield "the last exercise is not open: '●●● open' below its heading"
    yield from _strays(notebook)


def _tasks(
    notebook: NotebookNode,
) -> Iterator[tuple[int, NotebookNode, str, list[NotebookNode]]]:
    """Index, cell and number of every task, and the two cells below it."""
    cells = section(notebook, "Exercises").cells
    found = 0
    for n, (index, cell) in enumerate(cells):
        if cell.cell_type == "markdown" and _names(cell):
            found += 1
            number = f"{chapter_number(notebook)}.{found}"
            yield index, cell, number, [cell for _, cell in cells[n + 1 : n + 3]]


def _names(task: NotebookNode) -> list[str]:
    return [text for level, text in headings(task.source) if level == 3]


def _heading(index: int, task: NotebookNode, number: str) -> Iterator[str]:
    name = _names(task)[0]
    if not re.fullmatch(rf"Exercise {re.escape(number)} — \S.*", name):
        yield f"cell {index}: heading {name!r}, not 'Exercise {number} — Title'"


def _answers(index: int, number: str, following: list[NotebookNode]) -> Iterator[str]:
    """The stub and the solution below a task."""
    if [cell.cell_type for cell in following] != ["code", "code"]:
        yield f"cell {index}: a stub and a solution must follow as code cells"
        return
    stub, solution = following
    yield from _stub(index + 1, stub)
    yield from _solution(index + 2, solution, number)
    if set(CHECK.findall(stub.source)) - set(CHECK.findall(solution.source)):
        yield f"cell {index + 2}: solution does not pass the check of its stub"


def _stub(index: int, cell: NotebookNode) -> Iterator[str]:
    if is_solution(cell):
        yield f"cell {index}: solution without a stub before it"
        return
    lines = cell.source.rstrip().splitlines() or [""]
    if not CHECK.search(cell.source) or not re.search(r"check_\w+\(|^\)", lines[-1]):
        yield f"cell {index}: stub must end with the call of its check_ function"
    if "not attempted yet" not in _printed(cell).lower():
        yield f"cell {index}: stub must print 'not attempted yet'"


def _solution(index: int, cell: NotebookNode, number: str) -> Iterator[str]:
    first = cell.source.partition("\n")[0]
    if first != f"# @title Solution {number}":
        yield f"cell {index}: first line {first!r}, not '# @title Solution {number}'"
    for key, value in SOLUTION_METADATA.items():
        if cell.metadata.get(key) != value:
            yield f"cell {index}: solution must have metadata {key!r}: {value!r}"


def _printed(cell: NotebookNode) -> str:
    return "".join(map(printed_text, cell.outputs))


def _strays(notebook: NotebookNode) -> Iterator[str]:
    for part in sections(notebook):
        for index, cell in part.of_type("code"):
            if is_solution(cell) and part.title != "Exercises":
                yield f"cell {index}: solution outside the Exercises"
