"""Grade a folder of students' notebooks, and write a table, FOLDER.csv.

    python -m transformer_book grade FOLDER
    python -m transformer_book grade FOLDER --chapter 4     refuse all other chapters
    python -m transformer_book grade FOLDER --table FILE    write another table

It runs other people's code: read `WARNING`.

An exercise is graded if its solution in the book calls a grader, `check_…(answer)`. The
cell of a submission that answers it is known by the same call, wherever it stands and
whatever its id is. Each exercise runs in a process of its own, and of the other cells
only what defines a name in use: no model is trained again to grade a mask, and neither
another answer nor an experiment can spoil this one. If that isn't right, it is tried
again with all cells that a student wrote or changed, which may matter without a name.
What is printed or shown is thrown away.
"""

import argparse
import ast
import asyncio
import csv
import inspect
import io
import json
import linecache
import multiprocessing
import os
import re
import symtable
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from transformer_lib.files import write_bytes

WARNING = """\
This runs other people's code: on this computer, as you, and with your network. The
limits of time, memory and output stop accidents. They are no sandbox: code that means
harm can read and delete your files, and write its own grades. Where that matters, grade
in a container or a virtual machine that holds nothing else.
"""
ROOT = Path(__file__).resolve().parent.parent
COLUMNS = ["submission", "exercise", "attempted", "right", "mistake", "status"]
MAX_MEMORY, MAX_FILE = 4 * 2**30, 10**7  # bytes
LIMITS = {  # what an error says that a limit has caused
    "MemoryError": "memory",
    "can't allocate": "memory",
    "File too large": "output",
}

CALL = re.compile(r"\bcheck_\w+(?=\()")
SOLUTION = re.compile(r"# @title Solution (\d+\.\d+)")
TIMED = re.compile(r"\A\s*%%(time|timeit|capture|prun)\b.*\n")  # what follows is Python

# Imported once, for all of them; Windows can only start each process anew.
PROCESSES = multiprocessing.get_context("spawn" if os.name == "nt" else "forkserver")
PROCESSES.set_forkserver_preload(
    ["transformer_book.grade", "transformer_book.exercises"]
)


# --- notebooks as data ----------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """A statement that stands at the top of a cell.

    Attributes:
        code: it, without docstrings, comments and any choice of spaces and quotes: two
            statements that do the same are equal, however they are formatted.
        binds: the names that it defines, or "*" for whatever a module holds.
        uses: the names that it needs, those of its functions included.
    """

    code: str
    binds: frozenset[str]
    uses: frozenset[str]

    @classmethod
    def read(cls, tree: ast.stmt) -> "Statement":
        """Read a statement, and what it binds and uses."""
        augmented = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if ast.get_docstring(node) is not None:
                    node.body = node.body[1:] or [ast.Pass()]
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                augmented.add(node.target.id)
        code = ast.unparse(tree)
        table = symtable.symtable(code, "cell", "exec")
        symbols = table.get_symbols()
        binds = {symbol.get_name() for symbol in symbols if symbol.is_local()}
        read = {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
        inner = set().union(*map(global_names, table.get_children())) - binds
        if isinstance(tree, ast.ImportFrom) and tree.names[0].name == "*":
            binds.add("*")
        return cls(code, frozenset(binds), frozenset(read | inner | augmented))


def global_names(table: symtable.SymbolTable) -> set[str]:
    """The global names in a function or class, and in those inside it."""
    own = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return own.union(*map(global_names, table.get_children()))


@dataclass(frozen=True)
class Cell:
    """A code cell of a notebook.

    Attributes:
        source: its text.
        code: the Python that a notebook makes of it.
        statements: what it consists of; nothing if that is no Python.
        calls: the graders that it calls.
    """

    source: str
    code: str
    statements: tuple[Statement, ...]
    calls: frozenset[str]

    @classmethod
    def read(cls, source: str) -> "Cell":
        """Read the text of a cell, with the lines that only a notebook understands."""
        source = source.replace("\r\n", "\n")
        code, statements = TIMED.sub("", source), ()
        with suppress(RuntimeError):  # hundreds of lines with "!"
            code = TransformerManager().transform_cell(code)
        with suppress(SyntaxError, ValueError):  # is told when it runs
            statements = tuple(map(Statement.read, ast.parse(code).body))
        return cls(source, code, statements, frozenset(CALL.findall(source)))


def read_cells(path: Path) -> list[Cell]:
    """The code cells of a notebook."""
    try:
        cells = json.loads(path.read_bytes())["cells"]
        return [
            Cell.read("".join(cell["source"]))
            for cell in cells
            if cell["cell_type"] == "code"
        ]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("it can't be read as a notebook") from None


@dataclass(frozen=True)
class Chapter:
    """What is known of a chapter of the book.

    Attributes:
        exercises: their numbers, such as "4.2", by the names of their graders.
        statements: the code of every statement of its cells.
    """

    exercises: dict[str, str]
    statements: frozenset[str]

    @classmethod
    def read(cls, path: Path) -> "Chapter":
        """Read a chapter's notebook."""
        exercises, statements = {}, set()
        for cell in read_cells(path):
            statements |= {statement.code for statement in cell.statements}
            if solution := SOLUTION.match(cell.source):
                exercises |= dict.fromkeys(cell.calls, solution[1])
        return cls(exercises, frozenset(statements))

    def holds(self, cell: Cell) -> bool:
        """Whether everything in a cell stands in the chapter."""
        return all(statement.code in self.statements for statement in cell.statements)


