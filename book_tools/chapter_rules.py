"""Rules about the form of a chapter: each yields what it finds wrong."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from book_tools.ledger import can_fail, functions_that_fail
from book_tools.link_rules import links
from book_tools.notebook_parts import (
    Section,
    code_cells,
    is_solution,
    markdown_cells,
    section,
    sections,
    tags,
)
from book_tools.output_rules import drawings, figure_alt
from book_tools.template import (
    ANSWER,
    CHECKS,
    CHECKS_METADATA,
    CLASS,
    FROM_THE_SOURCES,
    OPTIONAL,
    PROMISES,
    PROMPT,
    SETUP_TAGS,
    WHERE_WE_ARE,
    WHY,
    is_core,
)

TITLE = re.compile(
    r"# \d+\. \S.*\n\n\*(?!\*)(?:.|\n(?!\n))+\?\*\n\n"
    r"Core path (\d+) minutes, everything (\d+) minutes · "
    r"\[Open this chapter in Colab\]\(\S+\)\s*"
)
LIST_ITEM = re.compile(r"^(?:[-*]|\d+\.) ", re.MULTILINE)
SYMPTOM = re.compile(r"^\*\*\S", re.MULTILINE)
FOLD = re.compile(r"<details><summary>\S.*</summary>")


def title_cell(notebook: NotebookNode) -> Iterator[str]:
    """The first cell: title, question, minutes and link to Colab."""
    match = TITLE.fullmatch(notebook.cells[0].source if notebook.cells else "")
    if not match:
        yield (
            "cell 0: must be '# 3. Title', '*one question?*' and 'Core path 35 "
            "minutes, everything 60 minutes · [Open this chapter in Colab](…)', with "
            "an empty line between them"
        )
    elif int(match[1]) > int(match[2]):
        yield f"cell 0: the core path takes {match[1]} minutes, everything {match[2]}"


def setup_cells(notebook: NotebookNode) -> Iterator[str]:
    """Below the title: the bootstrap, unseen in the book, and the hidden imports."""
    for index, tag in enumerate(SETUP_TAGS, start=1):
        cell = notebook.cells[index] if index < len(notebook.cells) else None
        if cell is None or cell.cell_type != "code" or tag not in tags(cell):
            yield f"cell {index}: must be a code cell with the tag {tag!r}"


def optional(notebook: NotebookNode) -> Iterator[str]:
    """A section off the core path says so in one form."""
    for part in sections(notebook):
        said = re.search(r"\boptional\b", part.title, re.IGNORECASE)
        if said and not part.title.endswith(OPTIONAL):
            yield f"section '## {part.title}': a heading ends with '{OPTIONAL.strip()}'"


def where_we_are(notebook: NotebookNode) -> Iterator[str]:
    """The map, the goal shown first, and what the reader will be able to do."""
    opening = section(notebook, WHERE_WE_ARE)
    code = [cell for _, cell in opening.of_type("code")]
    shown = [cell for cell in code if cell.outputs and "hide-cell" not in tags(cell)]
    if not any("hide-input" in tags(cell) and _has_figure(cell) for cell in shown):
        yield f"section '## {WHERE_WE_ARE}': no map, drawn by a cell tagged hide-input"
    if not any("hide-input" not in tags(cell) for cell in shown):
        yield f"section '## {WHERE_WE_ARE}': no visible cell shows the goal"
    _, _, promises = _text(opening).partition(PROMISES)
    if promises and len(LIST_ITEM.findall(promises)) < 3:
        yield f"section '## {WHERE_WE_ARE}': fewer than 3 promises"


def prompts(notebook: NotebookNode) -> Iterator[str]:
    """A question before a cell, its folded answer, and the folded reason."""
    answered = set()
    core = 0
    for part in sections(notebook):
        for index, cell in part.of_type("markdown"):
            if PROMPT.strip("> *") not in cell.source:
                continue
            *_, block = cell.source.strip().split("\n\n")
            if not block.startswith(PROMPT) or "?" not in block:
                yield f"cell {index}: must end with the paragraph '{PROMPT}…?'"
            core += is_core(part.title)
            answer, reason = [*notebook.cells[index + 1 : index + 3], None, None][:2]
            answered.add(index + 1)
            if not answer or _prompt(answer) != ANSWER:
                yield (
                    f"cell {index}: a code cell tagged hide-cell with the prompt "
                    f"'{ANSWER}' must follow"
                )
            if not reason or not reason.source.startswith(WHY):
                yield f"cell {index}: after the answer must follow '{WHY}'"
    for index, cell in code_cells(notebook):
        if _prompt(cell) == ANSWER and index not in answered:
            yield f"cell {index}: '{ANSWER}', but no question before it"
    if core < 2:
        yield f"{core} questions '{PROMPT.strip()}' on the core path, not 2 or more"


def classes(notebook: NotebookNode) -> Iterator[str]:
    """The section about the class holds one that is the library's."""
    for part in sections(notebook):
        if part.title in CLASS.titles and not any(
            "defines" in cell.metadata for _, cell in part.of_type("code")
        ):
            yield f"section '## {part.title}': no code cell with metadata 'defines'"


def bugs(notebook: NotebookNode) -> Iterator[str]:
    """Each common bug is a symptom in bold, and a cell that shows it."""
    found: list[bool] = []  # one for each symptom: is it shown?
    for _, cell in section(notebook, "Common bugs").cells:
        if cell.cell_type == "code":
            found[-1:] = [True] * len(found[-1:])
        elif SYMPTOM.search(cell.source):
            found.append(False)
    if sum(found) < 3:
        yield (
            f"section '## Common bugs': {sum(found)} texts that begin with a symptom "
            "in bold, each with a code cell that shows it, not 3 or more"
        )


