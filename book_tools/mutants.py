"""Change the library in one spot at a time and see whether a test notices.

    python -m book_tools.mutants                       400 mutants, drawn by lot
    python -m book_tools.mutants --sample 0            all of them
    python -m book_tools.mutants --package model       of one package
    python -m book_tools.mutants --again list.txt      those that a list names

Every mutant is a process of its own, forked from one that has collected the tests. It
gets the changed code of one function and runs the tests that reach the changed line, as
coverage saw them, until one fails. Mutants that survive are listed; a table of the
packages ends the list.

Left alone are annotations, docstrings, decorators, what stands outside of functions,
the arguments of exceptions, and strings with a space in them, which are texts for
people. Tests that start another Python see the library as it is.
"""

import argparse
import ast
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest
import torch
from _pytest.runner import runtestprotocol

from book_tools.toc import ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutants"]
# Those of a pair take each other's place.
PAIRS = (
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn), (ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div),
    (ast.BitAnd, ast.BitOr), (ast.Break, ast.Continue),
)  # fmt: skip
SWAPS = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}
SWAPS |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.Div, ast.Pow: ast.Mult}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SURVIVED = ("survived", "reached by no test")
Where = tuple[str, str, int]  # a function: file, qualified name, first line


@dataclass
class Mutant:
    """One change of one function.

    Attributes:
        lines: of the changed statement, in the file.
        change: what stood there and what stands there now.
        code: of the changed function.
        defaults: of the changed function, by the name of the argument.
    """

    where: Where
    lines: range
    change: str
    code: CodeType
    defaults: dict[str, Any]

    @property
    def package(self) -> str:
        """The package of the library that it changes."""
        return Path(self.where[0]).parent.name


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str, Any]]:
    """Yield each change of one node as an object, its field and the new value."""
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)):
        if type(node.op) in SWAPS:
            yield node, "op", SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            swapped = [*node.ops]
            swapped[index] = SWAPS[type(operator)]()
            yield node, "ops", swapped
    elif isinstance(node, ast.Call):
        for index in range(len(node.keywords)):
            yield node, "keywords", node.keywords[:index] + node.keywords[index + 1 :]
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield node, "value", not node.value
        elif isinstance(node.value, (int, float)):
            yield node, "value", node.value + 1
        elif isinstance(node.value, str) and not set(node.value) & set(" \n"):
            yield node, "value", f"XX{node.value}XX"
    # A comparison or a negation is changed by its operator already.
    changed = (ast.Compare, ast.BoolOp, ast.UnaryOp)
    simple = not isinstance(getattr(node, "test", None), changed)
    if isinstance(node, (ast.If, ast.IfExp, ast.While)) and simple:
        yield node, "test", ast.UnaryOp(ast.Not(), node.test)
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.UnaryOp):  # not x, -x, ~x
            yield node, field, value.operand
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if new := _instead(item):
                    yield node, field, [*value[:index], new, *value[index + 1 :]]


def _instead(item: Any) -> ast.AST | None:
    """What takes the place of a part of a list: a statement or an argument."""
    if isinstance(item, ast.UnaryOp):
        return item.operand
    if isinstance(item, (ast.Break, ast.Continue)):
        return SWAPS[type(item)]()
    if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
        is_super = ast.unparse(item).startswith("super().__init__")  # a closure's cell
        return None if is_super else ast.Pass()
    return None


def _changeable(node: ast.AST, lines: range) -> Iterator[tuple[ast.AST, range]]:
    """Yield the parts of a function that may be changed, each with its lines."""
    yield node, lines
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "ctx"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST) and not _is_left_alone(part):
                yield from _changeable(part, _lines(part, lines))


