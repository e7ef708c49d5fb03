"""The rules for the parts of a chapter: each yields what it finds wrong."""

from __future__ import annotations

import ast
import builtins
import difflib
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode

from book._ext import repository
from book._ext.cards import FROM_THE_SOURCES, can_fail, functions_that_fail
from book._ext.notebook_parts import (
    CLASS,
    DONE,
    OPTIONAL,
    headings,
    printed,
    section,
    sections,
    slug,
    tags,
)
from book._ext.notebooks import ANSWER, PROMPT
from book._ext.toc import chapter_of

# --- the template ---------------------------------------------------------------------

IDEAS = "(the chapter's own sections)"
EXTRAS = "(its optional sections)"


class Part(NamedTuple):
    """A part of a chapter.

    Attributes:
        titles: the headings it may have.
        holds: what its text must hold, in this order.
        needed: the chapters that must have it; chapter 0 has no other part.
    """

    titles: tuple[str, ...]
    holds: str = ""
    needed: range = range(100)


TITLE = re.compile(
    r"# (\d+)\. \S.*\n\n\*(?!\*)(?:.|\n(?!\n))+\?\*\n\n"
    r"Core path \d+ minutes(?: in two sittings)?, everything \d+ minutes · "
    r"\[Open this chapter in Colab\]\((\S+)\)\s*"
)
PARTS = [
    Part(("Where we are",), r"By the end, you'll be able to(.*^(- |\d+\. )){3}"),
    Part((IDEAS,)),
    Part(CLASS, "import", range(1, 13)),
    Part((DONE,), r"That was the core path\..*\]\("),
    Part((EXTRAS,), "", range(0)),
    Part(("Common bugs",)),
    Part(("Exercises",), "^### Exercise"),
    Part((FROM_THE_SOURCES,), "", range(1, 9)),
    Part(("Further reading",), r"\]\(http.*^Next: \[[^]]+\]\(\S+\)\.?\Z"),
]


