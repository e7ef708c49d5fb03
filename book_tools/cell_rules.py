"""Rules about the source and metadata of cells: each yields what it finds wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nbformat import NotebookNode

from book_tools.notebook_parts import code_cells, tags

MAX_COLUMNS = 72

CELL_METADATA = {"tags", "ledger", "defines", "mystnb", "cellView", "jupyter"}
CELL_METADATA |= {"pencil"}  # goes to the page with the whole calculation
CELL_METADATA |= {"answers"}  # the questions of learners that the cell answers
CELL_METADATA |= {"generated", "source_digest"}  # written by make notebooks
TAGS = {"remove-cell", "hide-input", "hide-cell", "nbval-ignore-output"}
DOTTED = re.compile(r"transformer_lib(\.\w+){2,}")  # module and name
LEDGER_ID = re.compile(r"S\d+-\d+")

SILENCED = re.compile(
    r"(filterwarnings|simplefilter)\(\s*(action=)?[\"']ignore"
    r"|catch_warnings\((?!.*record=True)|redirect_stderr|^%%capture|PYTHONWARNINGS"
    r"|logging\.disable",
    re.MULTILINE,
)
COMMAND = re.compile(r"^\s*(!|%(?!pip install -q \"git\+)).*", re.MULTILINE)
DRAWS = re.compile(
    r"\btorch\.(rand|randn|randint|randperm|normal|bernoulli|multinomial|rand_like"
    r"|randn_like|randint_like)\("
    r"|\.(normal_|uniform_|xavier_\w+|kaiming_\w+|bernoulli_|random_)\("
    r"|\b(np|numpy)\.random\.|\brandom\.(random|randint|choice|choices|shuffle|sample)\("
)
SEEDS = re.compile(r"\bmanual_seed\(|\bgenerator=|default_rng\(\d|random\.Random\(\d")


def width(notebook: NotebookNode) -> Iterator[str]:
    """Wider code scrolls sideways on a laptop."""
    for index, cell in code_cells(notebook):
        for number, line in enumerate(cell.source.splitlines(), start=1):
            if len(line) > MAX_COLUMNS:
                yield (
                    f"cell {index}, line {number}: {len(line)} columns, "
                    f"at most {MAX_COLUMNS}"
                )


def empty(notebook: NotebookNode) -> Iterator[str]:
    """An empty cell is a leftover."""
    for index, cell in enumerate(notebook.cells):
        if not cell.source.strip():
            yield f"cell {index}: empty"


def metadata(notebook: NotebookNode) -> Iterator[str]:
    """A misspelled key or tag would silently do nothing."""
    for index, cell in enumerate(notebook.cells):
        for key in sorted(set(cell.metadata) - CELL_METADATA):
            yield f"cell {index}: unknown metadata {key!r}"
        for tag in tags(cell):
            if tag not in TAGS:
                yield f"cell {index}: unknown tag {tag!r}"
        names = cell.metadata.get("defines", [])
        for name in [names] if isinstance(names, str) else names:
            if not DOTTED.fullmatch(str(name)):
                yield f"cell {index}: {name!r} is no dotted name in transformer_lib"
        text = cell.metadata.get("pencil", True)
        if text is not True and not (isinstance(text, str) and text.strip()):
            yield f"cell {index}: pencil must be true or a sentence, not {text!r}"
        if cell.cell_type != "code" and {"defines", "pencil"} & set(cell.metadata):
            yield f"cell {index}: only a code cell can be 'defines' or 'pencil'"
        ids = cell.metadata.get("ledger", [])
        if not isinstance(ids, list):
            yield f"cell {index}: ledger must be a list, not {ids!r}"
            continue
        for entry in ids:
            if not LEDGER_ID.fullmatch(str(entry)):
                yield f"cell {index}: {entry!r} is no ledger id such as 'S3-12'"


def commands(notebook: NotebookNode) -> Iterator[str]:
    """Shell commands and magics do not run everywhere; only the bootstrap has one."""
    for index, cell in code_cells(notebook):
        for match in COMMAND.finditer(cell.source):
            yield f"cell {index}: shell command or magic: {match.group().strip()}"


def silenced_warnings(notebook: NotebookNode) -> Iterator[str]:
    """A warning is shown or its cause is mended; recording one to show it is fine."""
    for index, cell in code_cells(notebook):
        match = SILENCED.search(cell.source)
        if match:
            yield f"cell {index}: silences warnings: {match.group()}"


def seeds(notebook: NotebookNode) -> Iterator[str]:
    """A cell that draws numbers seeds them, so that it can be run alone."""
    for index, cell in code_cells(notebook):
        code = re.sub(r"#.*", "", cell.source)
        match = DRAWS.search(code)
        if match and not SEEDS.search(code):
            yield (
                f"cell {index}: draws numbers ({match.group()}…) without "
                "torch.manual_seed in the same cell"
            )


def asserts(notebook: NotebookNode) -> Iterator[str]:
    """What a chapter says is asserted in it."""
    asserted = re.compile(r"^\s*assert\b", re.MULTILINE)
    if not any(asserted.search(cell.source) for _, cell in code_cells(notebook)):
        yield "no assert in the chapter"


RULES = [width, empty, metadata, commands, silenced_warnings, seeds]
