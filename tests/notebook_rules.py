"""The rules for every notebook that is a page: what is stored, shown and described.

A rule takes a notebook and its path, and yields a sentence for each thing it finds
wrong. Links, anchors, labels and levels of headings are Sphinx's business (`-n -W`),
columns and style are ruff's, and outputs that change from run to run nbval's. What a
page fetches is seen in the browser.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import chapter_rules
import nbformat
from bs4 import BeautifulSoup
from nbformat import NotebookNode

from book._ext.figures import MIME as PLOT
from book._ext.notebook_parts import code_cells, tags
from book._ext.notebooks import stored_text
from book._ext.toc import chapter_of
from transformer_book import gloss
from transformer_book.charts.machine import MIME as MACHINE
from transformer_book.diagrams.canvas import MIME as DIAGRAM

MAX_BYTES = 700_000
CELL_METADATA = {"tags", "mystnb", "cellView", "jupyter", "source_digest"}
CELL_METADATA |= {"covers", "defines", "pencil"}  # what the book makes of a cell
TAGS = {"remove-cell", "remove-input", "hide-input", "hide-cell", "nbval-ignore-output"}
NAME = re.compile(r"figure(-[a-z0-9]+)+")
SENTENCES = re.compile(r"[A-Z*`](?s:.+)[.:?]")
GLOSS = Path(gloss.__file__).with_suffix(".toml")
ENGLISH_TOO = {"am", "ball", "baseball", "die", "hat", "home", "in", "park"}
ENGLISH_TOO |= {"smart", "sofa", "start", "tennis"}
GERMAN = tomllib.loads(GLOSS.read_text(encoding="utf-8"))["words"].keys() - ENGLISH_TOO
ANOTHER_HAND = re.compile(  # a hyphen for a minus, no comma in thousands, 1e4, 10²
    r"(?<!\w)-\d|(?<![\d.,])\d{4,}(?![\d.])|\d[eE][+-]?\d|mathdefault|10[⁰-⁹²³¹⁻]"
)
FROM_0 = re.compile(r"(?i)\b((layer|head)s? 0(?!\d|\.\d\d)|(cross|self) 0($|\.\d\b))")
VEGA = re.compile(r"application/vnd\.vega(lite)?\.v\d+\+json")
UNFIT = {  # by type of cell: what is found, and what is wrong with it
    "markdown": {
        r"\{[a-z:-]+\}`": "a role, which Colab does not know: use a Markdown link",
        r"^ *(```|:::)\{(?!(?<=:\{)(?:note|tip|warning)\})": "a directive that Colab "
        "does not render: use :::{note}, :::{tip} or :::{warning}",
        r"(?i)(?<!!)\[(here|click here|this|link|this link|this page|)\]\(": "a link "
        "whose words do not say where it leads",
        r"!\[\s*\]\(|<img(?![^>]*\balt=\"[^\"])": "a picture without alt text",
    },
    "code": {
        r"^\s*(!|%(?!pip install -q \"transformer-lib))": "a shell command or a magic",
        r"(filterwarnings|simplefilter)\((action=)?[\"']ignore|redirect_stderr"
        r"|logging\.disable|catch_warnings\((?!.*record=True)": "silences warnings",
    },
}


def stored(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """The file is what `make notebooks` writes, and not too big."""
    text = path.read_text(encoding="utf-8")
    if len(text.encode()) >= MAX_BYTES:
        yield f"not smaller than {MAX_BYTES} bytes"
    if text != stored_text(notebook, path):
        yield "not stored clean: python -m book._ext.notebooks"


def executed(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Cells were run once each, from top to bottom, without an error or a warning."""
    for expected, (index, cell) in enumerate(code_cells(notebook), start=1):
        if cell.execution_count != expected:
            yield f"cell {index}: executed as number {cell.execution_count}"
        for output in cell.outputs:
            if output.get("name") == "stderr" or output.output_type == "error":
                yield f"cell {index}: stored an error or a warning"