def title(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Number, question, minutes and link to Colab; then the bootstrap and imports."""
    first, bootstrap, imports = notebook.cells[:3]
    address = repository.address()
    match = TITLE.fullmatch(first.source)
    if not match:
        yield (
            "cell 0: must be '# 3. Title', '*one question?*' and 'Core path 35 "
            "minutes, everything 60 minutes · [Open this chapter in Colab](…)', with "
            "an empty line between them"
        )
    elif int(match[1]) != chapter_of(path):
        yield f"the title says {match[1]}, the file is {path.name}"
    elif match[2] != repository.colab_link(address, path.name):
        yield f"cell 0: the link to Colab leads to {match[2]}"
    if bootstrap.source != repository.bootstrap(address):
        yield f"cell 1 must be:\n{repository.bootstrap(address)}"
    if tags(bootstrap) != ["remove-cell"] or tags(imports) != ["hide-input"]:
        yield "cells 1 and 2: tags 'remove-cell' and 'hide-input'"


def template(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """All parts are there, once and in order, and hold what they must hold."""
    chapter, found = chapter_of(path), sections(notebook)[1:]
    known = {title: part for part in PARTS for title in part.titles}
    order: list[str] = []
    for here in found:
        title = EXTRAS if here.title.endswith(OPTIONAL) else here.title
        part = known.get(title, known[IDEAS])
        if part.titles[0] not in (IDEAS, EXTRAS) or order[-1:] != [part.titles[0]]:
            order.append(part.titles[0])
        text = "\n\n".join(cell.source for _, cell in here.of_type("markdown"))
        if not re.search(part.holds, text.strip(), re.M | re.S):
            yield f"section '## {here.title}' must hold {part.holds!r}"
        if "optional" in title.lower() and title != EXTRAS:
            yield f"section '## {title}': a heading ends with '{OPTIONAL.strip()}'"
    wanted = [p.titles[0] for p in PARTS if chapter in p.needed or p.titles[0] in order]
    for line in difflib.ndiff(wanted, order):
        if line[0] in "+-":
            yield f"section '## {line[2:]}' is missing, repeated or in another place"


# --- what the parts hold --------------------------------------------------------------

WHY = "<details><summary>Why?</summary>"
OFF_THE_PATH = {"Exercises", FROM_THE_SOURCES, "Further reading"}
FOLD = re.compile(r"(?m)^<details><summary>\S.*</summary>\n\n|\n\n</details>$")
SYMPTOM = re.compile(r"^\*\*\S", re.MULTILINE)


def goal(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """The opening shows the map, drawn by a folded cell, and the goal at work."""
    cells = section(notebook, "Where we are").of_type("code")
    shown = [tags(cell) for _, cell in cells if cell.outputs]
    if {"hide-input" in t for t in shown if "hide-cell" not in t} != {True, False}:
        yield "section '## Where we are': no map, or no visible cell shows the goal"


def prompts(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A question before a cell, its folded answer, and the folded reason."""
    core, on_the_path = 0, True
    settings = [cell.metadata.get("mystnb", {}) for cell in notebook.cells]
    folded = sum(each.get("code_prompt_show") == ANSWER for each in settings)
    for part in sections(notebook):
        on_the_path &= part.title != DONE
        for index, cell in part.of_type("markdown"):
            if PROMPT.strip("> *") not in cell.source:
                continue
            folded -= 1
            core += on_the_path
            answer, reason = notebook.cells[index + 1 : index + 3]
            *_, block = cell.source.strip().split("\n\n")
            if not block.startswith(PROMPT) or "?" not in block:
                yield f"cell {index}: must end with the paragraph '{PROMPT}…?'"
            if answer.cell_type != "code" or not answer.outputs:
                yield f"cell {index}: no cell that shows the answer ('{ANSWER}')"
            if not reason.source.startswith(WHY):
                yield f"cell {index}: after the answer must follow '{WHY}'"
    if folded:
        yield f"{folded} cells '{ANSWER}' without a question before them"
    if core < 2:
        yield f"{core} questions '{PROMPT.strip()}' on the core path, not 2 or more"


def bugs(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Each common bug is a symptom in bold, and a cell that shows it."""
    cells = [cell for _, cell in section(notebook, "Common bugs").cells]
    shown = sum(
        cell.cell_type == "markdown" and bool(SYMPTOM.search(cell.source))
        for cell, below in pairwise(cells)
        if below.cell_type == "code"
    )
    if shown < 3:
        yield f"{shown} symptoms in bold with a cell that shows them, not 3"


def checks(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Visible cells show something, and folded checks after them can fail."""
    helpers = functions_that_fail(notebook.cells)
    for part in sections(notebook)[1:]:
        for index, cell in part.of_type("code"):
            asserts = re.search(r"^\s*assert\b", cell.source, re.MULTILINE)
            if cell.source.startswith("# @title Checks"):
                if not can_fail(cell.source, helpers):
                    yield f"cell {index}: these checks cannot fail"
            elif asserts and part.title not in OFF_THE_PATH:
                yield f"cell {index}: move asserts to a cell '# @title Checks' below"


def folds(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """What is folded in a text can be read in the book, in Colab and in JupyterLab."""
    for index, cell in enumerate(notebook.cells):
        good = FOLD.findall(cell.source)
        signs = re.findall(r"</?details", cell.source)
        opened = [sign.strip().startswith("<d") for sign in good]
        if len(good) != len(signs) or opened != [True, False] * (len(good) // 2):
            yield (
                f"cell {index}: '<details><summary>…</summary>' and '</details>' are "
                "lines of their own, with an empty line after the first and before "
                "the second"
            )


FOLDED = {"hide-cell", "hide-input", "remove-input", "remove-cell"}
IN_A_FOLD = re.compile(r"(?ms)^<details>.*?^</details>$")


def recalled(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A name that only folded cells define stands in the text above where it is used.

    On the core path, where nobody has to open a fold. An imported name is known.
    """
    known, folded, told = {*dir(builtins)}, {}, ""
    for part in sections(notebook):
        if part.title == DONE:
            return
        for index, cell in part.cells:
            if cell.cell_type == "markdown":
                told += IN_A_FOLD.sub("", cell.source)
                continue
            if "%pip" in cell.source:
                continue
            names = _names(ast.parse(cell.source))
            known |= names.imported
            if FOLDED & {*tags(cell)}:
                folded |= dict.fromkeys(names.defined - folded.keys(), index)
                continue
            known |= names.defined
            for name in sorted(names.used & folded.keys() - known):
                if not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", told):
                    yield (
                        f"cell {index}: {name!r} is made in cell {folded[name]}, which "
                        f"is folded: show that cell, or say above what {name!r} is"
                    )


class _Names(NamedTuple):
    defined: set[str]
    imported: set[str]
    used: set[str]


def _names(tree: ast.Module) -> _Names:
    """The names that a cell defines, imports, and uses."""
    names = _Names(set(), set(), set())
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.defined.add(name)
            case ast.Name(id=name, ctx=ast.Load()):
                names.used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name):
                names.defined.add(name)
            case ast.alias(name=name, asname=other):
                names.imported.add((other or name).split(".")[0])
    return names


# --- exercises ------------------------------------------------------------------------

LEVEL = re.compile(r"^(●○○|●●○|●●●) (?:[1-9]\d* minutes|open)$", re.MULTILINE)
HINT = re.compile(r"^<details><summary>(Hint \d+)</summary>$", re.MULTILINE)
CHECK = re.compile(r"\bcheck_\w+(?=\()")


def exercises(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A ladder: each has hints, a stub and a solution; the last is open."""
    cells = [cell for _, cell in section(notebook, "Exercises").cells]
    texts = [cell.source if cell.cell_type == "markdown" else "" for cell in cells]
    tasks = [place for place, text in enumerate(texts) if "### " in text]
    steps = [LEVEL.search(cells[place].source) for place in tasks]
    dots = [step[0].count("●") for step in steps if step]
    if None in steps or dots != sorted(dots):
        yield "each exercise says how hard it is ('●○○ 5 minutes'), the hardest last"
    for number, (place, step) in enumerate(zip(tasks, steps, strict=True), start=1):
        name = f"Exercise {chapter_of(path)}.{number}"
        [*_, (_, heading)] = headings(cells[place].source)
        if not heading.startswith(f"{name} — "):
            yield f"{name}: its heading is {heading!r}"
        if (step and step[0].endswith("open")) != (number == len(tasks)):
            yield f"{name}: the last exercise, and no other, is '●●● open'"
        if number < len(tasks):
            yield from _task(name, *cells[place : place + 3])


def _task(
    name: str, task: NotebookNode, stub: NotebookNode, solution: NotebookNode
) -> Iterator[str]:
    hints = HINT.findall(task.source)
    if not hints or hints != [f"Hint {n}" for n in range(1, len(hints) + 1)]:
        yield f"{name}: hints numbered from 1, not {hints}"
    if {stub.cell_type, solution.cell_type} != {"code"}:
        yield f"{name}: a stub and a solution must follow as code cells"
        return
    if "...  # your turn" not in stub.source or not CHECK.search(stub.source):
        yield f"{name}: stub without '...  # your turn', or without its check"
    if "not attempted yet" not in printed(stub).lower():
        yield f"{name}: stub must print 'not attempted yet'"
    if not solution.source.startswith(f"# @title Solution {name.split()[1]}\n"):
        yield f"{name}: its solution is another's"
    missing = {*CHECK.findall(stub.source)} - {*CHECK.findall(solution.source)}
    if missing or "✓" not in printed(solution):
        yield f"{name}: the solution does not pass the check of its stub"


# --- terms ----------------------------------------------------------------------------

GLOSSARY = "glossary.md"
EVERYDAY = {"key", "memory", "score", "value"}  # have another meaning, too
NO_PROSE = re.compile(
    r"(?ms)^```.*?^```|^\$\$.*?^\$\$|^#.*?$|^\|.*?$|`[^`]*`|\$[^$]+\$|\[[^]]*\]\([^)]*\)"
)


def glossary_terms(path: Path) -> dict[str, str]:
    """The terms of the glossary, each with its anchor."""
    found = headings(path.read_text(encoding="utf-8"))
    return {name: slug(name) for level, name in found if level == 2}


def terms(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A chapter that uses a term of the glossary leads to it."""
    text = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    prose = " ".join(NO_PROSE.sub("\0", text).split())
    for name, anchor in glossary_terms(path.parent / GLOSSARY).items():
        if name in EVERYDAY:
            continue
        used = re.search(rf"(?i)(?<![\w-]){re.escape(name)}s?(?![\w-])", prose)
        if used and f"({GLOSSARY}#{anchor})" not in text:
            yield f"uses {name!r} without a link to {GLOSSARY}#{anchor}"


RULES = [title, template, goal, prompts, bugs, checks, folds, recalled]
RULES += [exercises, terms]
