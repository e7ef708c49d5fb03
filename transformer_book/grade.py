"""Grade a folder of students' notebooks, and write a table, FOLDER.csv.

    python -m transformer_book grade FOLDER
    python -m transformer_book grade FOLDER --chapter 4     refuse all other chapters

This runs other people's code: on this computer, as you, and with your network. The
limits of time, memory and output stop accidents. They are no sandbox: code that means
harm can read and delete your files, and write its own grades. Where that matters, grade
in a container or a virtual machine that holds nothing else.

An exercise is graded if its solution in the book calls a grader, `check_…(answer)`. The
cell of a submission that answers it is known by the same call, wherever it stands and
whatever its id is. Each exercise runs in a process of its own, and of the other cells
only those that a student wrote or changed, and those whose names are used: no model is
trained again to grade a mask, and no answer can spoil another. What is printed is
thrown away.
"""

import argparse
import ast
import csv
import json
import multiprocessing
import os
import re
import symtable
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = ["submission", "exercise", "attempted", "right", "mistake", "status"]
CELLS = ["no cell calls its grader", "ok", "ok: several cells, the last attempt counts"]
MEMORY, FILE = 4 * 2**30, 10**7  # the most bytes of memory, and of a file written
LIMIT = re.compile("(?P<memory>MemoryError|can't allocate)|(?P<output>File too large)")

CALL = re.compile(r"\bcheck_\w+(?=\()")
SOLUTION = re.compile(r"# @title Solution (\d+\.\d+)")

# Imported once, for all of them; Windows can only start each process anew.
PROCESSES = multiprocessing.get_context("spawn" if os.name == "nt" else "forkserver")
PROCESSES.set_forkserver_preload(["transformer_lib", "transformer_book.exercises"])


# --- notebooks as data ----------------------------------------------------------------


def read(path: Path) -> list[str]:
    """The code cells of a notebook."""
    try:
        cells = json.loads(path.read_bytes())["cells"]
        code = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        return [re.sub("(?m)^[%!].*", "pass", "".join(source)) for source in code]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("it can't be read as a notebook") from None


def read_chapters() -> dict[str, tuple[dict[str, str], set[str]]]:
    """For each chapter, its exercises by the names of their graders; and its cells."""
    chapters = {}
    for path in sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb")):
        cells = read(path)
        solutions = [(SOLUTION.match(cell), CALL.findall(cell)) for cell in cells]
        exercises = {call: m[1] for m, calls in solutions if m for call in calls}
        chapters[str(int(path.name[:2]))] = exercises, {cell.strip() for cell in cells}
    return chapters


def names(table: symtable.SymbolTable) -> set[str]:
    """The global names in a piece of code."""
    own = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return own.union(*map(names, table.get_children()))


def plan(cells: list[str], known: set[str], grader: str) -> list[str]:
    """The cells, and statements of the book's, that run before a grader is called."""
    steps, needed, unknown = [], set(), symtable.symtable("", "cell", "exec")
    for cell in reversed(cells):
        calls, parts, tables = CALL.findall(cell), [cell], [unknown]
        whole = grader in calls or not (calls or cell.strip() in known)
        with suppress(SyntaxError, ValueError):  # is told when it runs
            if not whole:
                parts = [ast.unparse(part) for part in ast.parse(cell).body]
            tables = [symtable.symtable(part, "cell", "exec") for part in parts]
        for part, table in zip(reversed(parts), reversed(tables), strict=True):
            bound = {each.get_name() for each in table.get_symbols() if each.is_local()}
            if whole or bound & needed:
                needed = (needed | names(table)) - bound
                steps.insert(0, part)
    return steps


# --- a submission ---------------------------------------------------------------------