def _is_left_alone(node: ast.AST) -> bool:
    """Whether it is an exception that is raised, or a docstring."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.Raise)


def _lines(node: ast.AST, outer: range) -> range:
    """The lines of a statement, without the statements inside of it."""
    if not isinstance(node, ast.stmt):
        return outer
    inside = getattr(node, "body", None)
    end = max(inside[0].lineno, node.lineno + 1) if inside else node.end_lineno + 1
    return range(node.lineno, end)


def _functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for part in ast.iter_child_nodes(node):
        if isinstance(part, FUNCTIONS):
            yield prefix + part.name, part
        elif isinstance(part, ast.ClassDef):
            yield from _functions(part, f"{prefix}{part.name}.")


def _code(code: CodeType, name: str, line: int) -> CodeType | None:
    """Find the code of a function inside the code of a module."""
    if (code.co_qualname, code.co_firstlineno) == (name, line):
        return code
    inside = (part for part in code.co_consts if isinstance(part, CodeType))
    return next(filter(None, (_code(part, name, line) for part in inside)), None)


def _defaults(function: Any) -> dict[str, Any]:
    """The defaults of a function that are plain values."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    named = zip(positional[::-1], arguments.defaults[::-1], strict=False)
    pairs = [*named, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return {a.arg: ast.literal_eval(d) for a, d in pairs if _is_plain(d)}


def _is_plain(node: ast.AST) -> bool:
    """Whether a default is a number, a string, True, False or None."""
    return isinstance(getattr(node, "operand", node), ast.Constant)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file, in the order of its lines."""
    tree = ast.parse(path.read_text())
    for name, function in _functions(tree):
        first = min(f.lineno for f in (function, *function.decorator_list))
        body = range(function.body[0].lineno, function.end_lineno + 1)
        for node, lines in _changeable(function, body):
            for owner, field, new in changes(node):
                old, before = getattr(owner, field), ast.unparse(node)
                setattr(owner, field, new)
                ast.fix_missing_locations(tree)
                code = _code(compile(tree, str(path), "exec"), name, first)
                removed = _removed(old, new)
                yield Mutant(
                    where=(str(path), name, first),
                    lines=_lines(removed, lines) if removed else lines,
                    change=_difference(before, ast.unparse(node)),
                    code=code,
                    defaults=_defaults(function),
                )
                setattr(owner, field, old)


def _removed(old: Any, new: Any) -> ast.AST | None:
    """The part of a list that was replaced."""
    if not isinstance(old, list) or len(old) != len(new):
        return None
    return next(a for a, b in zip(old, new, strict=True) if a is not b)


def _difference(before: str, after: str) -> str:
    """Two texts, without the lines that they share."""
    a, b = before.splitlines(), after.splitlines()
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    old, new = (" ".join(line.strip() for line in lines[:3]) for lines in (a, b))
    return f"{old}  ->  {new}"


class Runner:
    """A plugin of pytest that takes the place of its loop: every mutant, every test.

    Args:
        mutants: what to try.
        say: writes one line for the reader.
    """

    def __init__(self, mutants: list[Mutant], say: Callable[[str], None]) -> None:
        self.mutants, self.say = mutants, say
        self.ends: list[tuple[Mutant, str]] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what is slow, unless only its file as a whole is."""
        slow_too = SETTINGS["slow_too"]
        items[:] = [
            item
            for item in items
            if item.path.stem in slow_too or not item.get_closest_marker("slow")
        ]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests once, to see which lines they reach, then for each mutant."""
        torch.set_num_threads(1)
        items = {item.nodeid: item for item in session.items}
        seconds, reached = in_child(lambda: watch(session.items))[1]
        for name in sorted(items.keys() - seconds.keys()):
            self.say(f"not used, since it fails or is slow: {name}")
        functions = library_functions()
        gc.freeze()  # what all processes share stays as it is
        kills: Counter[tuple[Where, str]] = Counter()
        started = time.monotonic()
        for number, mutant in enumerate(self.mutants, start=1):
            tests = set()
            for line in mutant.lines:
                tests.update(reached.get(f"{mutant.where[0]}:{line}", ()))
            # First those that have killed others of the same function, then quick ones.
            order = sorted(
                tests & seconds.keys(),
                key=lambda test: (-kills[mutant.where, test], seconds[test]),
            )
            end, killer = try_mutant(
                mutant,
                functions[mutant.where],
                {items[name]: 5 + 10 * seconds[name] for name in order},
            )
            kills[mutant.where, killer] += 1
            self.ends.append((mutant, end))
            if end in SURVIVED:
                self.say(f"{describe(mutant)}  ({end}: {len(order)} tests)")
            if number % 50 == 0:
                minutes = (time.monotonic() - started) / 60
                self.say(f"... {number} mutants in {minutes:.1f} minutes")
        for name in sorted({name for _, name in kills if name}):
            # It must have failed because of the change, not because it ran alone.
            if in_child(lambda test=items[name]: passes(test, None)) != (0, True):
                self.say(f"killed, but fails without a change too: {name}")
        return True


def try_mutant(
    mutant: Mutant, functions: list[FunctionType], limits: dict[pytest.Item, float]
) -> tuple[str, str | None]:
    """Run tests until one fails; return how the mutant ended and that test's name.

    Args:
        mutant: the change.
        functions: those that are changed.
        limits: the tests in their order, and the most seconds that each may take.
    """
    tests = list(limits)
    if not tests:
        return "reached by no test", None

    for function in functions:
        if function.__code__.co_freevars != mutant.code.co_freevars:
            raise ValueError(f"{describe(mutant)}: the closure would be another")

    def work() -> str | None:
        for function in functions:
            change_function(function, mutant)
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            set_alarm(limits[test])
            if not passes(test, following):
                return test.nodeid
        return None

    status, killer = in_child(work)
    if status == -signal.SIGALRM:
        return "timeout", None
    if status:
        return "crashed", None
    return ("killed", killer) if killer else ("survived", None)


def change_function(function: FunctionType, mutant: Mutant) -> None:
    """Give a function the code and the defaults of a mutant."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    function.__code__ = mutant.code
    if old := function.__defaults__:
        named = zip(names[-len(old) :], old, strict=True)
        function.__defaults__ = tuple(mutant.defaults.get(n, v) for n, v in named)
    if old := function.__kwdefaults__:
        function.__kwdefaults__ = {n: mutant.defaults.get(n, v) for n, v in old.items()}


def library_functions() -> dict[Where, list[FunctionType]]:
    """Find the functions that exist, those inside decorators too."""
    found = defaultdict(list)
    for thing in gc.get_objects():
        if type(thing) is FunctionType:  # isinstance would wake lazy modules
            code = thing.__code__
            where = (code.co_filename, code.co_qualname, code.co_firstlineno)
            found[where].append(thing)
    return found


class Watcher:
    """A plugin that tells coverage which test runs, or which shared fixture."""

    def __init__(self, cover: coverage.Coverage) -> None:
        self.cover, self.context = cover, ""
        self.users: dict[str, set[str]] = defaultdict(set)

    def switch(self, context: str) -> str:
        """Enter a context; return the one before."""
        self.cover.switch_context(context)
        before, self.context = self.context, context
        return before

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest
    ) -> Iterator[None]:
        """Count what a shared fixture reaches for all tests that use it."""
        if fixturedef.scope == "function":
            return (yield)
        name = f"{fixturedef.baseid}::{fixturedef.argname}"
        for item in request.session.items:
            if fixturedef.argname in item.fixturenames:
                self.users[name].add(item.nodeid)
        before = self.switch(name)
        try:
            return (yield)
        finally:
            self.switch(before)