def read_chapters() -> dict[str, Chapter]:
    """The chapters by their numbers."""
    paths = sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))
    return {str(int(path.name[:2])): Chapter.read(path) for path in paths}


# --- which code runs ------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """Code that may run: a cell of a student's, or a statement of another cell."""

    code: str
    statements: tuple[Statement, ...]
    always: bool

    @property
    def binds(self) -> frozenset[str]:
        """The names that it defines."""
        return frozenset().union(*(part.binds for part in self.statements))


def plan(
    cells: list[Cell], chapter: Chapter, grader: str, all_own: bool = False
) -> list[str]:
    """What runs to grade an exercise, in the order of the notebook.

    The cells that call the grader, and what defines a name in use: of a student's own
    cells the whole one, of others the statement. A name that nothing above defines may
    be one that is defined further down: the student has run that cell before.

    Args:
        cells: of the submission.
        chapter: that it belongs to.
        grader: of the exercise.
        all_own: run all cells of the student's own.
    """
    steps = []
    for cell in cells:
        if grader in cell.calls:
            steps.append(Step(cell.code, cell.statements, always=True))
        elif cell.calls or chapter.holds(cell):
            steps += [
                Step(part.code, (part,), always=False) for part in cell.statements
            ]
        else:
            steps.append(Step(cell.code, cell.statements, always=all_own))
    chosen, missing = choose(steps, set())
    optional = [step for step in steps if not step.always]
    defined = frozenset().union(*(step.binds for step in optional))
    return choose(optional, missing & defined)[0] + chosen


def choose(steps: list[Step], needed: set[str]) -> tuple[list[str], set[str]]:
    """Choose the steps that define what is needed after them.

    Returns:
        Their code, and the names that no step defines.
    """
    chosen = []
    for step in reversed(steps):
        in_use = step.binds & needed or (needed and "*" in step.binds)
        if step.always or in_use:
            chosen.insert(0, step.code)
            for part in reversed(step.statements):
                needed = (needed - part.binds) | part.uses
    return chosen, needed


# --- a submission ---------------------------------------------------------------------


def grade(path: Path, chapters: dict[str, Chapter], options: Any) -> list[list[str]]:
    """Make a row for each exercise of the chapter that a submission belongs to."""
    cells = [cell for cell in read_cells(path) if not SOLUTION.match(cell.source)]
    calls = frozenset().union(*(cell.calls for cell in cells))
    number = max(chapters, key=lambda n: len(chapters[n].exercises.keys() & calls))
    chapter = chapters[number]
    if not chapter.exercises.keys() & calls:
        raise ValueError("no cell calls a grader of the book")
    if options.chapter not in (None, number):
        raise ValueError(f"it belongs to chapter {number}")
    return [
        [exercise, *grade_exercise(path, cells, chapter, grader, options.seconds)]
        for grader, exercise in chapter.exercises.items()
    ]


def grade_exercise(
    path: Path, cells: list[Cell], chapter: Chapter, grader: str, seconds: float
) -> list[str]:
    """Grade one exercise: the row without its first two columns."""
    n_answers = sum(grader in cell.calls for cell in cells)
    if n_answers == 0:
        return ["no", "no", "", "no cell calls its grader"]
    steps = plan(cells, chapter, grader)
    result, message = run_apart(path, steps, grader, seconds)
    with_own = plan(cells, chapter, grader, all_own=True)
    if result not in ("right", "stopped") and with_own != steps:
        again = run_apart(path, with_own, grader, seconds)
        if again[0] != "stopped":
            result, message = again
    note = "ok" if n_answers == 1 else "ok: several cells, the last attempt counts"
    if result in ("raised", "stopped"):
        note = f"{result}: {message}"
    attempted = "no" if result == "open" else "yes"
    right = "yes" if result == "right" else "no"
    return [attempted, right, message if result == "wrong" else "", note]


def run_apart(
    path: Path, steps: list[str], grader: str, seconds: float
) -> tuple[str, str]:
    """Run code in a process of its own, beside a copy of the notebook.

    Returns:
        "open", "wrong", "right", "raised" or "stopped", and a message.
    """
    with TemporaryDirectory(ignore_cleanup_errors=True) as home:
        Path(home, path.name).write_bytes(path.read_bytes())
        receiver, sender = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=work, args=(sender, home, steps, grader))
        process.start()
        sender.close()
        try:
            if not receiver.poll(seconds):
                return "stopped", "time"
            result, message = json.loads(receiver.recv_bytes(10_000))
            return result, message
        except (EOFError, OSError, ValueError):
            return "stopped", "crash"
        finally:
            if os.name != "nt":
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)  # what it has started, too
            process.kill()
            process.join()


