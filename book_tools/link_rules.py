"""Rules about links, labels and pictures in Markdown: each yields what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import nbformat
from nbformat import NotebookNode

from book_tools.notebook_parts import headings, markdown_cells, slug, without_code

LINK = re.compile(
    r"(!?)\[((?:[^\[\]]|\[[^\]]*\]\([^)]*\)|\[[^\]]*\])*)\]\(([^)\s]*)[^)]*\)"
)
HTML_TARGET = re.compile(
    r"<(?:img|a|source)\b[^>]*?\b(?:src|href)=[\"']([^\"']*)", re.I
)
HTML_IMAGE = re.compile(r"<img\b[^>]*>", re.I)
ROLE = re.compile(r"\{(ref|doc|term|numref|eq|any|download)\}`[^`]*`")
DIRECTIVE = re.compile(r"^(?:`{3,}|~{3,}|:{3,})\{([\w-]+)\}", re.MULTILINE)
DIRECTIVES = {"note", "tip", "warning"}
LABEL = re.compile(
    r"^\(([\w:.-]+)\)=|\\label\{([^}]*)\}|^:(?:label|name): *(\S+)"
    r"|\\tag\{([^}]*)\}|\{#([\w:.-]+)[ }]",
    re.MULTILINE,
)
ANCHOR = re.compile(
    r"^\(([\w:.-]+)\)=|\{#([\w:.-]+)[ }]|\b(?:id|name)=[\"']([\w:.-]+)[\"']"
    r"|^:name: *(\S+)|\\label\{([^}]*)\}",
    re.MULTILINE,
)
VAGUE = {"here", "click here", "this", "this link", "link", "this page"}


def _links(notebook: NotebookNode) -> Iterator[tuple[int, str, str, str]]:
    """Cell index, "!" for a picture, text and target of every Markdown link."""
    for index, cell in markdown_cells(notebook):
        text = without_code(cell.source)
        for bang, label, target in LINK.findall(text):
            yield index, bang, label, target
            # A picture inside a link: the outer match has swallowed it.
            for inner_bang, inner_label, inner_target in LINK.findall(label):
                yield index, inner_bang, inner_label, inner_target


def pictures(notebook: NotebookNode) -> Iterator[str]:
    """Drawn pictures come with the book and are described."""
    for index, bang, label, target in _links(notebook):
        if not bang:
            continue
        if not label.strip():
            yield f"cell {index}: picture {target} without alt text"
        if re.match(r"(https?:)?//", target):
            yield f"cell {index}: picture from another site: {target}"
    for index, cell in markdown_cells(notebook):
        for tag in HTML_IMAGE.findall(without_code(cell.source)):
            if not re.search(r"\balt=[\"'][^\"']+", tag):
                yield f"cell {index}: picture without alt text: {tag[:60]}"
            if re.search(r"\bsrc=[\"'](https?:)?//", tag):
                yield f"cell {index}: picture from another site: {tag[:60]}"


def link_text(notebook: NotebookNode) -> Iterator[str]:
    """The text of a link says where it leads."""
    for index, bang, label, target in _links(notebook):
        if not bang and label.strip(" .*_").lower() in VAGUE | {""}:
            yield f"cell {index}: link text {label!r} does not say where {target} is"


def colab_markdown(notebook: NotebookNode) -> Iterator[str]:
    """Colab knows neither roles nor directives; three boxes read well without."""
    for index, cell in markdown_cells(notebook):
        for match in ROLE.finditer(cell.source):
            yield f"cell {index}: use a Markdown link instead of {match.group()}"
        for match in DIRECTIVE.finditer(cell.source):
            if match.group(1) not in DIRECTIVES or match.group()[0] != ":":
                yield (
                    f"cell {index}: directive {match.group()} is not rendered in Colab"
                    "; use :::{note}, :::{tip} or :::{warning}"
                )


def labels(notebook: NotebookNode) -> list[tuple[int, str]]:
    """Cell index and name of every label and equation tag."""
    return [
        (index, "".join(groups))
        for index, cell in markdown_cells(notebook)
        for groups in LABEL.findall(without_code(cell.source))
    ]


def repeated_labels(notebooks: Mapping[str, NotebookNode]) -> Iterator[str]:
    """A label, or the number of an equation, is unique in the whole book."""
    seen: dict[str, str] = {}
    for name, notebook in notebooks.items():
        for index, label in labels(notebook):
            place = f"{name}, cell {index}"
            if label in seen:
                yield f"{place}: label {label!r} is also in {seen[label]}"
            seen.setdefault(label, place)


@lru_cache(maxsize=256)
def _anchors_of(path: Path, _modified: int) -> frozenset[str]:
    if path.suffix == ".ipynb":
        notebook = nbformat.read(path, as_version=4)
        text = "\n\n".join(cell.source for _, cell in markdown_cells(notebook))
    else:
        text = path.read_text(encoding="utf-8")
    return anchors(text)


def anchors(markdown: str) -> frozenset[str]:
    """Everything in a page that `#...` can point to."""
    found = {slug(text) for _, text in headings(markdown)}
    found |= {"".join(groups) for groups in ANCHOR.findall(markdown)}
    return frozenset(found)


def broken_links(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A relative link leads to a file that exists and to an anchor in it.

    Args:
        notebook: the notebook to read.
        path: where it is stored; links start from there.
    """
    targets = [(index, target) for index, _, _, target in _links(notebook)]
    for index, cell in markdown_cells(notebook):
        found = HTML_TARGET.findall(without_code(cell.source))
        targets += [(index, target) for target in found]
    own = "\n\n".join(cell.source for _, cell in markdown_cells(notebook))
    for index, target in targets:
        if re.match(r"[a-z][a-z+.-]*:|//", target):
            continue
        file_name, _, anchor = unquote(target).partition("#")
        file = path.parent / file_name
        if file_name and not file.is_file():
            yield f"cell {index}: no file {target}"
            continue
        if not anchor:
            if not file_name:
                yield f"cell {index}: empty link"
            continue
        if file_name:
            known = _anchors_of(file.resolve(), file.stat().st_mtime_ns)
        else:
            known = anchors(own)
        if anchor not in known:
            yield f"cell {index}: no anchor #{anchor} in {file_name or 'this page'}"


RULES = [pictures, link_text, colab_markdown]