def watch(items: list[pytest.Item]) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Run all tests once.

    Returns:
        seconds: of each test that passes and is quick enough.
        reached: the tests that reach a line of the library, by "file:line".
    """
    source = [str(ROOT / "transformer_lib" / name) for name in SETTINGS["packages"]]
    cover = coverage.Coverage(data_file=None, source=source)
    watcher = Watcher(cover)
    items[0].config.pluginmanager.register(watcher)
    seconds, slow_too = {}, SETTINGS["slow_too"]
    cover.start()
    for item, following in zip(items, [*items[1:], None], strict=True):
        watcher.switch(item.nodeid)
        started = time.monotonic()
        passed = passes(item, following)
        needed = time.monotonic() - started
        if passed and needed < slow_too.get(item.path.stem, SETTINGS["slowest"]):
            seconds[item.nodeid] = needed
    cover.stop()
    data, reached = cover.get_data(), defaultdict(set)
    for file in data.measured_files():
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                users = watcher.users.get(context, {context})
                reached[f"{file}:{line}"].update(users)
    return seconds, {line: sorted(tests) for line, tests in reached.items()}


def passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run one test without a word; return whether it passed."""
    return not any(r.failed for r in runtestprotocol(item, False, following))


def set_alarm(seconds: float) -> None:
    """Let this process end after so many seconds, whatever it does."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def in_child(work: Callable[[], Any]) -> tuple[int, Any]:
    """Do some work in a forked process.

    Returns:
        The exit status, negative for a signal, and what the work returned: None or
        what JSON holds.
    """
    with tempfile.TemporaryFile("w+") as answer:
        if (pid := os.fork()) == 0:
            status = 1
            try:
                json.dump(work(), answer)
                answer.flush()
                status = 0
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        answer.seek(0)
        text = answer.read()
        return status, json.loads(text) if text else None


def describe(mutant: Mutant) -> str:
    """One line on a mutant: where, and what was changed."""
    file = Path(mutant.where[0]).relative_to(ROOT)
    return f"{file}:{mutant.lines.start} {mutant.where[1]}: {mutant.change}"


def draw(mutants: list[Mutant], n: int, seed: int) -> list[Mutant]:
    """Draw n mutants by lot, from each package in proportion; 0 takes all."""
    if not 0 < n < len(mutants):
        return mutants
    drawn, lot = [], random.Random(seed)
    for package in SETTINGS["packages"]:
        of_it = [mutant for mutant in mutants if mutant.package == package]
        drawn += lot.sample(of_it, round(n * len(of_it) / len(mutants)))
    return drawn


def table(ends: list[tuple[Mutant, str]]) -> Iterator[str]:
    """The lines of a table: of how many mutants of each package a test failed."""
    for package in [*SETTINGS["packages"], "all"]:
        of_it = [e for mutant, e in ends if package in (mutant.package, "all")]
        killed = sum(end not in SURVIVED for end in of_it)
        if of_it:
            share = killed / len(of_it)
            yield f"{package:12} {killed:5} of {len(of_it):5} killed, {share:6.1%}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m book_tools.mutants",
        description="Change the library in one spot at a time; list what no test sees.",
    )
    parser.add_argument("--package", nargs="+", choices=SETTINGS["packages"])
    parser.add_argument("--sample", type=int, default=400, help="0: all mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the lot")
    parser.add_argument("--again", type=Path, help="what an earlier run has printed")
    chosen = parser.parse_args(arguments)
    packages = chosen.package or SETTINGS["packages"]
    library = ROOT / "transformer_lib"
    files = [file for name in packages for file in (library / name).glob("*.py")]
    mutants = [mutant for file in sorted(files) for mutant in mutants_of(file)]
    if chosen.again:
        named = {line.rpartition("  (")[0] for line in chosen.again.open()}
        drawn = [mutant for mutant in mutants if describe(mutant) in named]
    else:
        drawn = draw(mutants, chosen.sample, chosen.seed)

    out = os.fdopen(os.dup(1), "w", buffering=1)  # where pytest does not capture it
    with out, tempfile.TemporaryDirectory() as folder:
        say = partial(print, file=out)
        say(f"{len(drawn)} of {len(mutants)} mutants")
        runner = Runner(drawn, say)
        tests = [f"tests/{name}.py" for name in SETTINGS["tests"]]
        options = ["-p", "no:cacheprovider", f"--basetemp={folder}/t"]
        status = pytest.main([*tests, "--quiet", *options], plugins=[runner])
        for line in table(runner.ends):
            say(line)
    return status


if __name__ == "__main__":
    sys.exit(main())
