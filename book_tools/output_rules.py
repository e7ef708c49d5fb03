"""Rules about stored outputs: each yields what it finds wrong."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.element import Tag
from nbformat import NotebookNode

from book_tools.notebook_parts import code_cells, outputs, printed_text
from book_tools.notebooks import stored_text
from transformer_book.charts.translator import MIME as TRANSLATOR
from transformer_book.diagrams.canvas import MIME as DIAGRAM

MAX_BYTES = 500_000

VEGA = re.compile(r"application/vnd\.vega(lite)?\.v\d+\+json")
MIMES = {"text/plain", "text/html", "text/latex", "text/markdown", "image/png"}
MIMES |= {DIAGRAM, TRANSLATOR}
REMOTE = re.compile(
    r"<script\b[^>]*>|<(?:link|iframe)\b[^>]*>|\bsrc\s*=\s*[\"']?(?:https?:)?//[^\s\"'>]+"
    r"|url\(\s*[\"']?(?:https?:)?//[^)]*\)|@import[^;]*|\bimport\([^)]*\)"
    r"|<(?:image|use|feimage)\b[^>]*href\s*=\s*[\"']?(?:https?:)?//[^\s\"'>]+",
    re.IGNORECASE,
)
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}|<[\w.]+ object at [^>]*>")


def order(notebook: NotebookNode) -> Iterator[str]:
    """Cells were run once each, from top to bottom, in a fresh kernel."""
    if all(cell.execution_count is None for _, cell in code_cells(notebook)):
        yield "never executed: make notebooks"
        return
    for expected, (index, cell) in enumerate(code_cells(notebook), start=1):
        if cell.execution_count != expected:
            yield (
                f"cell {index}: execution count {cell.execution_count}, "
                f"expected {expected}: run it again from a fresh kernel"
            )


def errors(notebook: NotebookNode) -> Iterator[str]:
    """No stored output comes from stderr or from an exception nobody caught."""
    for index, output in outputs(notebook):
        if output.get("name") == "stderr":
            yield f"cell {index}: wrote to stderr: {output.text[:60]!r}"
        if output.output_type == "error":
            yield f"cell {index}: stored an error: {output.ename}: {output.evalue}"


def drawings(output: NotebookNode) -> list[Tag]:
    """The drawings in an output's HTML: svg elements, or what stands around them."""
    html = "".join(output.get("data", {}).get(DIAGRAM, ""))
    if "<svg" not in html:
        return []
    outermost = BeautifulSoup(html, "html.parser").find_all(recursive=False)
    return [tag for tag in outermost if tag.name == "svg" or tag.find("svg")]


def figure_alt(output: NotebookNode) -> str | None:
    """None where the output is no figure; else the alt text it carries, or "".

    A chart carries its own as the description of its specification, a drawing as its
    label, and a part of the translator as one of its fields.
    """
    data = output.get("data", {})
    if TRANSLATOR in data:
        return data[TRANSLATOR].get("alt", "")
    for mime, value in data.items():
        if VEGA.fullmatch(mime):
            return value.get("description", "")
    if drawn := drawings(output):
        return drawn[0].get("aria-label", "")
    return "" if any(mime.startswith("image/") for mime in data) else None


def alt_text(notebook: NotebookNode) -> Iterator[str]:
    """Every figure is described for those who cannot see it."""
    for index, cell in code_cells(notebook):
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        carried = [figure_alt(output) for output in cell.outputs]
        figures = [text for text in carried if text is not None]
        if len(figures) > 1:
            yield f"cell {index}: {len(figures)} figures in one cell"
        if alt and not figures:
            yield f"cell {index}: alt text, but no figure"
        for text in figures:
            if not (alt or text).strip():
                yield f"cell {index}: figure without alt text (mystnb.image.alt)"


def drawn(notebook: NotebookNode) -> Iterator[str]:
    """A drawing says what it shows, to everyone and everywhere."""
    ids = Counter[str]()
    for index, cell in code_cells(notebook):
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        for output in cell.outputs:
            found = drawings(output)
            if found and "image/png" not in output.data:
                yield f"cell {index}: drawing without a picture of it (image/png)"
            if len(found) > 1:
                yield f"cell {index}: {len(found)} drawings in one output"
            for tag in found:
                roles = ["img"] if tag.name == "svg" else ["img", "group", "figure"]
                if tag.get("role") not in roles:
                    yield f"cell {index}: drawing without role={' or '.join(roles)}"
                if tag.get("aria-label", "") != alt:
                    yield (
                        f"cell {index}: the drawing's aria-label is "
                        f"{tag.get('aria-label')!r}, the alt text is {alt!r}"
                    )
                names = [part["id"] for part in tag.find_all(id=True)]
                for name in sorted({name for name in names if ids[name]}):
                    yield f"cell {index}: another drawing has the id {name!r}, too"
                ids.update(names)


def mime_types(notebook: NotebookNode) -> Iterator[str]:
    """Outputs are of the types that the book and Colab both show."""
    for index, output in outputs(notebook):
        for mime in output.get("data", {}):
            if mime not in MIMES and not VEGA.fullmatch(mime):
                yield f"cell {index}: output of type {mime}"


def remote(notebook: NotebookNode) -> Iterator[str]:
    """No output fetches anything when it is read."""
    for index, output in outputs(notebook):
        for mime, value in output.get("data", {}).items():
            if mime in ("text/html", DIAGRAM):
                for match in REMOTE.finditer("".join(value)):
                    yield (
                        f"cell {index}: output needs a script or the network: "
                        + (match.group()[:80])
                    )
            if VEGA.fullmatch(mime):
                for url in re.findall(r'"url": *"([^"]*)"', json.dumps(value)):
                    yield f"cell {index}: chart loads its data from {url}"


def addresses(notebook: NotebookNode) -> Iterator[str]:
    """A memory address differs in every run."""
    for index, output in outputs(notebook):
        match = ADDRESS.search(printed_text(output))
        if match:
            yield f"cell {index}: prints a memory address: {match.group()}"


def stored_form(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """The file holds no timestamps or kernel details, and is not too big."""
    stored = path.read_bytes()
    if len(stored) >= MAX_BYTES:
        yield f"{len(stored)} bytes, must be under {MAX_BYTES}"
    clean = stored_text(notebook).encode("utf-8")
    if stored != clean:
        pairs = zip(stored.splitlines(), clean.splitlines(), strict=False)
        line = next((n for n, (a, b) in enumerate(pairs, start=1) if a != b), "last")
        yield f"not stored clean, from line {line} of the file on: make notebooks"


RULES = [order, errors, alt_text, drawn, mime_types, remote, addresses]
FILE_RULES = [stored_form]