def metadata(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A misspelled key or tag would silently do nothing."""
    for index, cell in enumerate(notebook.cells):
        strange = {tag for tag in tags(cell) if not tag.startswith("yours-")} - TAGS
        for name in sorted(set(cell.metadata) - CELL_METADATA | strange):
            yield f"cell {index}: unknown metadata {name!r}"


def unfit(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Text and code that a frontend or a reader cannot use."""
    for index, cell in enumerate(notebook.cells):
        text = cell.source
        if cell.cell_type == "markdown":  # what stands in code is no mistake
            text = re.sub(r"(?ms)^```(?!\{).*?^```|(?<!\})`[^`\n]+`", "", text)
        for pattern, wrong in UNFIT[cell.cell_type].items():
            if match := re.search(pattern, text, re.MULTILINE):
                yield f"cell {index}: {wrong}: {match.group().strip()}"


def figure_alt(output: NotebookNode) -> str | None:
    """None where the output is no figure; else the alt text it carries, or "".

    A chart carries its own as the description of its specification, a drawing as its
    label, and the machine as one of its fields.
    """
    data = output.get("data", {})
    if MACHINE in data:
        return data[MACHINE].get("alt", "")
    if DIAGRAM in data:
        drawn = BeautifulSoup(data[DIAGRAM], "html.parser").find(role=True)
        return drawn.get("aria-label", "") if drawn else ""
    for mime, spec in data.items():
        if VEGA.fullmatch(mime):
            return spec.get("description", "")
    return "" if any(mime.startswith("image/") for mime in data) else None


def captions(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Every figure has a name, a caption, and a gloss of the German in it."""
    for index, cell in code_cells(notebook):
        mystnb = cell.metadata.get("mystnb", {})
        figure = mystnb.get("figure", {})
        found = [output for output in cell.outputs if figure_alt(output) is not None]
        if not found:
            if figure:
                yield f"cell {index}: a caption, but no figure"
            continue
        if not NAME.fullmatch(figure.get("name", "")):
            yield f"cell {index}: no name such as figure-nine-changes (mystnb.figure)"
        caption = figure.get("caption", "").strip()
        if not SENTENCES.fullmatch(caption):
            yield f"cell {index}: the caption is no sentence (mystnb.figure.caption)"
        if caption in (mystnb.get("image", {}).get("alt"), figure_alt(found[0])):
            yield f"cell {index}: the caption repeats the alt text"
        for name in figure.keys() - {"name", "caption", "german"}:
            yield f"cell {index}: nothing reads mystnb.figure.{name}"
        if sum("data" in output for output in cell.outputs) > 1:
            yield f"cell {index}: a second output would get the caption, too"
        unread = german_in(found[0]) - german_in(figure.get("german", ""))
        if unread:
            yield f"cell {index}: German in the figure: {', '.join(sorted(unread))}"


def german_in(shown: NotebookNode | str) -> set[str]:
    """The German words of a text, or those drawn in a figure.

    The machine explains its sentence by itself.
    """
    if not isinstance(shown, str):
        charts = [spec for kind, spec in shown.data.items() if VEGA.fullmatch(kind)]
        rows = json.dumps([spec.get("data") for spec in charts], ensure_ascii=False)
        shown = " ".join([rows, *drawn_words([shown])])
    return {word.lower() for word in re.findall(r"[^\W\d_]+", shown)} & GERMAN


def numbers(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Every figure writes numbers in one way: "−0.66", "12,500", "0.1"."""
    for index, cell in code_cells(notebook):
        words = [*drawn_words(cell.outputs), *descriptions(cell)]
        if wrong := [text for text in words if ANOTHER_HAND.search(text)]:
            yield f"cell {index}: {wrong[0]!r} is written −0.66, 12,500 or 0.1"


def counting(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Layers and heads are counted from 1 wherever a person reads."""
    for index, cell in enumerate(notebook.cells):
        texts = [re.sub(r"`[^`]*`", "", cell.source)]
        if cell.cell_type == "code":  # its own indices start at 0
            texts = [*descriptions(cell), *drawn_words(cell.outputs)]
            for output in cell.outputs:
                texts += [output.get("text", ""), figure_alt(output) or ""]
        for match in filter(None, map(FROM_0.search, texts)):
            yield f"cell {index}: counted from 0: {match.group()}"


def drawn_words(outputs: list[NotebookNode]) -> Iterator[str]:
    """The texts of plots and drawings."""
    for output in outputs:
        for kind in {PLOT, DIAGRAM} & output.get("data", {}).keys():
            yield from map(unescape, re.findall(r">([^<>]+)</", output.data[kind]))


def descriptions(cell: NotebookNode) -> Iterator[str]:
    """What describes the figure of a cell: alt text and caption."""
    mystnb = cell.metadata.get("mystnb", {})
    yield mystnb.get("image", {}).get("alt", "")
    yield mystnb.get("figure", {}).get("caption", "")


def figures(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Every figure is described for those who cannot see it, and shown in Colab too."""
    for index, cell in code_cells(notebook):
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "").strip()
        carried = [figure_alt(output) for output in cell.outputs]
        found = [text for text in carried if text is not None]
        if len(found) > 1:
            yield f"cell {index}: {len(found)} figures in one cell"
        if alt and not found:
            yield f"cell {index}: alt text, but no figure"
        if found and not (alt or found[0].strip()):
            yield f"cell {index}: figure without alt text (mystnb.image.alt)"
        for output in cell.outputs:
            if DIAGRAM not in output.get("data", {}):
                continue
            if "image/png" not in output.data:
                yield f"cell {index}: drawing without a picture of it (image/png)"
            if alt and figure_alt(output) != alt:
                yield f"cell {index}: the drawing's words are not its alt text"
            if {"hide-cell", "hide-input", "remove-input"}.isdisjoint(tags(cell)):
                yield f"cell {index}: the code of a drawing needs the tag 'hide-input'"
    code = "\n".join(cell.source for _, cell in code_cells(notebook))
    if "plt.show()" in code and "use_book_theme()" not in code:
        yield "plots without use_book_theme()"


RULES = [stored, executed, metadata, unfit, figures, captions, numbers, counting]


def complaints(path: Path) -> list[str]:
    """What all rules find wrong with a notebook, each after the rule's name.

    A page whose name starts with no number is no chapter: it needs no exercises.

    Args:
        path: where the notebook is stored, in the folder of the glossary.
    """
    notebook = nbformat.read(path, as_version=4)
    rules = [*RULES, *(chapter_rules.RULES if chapter_of(path) is not None else [])]
    return [f"{rule.__name__}: {x}" for rule in rules for x in rule(notebook, path)]