def grade(path: Path, chapters: dict[str, Any], options: Any) -> Iterator[list[str]]:
    """Yield a row for each exercise of the chapter that a submission belongs to."""
    cells = [cell for cell in read(path) if not SOLUTION.match(cell)]
    calls = [call for cell in cells for call in {*CALL.findall(cell)}]
    number = max(chapters, key=lambda each: len(chapters[each][0].keys() & calls))
    exercises, known = chapters[number]
    if not exercises.keys() & calls:
        raise ValueError("no cell calls a grader of the book")
    if options.chapter not in (None, number):
        raise ValueError(f"it belongs to chapter {number}")
    for grader, exercise in exercises.items():
        told, status, message = CELLS[min(calls.count(grader), 2)], "open", ""
        if grader in calls:
            status, message = watch(path, plan(cells, known, grader), grader, options)
        if status in ("raised", "stopped"):
            told = f"{status}: {message}"
        answers = ["yes" if x else "no" for x in (status != "open", status == "right")]
        yield [exercise, *answers, message if status == "wrong" else "", told]


def watch(path: Path, steps: list[str], grader: str, options: Any) -> list[str]:
    """Run cells in a process of its own; return a status and its message."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as home:
        Path(home, path.name).write_bytes(path.read_bytes())
        ours, theirs = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=work, args=(theirs, home, steps, grader))
        process.start()
        theirs.close()
        try:
            found = ours.poll(options.seconds)
            return json.loads(ours.recv_bytes(10_000)) if found else ["stopped", "time"]
        except (EOFError, OSError, ValueError):
            return ["stopped", "crash"]
        finally:
            with suppress(OSError):  # what it has started, too; Windows has no groups
                getattr(os, "killpg", os.kill)(process.pid, 9)
            process.join()


def work(pipe: Any, home: str, steps: list[str], name: str) -> None:
    """Run cells, in a process of its own, and send what a grader says."""
    os.chdir(home)
    with suppress(ImportError):  # on Windows
        import resource

        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    for stream in 1, 2:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    from transformer_book import exercises
    from transformer_book.exercises.grading import Feedback, Grader

    said, ask = [["open", ""]], Grader.__call__

    def listen(grader: Grader, *answer: Any) -> Feedback:
        feedback = ask(grader, *answer)
        if grader in [getattr(each, name, None) for each in vars(exercises).values()]:
            said.append([feedback.status, feedback.message])
        return feedback

    Grader.__call__ = listen
    namespace = {"__name__": "__main__"}
    for cell in steps:
        try:
            exec(compile(cell, "the cell", "exec"), namespace)
        except BaseException as error:  # SystemExit, too
            if name in CALL.findall(cell):
                said.insert(1, ["raised", f"{type(error).__name__}: {error}"])
    status, message = ([each for each in said if each[0] != "open"] or said)[-1]
    if limit := LIMIT.search(message):
        status, message = "stopped", limit.lastgroup
    pipe.send_bytes(json.dumps([status, " ".join(message.split())[:300]]).encode())
    os._exit(0)  # whatever threads a student has started


# --- all of them ----------------------------------------------------------------------


def main() -> None:
    """Grade the notebooks of a folder, as the command line says."""
    chapters = read_chapters()
    warning = __doc__.split("\n\n")[2]
    parser = argparse.ArgumentParser("python -m transformer_book", description=warning)
    parser.add_argument("command", choices=["grade"])
    parser.add_argument("folder", type=Path, help="where the notebooks are")
    parser.add_argument("--chapter", choices=[*chapters], help="refuse all others")
    parser.add_argument("--seconds", type=float, default=120, help="for an exercise")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if not (chapters and folder.is_dir()):
        parser.error(f"{folder} is no folder, or this is no copy of the repository")
    sys.stdout.write(f"{warning}\n")
    os.chdir(ROOT)  # and out of a folder with a student's torch.py
    os.environ.update(MPLBACKEND="Agg", PYTHONWARNINGS="ignore")
    with open(f"{folder}.csv", "w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(COLUMNS)
        for path in filter(Path.is_file, sorted(folder.rglob("[!.]*"))):
            try:
                rows = [*grade(path, chapters, options)]
            except Exception as error:  # the others are graded all the same
                rows = [["", "no", "no", "", f"no grades: {error}"]]
            name = path.relative_to(folder).as_posix()
            table.writerows([name, *row] for row in rows)
            sys.stdout.write(f"{name}: {len(rows)} rows\n")