def folds(notebook: NotebookNode) -> Iterator[str]:
    """What is folded in a text can be read in the book, in Colab and in JupyterLab."""
    for index, cell in markdown_cells(notebook):
        lines = ["", *cell.source.splitlines(), ""]
        inside = False
        for number, line in enumerate(lines):
            if "<details" in line:
                alone = FOLD.fullmatch(line) and not lines[number + 1].strip()
                if inside or not alone:
                    yield (
                        f"cell {index}, line {number}: "
                        "'<details><summary>…</summary>' is a line of its own, and "
                        "an empty line follows"
                    )
                inside = True
            if "</details" in line:
                alone = line == "</details>" and not lines[number - 1].strip()
                if not inside or not alone:
                    yield (
                        f"cell {index}, line {number}: '</details>' is a line of its "
                        "own after an empty one, and closes what was opened"
                    )
                inside = False
        if inside:
            yield f"cell {index}: <details> is not closed"


def checks(notebook: NotebookNode) -> Iterator[str]:
    """A folded cell of checks is folded everywhere, and can fail."""
    helpers = functions_that_fail(notebook.cells)
    for index, cell in code_cells(notebook):
        if not _is_checks(cell):
            if _prompt(cell) == CHECKS_METADATA["mystnb"]["code_prompt_show"]:
                yield f"cell {index}: checks must start with the line '{CHECKS}'"
            continue
        for key, value in CHECKS_METADATA.items():
            given = cell.metadata.get(key)
            if key == "tags":
                given = [tag for tag in tags(cell) if tag != "nbval-ignore-output"]
            if given != value:
                yield f"cell {index}: checks must have metadata {key!r}: {value!r}"
        if not can_fail(cell.source, helpers):
            yield f"cell {index}: these checks cannot fail"


def asserts_folded(notebook: NotebookNode) -> Iterator[str]:
    """Asserts stand in folded checks, in solutions, and where sources are tested."""
    for part in sections(notebook):
        for index, cell in part.of_type("code"):
            folded = (
                _is_checks(cell) or is_solution(cell) or part.title == FROM_THE_SOURCES
            )
            if not folded and any(map(_asserts, ast.walk(_tree(cell)))):
                yield (
                    f"cell {index}: asserts; move them to a folded cell after it that "
                    f"starts with '{CHECKS}'"
                )


def shows(notebook: NotebookNode) -> Iterator[str]:
    """A visible cell prints, draws or defines something."""
    for part in sections(notebook):
        for index, cell in part.of_type("code"):
            if index <= len(SETUP_TAGS) or cell.outputs:
                continue
            nodes = list(ast.walk(_tree(cell)))
            defines = any(
                isinstance(node, ast.ClassDef | ast.FunctionDef) for node in nodes
            )
            if _prompt(cell) == ANSWER:
                yield f"cell {index}: '{ANSWER}', but it shows nothing"
            elif {"hide-cell", "hide-input"}.isdisjoint(tags(cell)) and not (
                defines
                or (part.title == FROM_THE_SOURCES and any(map(_asserts, nodes)))
            ):
                yield f"cell {index}: a visible cell that shows and defines nothing"


def diagrams(notebook: NotebookNode) -> Iterator[str]:
    """The code that calls a drawing is folded."""
    for index, cell in code_cells(notebook):
        drawn = any(drawings(output) for output in cell.outputs)
        if drawn and {"hide-cell", "hide-input"}.isdisjoint(tags(cell)):
            yield f"cell {index}: a drawn diagram needs the tag 'hide-input'"


def sources(notebook: NotebookNode) -> Iterator[str]:
    """What the documents say otherwise is executed."""
    for part in sections(notebook):
        if part.title == FROM_THE_SOURCES and not part.of_type("code"):
            yield f"section '## {FROM_THE_SOURCES}': no code cell"


def reading(notebook: NotebookNode) -> Iterator[str]:
    """Three links to other sites; the last line leads to the next chapter."""
    last = section(notebook, "Further reading")
    text = _text(last)
    found = [link.target for link in links(text) if link.target.startswith("http")]
    if last.cells and len(found) != 3:
        yield f"section '## Further reading': {len(found)} links to other sites, not 3"
    *_, line = text.strip().splitlines() or [""]
    if last.cells and not re.fullmatch(r"Next: \[.+\]\(\S+\)\.?", line):
        yield f"the last line is {line!r}, not 'Next: [Chapter](file.ipynb)'"


def _prompt(cell: NotebookNode) -> str:
    """What unfolds a code cell in the book; "" where nothing is folded."""
    if cell.cell_type != "code" or "hide-cell" not in tags(cell):
        return ""
    return cell.metadata.get("mystnb", {}).get("code_prompt_show", "")


def _is_checks(cell: NotebookNode) -> bool:
    return cell.source.partition("\n")[0] == CHECKS


def _has_figure(cell: NotebookNode) -> bool:
    return any(figure_alt(output) is not None for output in cell.outputs)


def _text(part: Section) -> str:
    return "\n\n".join(cell.source for _, cell in part.of_type("markdown"))


def _tree(cell: NotebookNode) -> ast.Module:
    try:
        return ast.parse(cell.source)
    except SyntaxError:  # a magic
        return ast.Module([], [])


def _asserts(node: ast.AST) -> bool:
    match node:
        case ast.Assert():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name.startswith("assert")
    return False


RULES: Sequence = [
    title_cell,
    setup_cells,
    optional,
    where_we_are,
    prompts,
    classes,
    bugs,
    folds,
    checks,
    asserts_folded,
    shows,
    diagrams,
    sources,
    reading,
]
