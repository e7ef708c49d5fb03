"""Rules about the source and metadata of cells: each yields what it finds wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nbformat import NotebookNode

from book_tools.notebook_parts import code_cells, sections, tags

MAX_LINES = 20
MAX_COLUMNS = 72
MAX_CODE_CELLS = 40

CELL_METADATA = {"tags", "ledger", "mystnb", "cellView", "jupyter", "source_digest"}
TAGS = {"remove-cell", "hide-input", "hide-cell", "nbval-ignore-output"}
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


def length(notebook: NotebookNode) -> Iterator[str]:
    """A cell holds one thought; the hidden imports of Setup are not counted."""
    for index, cell in code_cells(notebook):
        lines = cell.source.count("\n") + 1
        hidden_imports = "hide-input" in tags(cell) and "import" in cell.source
        if lines > MAX_LINES and not hidden_imports:
            yield f"cell {index}: {lines} lines, at most {MAX_LINES}"


def width(notebook: NotebookNode) -> Iterator[str]:
    """Wider code scrolls sideways on a laptop."""
    for index, cell in code_cells(notebook):
        for number, line in enumerate(cell.source.splitlines(), start=1):
            if len(line) > MAX_COLUMNS:
                yield (
                    f"cell {index}, line {number}: {len(line)} columns, "
                    f"at most {MAX_COLUMNS}"
                )


def count(notebook: NotebookNode) -> Iterator[str]:
    """A chapter is one idea."""
    found = len(list(code_cells(notebook)))
    if found > MAX_CODE_CELLS:
        yield f"{found} code cells, at most {MAX_CODE_CELLS}"


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
    """What a chapter says is asserted in it, the library's version above all."""

    def has_assert(cells: list[tuple[int, NotebookNode]]) -> bool:
        found = (
            re.search(r"^\s*assert\b", cell.source, re.MULTILINE) for _, cell in cells
        )
        return any(found)

    if not has_assert(list(code_cells(notebook))):
        yield "no assert in the chapter"
    for section in sections(notebook):
        title = section.title
        if title == "The library's version" and not has_assert(section.of_type("code")):
            yield f"section {title!r}: asserts nothing"


RULES = [
    length,
    width,
    count,
    empty,
    metadata,
    commands,
    silenced_warnings,
    seeds,
    asserts,
]