# --- in a process of its own ----------------------------------------------------------


class Shell:
    """Stands for the notebook's shell: what it is asked to run or to show, it skips."""

    def getoutput(self, command: str) -> list[str]:
        """`files = !ls`: no lines."""
        return []

    def __getattr__(self, name: str) -> Any:
        return skip


def skip(*objects: Any, **options: Any) -> None:
    """Do nothing, in place of `display`."""


def limit_this_process() -> None:
    """Stop accidents, where the system can: limits, silence, a group to end as one."""
    with suppress(ImportError):  # on Windows
        import resource

        os.setsid()
        # Memory that can be written. A limit of addresses would be the end of V8, which
        # draws some charts: it reserves 1.4 TB of them, and uses next to nothing.
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
    for stream in 1, 2:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def run_cell(code: str, number: int, namespace: dict, runner: asyncio.Runner) -> None:
    """Run code as a notebook does, which can wait and can find its own source."""
    name = f"<cell {number}>"
    linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name
    compiled = compile(code, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waiting = eval(compiled, namespace)
    if inspect.iscoroutine(waiting):
        runner.run(waiting)


def work(pipe: Connection, home: str, steps: list[str], name: str) -> None:
    """Run code, in a process of its own, and send what a grader says."""
    os.chdir(home)
    limit_this_process()
    from transformer_book import exercises
    from transformer_book.exercises.grading import Feedback, Grader

    attempts: list[Feedback] = []
    errors: list[str] = []
    ask = Grader.__call__

    def listen(grader: Grader, *answer: Any) -> Feedback:
        feedback = ask(grader, *answer)
        # The exercise's own, in whichever module of the book a cell has imported.
        own = [getattr(module, name, None) for module in vars(exercises).values()]
        if grader in own and feedback.status != "open":
            attempts.append(feedback)
        return feedback

    Grader.__call__ = listen
    namespace = {"__name__": "__main__", "display": skip, "get_ipython": Shell}
    runner = asyncio.Runner()
    for number, code in enumerate(steps):
        try:
            run_cell(code, number, namespace, runner)
        except BaseException as error:  # SystemExit, too
            if name in CALL.findall(code):
                errors.append(f"{type(error).__name__}: {error}")
    if attempts:
        result, message = attempts[-1].status, attempts[-1].message
    elif errors:
        result, message = "raised", errors[0]
    else:
        result, message = "open", ""
    for sign, limit in LIMITS.items():
        if sign in message:
            result, message = "stopped", limit
    pipe.send_bytes(json.dumps([result, " ".join(message.split())[:300]]).encode())
    os._exit(0)  # whatever threads a student has started


# --- all of them ----------------------------------------------------------------------


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def write_table(path: Path, rows: Iterable[list[str]]) -> None:
    """Write a table that spreadsheets read as what it is, whole or not at all.

    Quotes keep what another country's spreadsheet would split, and the mark in front
    says that this is UTF-8. A file's name may be none: what isn't is a question mark.
    """
    text = io.StringIO()
    table = csv.writer(text, quoting=csv.QUOTE_ALL)
    table.writerows(map(harmless, row) for row in rows)
    write_bytes(path, text.getvalue().encode("utf-8-sig", errors="replace"))


def main() -> None:
    """Grade the notebooks of a folder, as the command line says."""
    chapters = read_chapters()
    parser = argparse.ArgumentParser("python -m transformer_book", description=WARNING)
    parser.add_argument("command", choices=["grade"])
    parser.add_argument("folder", type=Path, help="where the notebooks are")
    parser.add_argument("--chapter", choices=[*chapters], help="refuse all others")
    parser.add_argument("--seconds", type=float, default=120, help="for an exercise")
    parser.add_argument("--table", type=Path, help="to write; by default FOLDER.csv")
    options = parser.parse_args()
    folder = options.folder.resolve()
    table = (options.table or Path(f"{folder}.csv")).resolve()
    if not (chapters and folder.is_dir()):
        parser.error(f"{folder} is no folder, or this is no copy of the repository")
    if table.exists():
        parser.error(
            f"{table} is there, and may hold marks of yours: move it, or name another "
            "table with --table FILE"
        )
    sys.stdout.reconfigure(errors="replace")
    sys.stdout.write(f"{WARNING}\n")
    os.chdir(ROOT)  # and out of a folder with a student's torch.py
    os.environ.update(MPLBACKEND="Agg", PYTHONWARNINGS="ignore")
    rows = [COLUMNS]
    for path in filter(Path.is_file, sorted(folder.rglob("*"))):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue  # Jupyter's copies of submissions, say
        try:
            graded = grade(path, chapters, options)
        except Exception as error:  # the others are graded all the same
            graded = [["", "no", "no", "", f"no grades: {error}"]]
        name = path.relative_to(folder).as_posix()
        rows += [[name, *row] for row in graded]
        sys.stdout.write(f"{name}: {len(graded)} rows\n")
    write_table(table, rows)
    sys.stdout.write(f"The grades are in {table}\n")
