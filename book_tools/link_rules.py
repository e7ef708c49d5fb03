"""Rules about links, labels and pictures in Markdown: each yields what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import nbformat
from bs4 import BeautifulSoup
from nbformat import NotebookNode

from book_tools.notebook_parts import headings, markdown_cells, pieces, slug

BOXES = {("colon_fence", kind) for kind in ("{note}", "{tip}", "{warning}")}
VAGUE = {"", "here", "click here", "this", "this link", "link", "this page"}
ELSEWHERE = re.compile(r"(https?:)?//")
MATH_LABEL = re.compile(r"\\(?:label|tag)\{([^}]*)\}")


@dataclass(frozen=True)
class Link:
    """A link or a picture in a text; of an HTML link, the words are not known."""

    target: str
    words: str | None
    is_picture: bool = False


@lru_cache(maxsize=4096)
def links(markdown: str) -> tuple[Link, ...]:
    """Every link and picture of a text, those written in HTML included."""
    found = []
    target, words = "", ""  # of the link that was opened last
    for piece in pieces(markdown):
        match piece.type:
            case "link_open":
                target, words = str(piece.attrs["href"]), ""
            case "link_close":
                found.append(Link(target, words))
            case "image":
                source, words = str(piece.attrs["src"]), words + piece.content
                found.append(Link(source, piece.content, is_picture=True))
            case "html_inline" | "html_block":
                html = BeautifulSoup(piece.content, "html.parser")
                for tag in html.find_all("img"):
                    source, alt = tag.get("src", ""), tag.get("alt", "")
                    found.append(Link(source, alt, is_picture=True))
                for tag in html.find_all("a", href=True):
                    found.append(Link(tag["href"], None))
            case "text" | "code_inline" | "math_inline" | "softbreak":
                words += piece.content
    return tuple(found)


def _links(notebook: NotebookNode) -> Iterator[tuple[int, Link]]:
    for index, cell in markdown_cells(notebook):
        for link in links(cell.source):
            yield index, link


def pictures(notebook: NotebookNode) -> Iterator[str]:
    """Drawn pictures come with the book and are described."""
    for index, link in _links(notebook):
        if link.is_picture and not link.words.strip():
            yield f"cell {index}: picture {link.target} without alt text"
        if link.is_picture and ELSEWHERE.match(link.target):
            yield f"cell {index}: picture from another site: {link.target}"


def link_text(notebook: NotebookNode) -> Iterator[str]:
    """The text of a link says where it leads."""
    for index, link in _links(notebook):
        if link.is_picture or link.words is None:
            continue
        if link.words.strip(" .").lower() in VAGUE:
            yield (
                f"cell {index}: link text {link.words!r} does not say where "
                f"{link.target} is"
            )


def colab_markdown(notebook: NotebookNode) -> Iterator[str]:
    """Colab knows neither roles nor directives; three boxes read well without."""
    for index, cell in markdown_cells(notebook):
        for piece in pieces(cell.source):
            kind = piece.info.partition(" ")[0]
            if piece.type == "myst_role":
                role = f"{{{piece.meta['name']}}}`{piece.content}`"
                yield f"cell {index}: use a Markdown link instead of {role}"
            elif kind.startswith("{") and (piece.type, kind) not in BOXES:
                yield (
                    f"cell {index}: directive {piece.markup}{kind} is not rendered in "
                    "Colab; use :::{note}, :::{tip} or :::{warning}"
                )


def labels(markdown: str) -> list[str]:
    """Every label of a text and every number of an equation."""
    found = []
    for piece in pieces(markdown):
        if piece.type == "myst_target":
            found.append(piece.content)
        if piece.type == "math_block_label":
            found.append(piece.info)
        if piece.type in ("math_block", "math_block_label", "amsmath"):
            found += MATH_LABEL.findall(piece.content)
        if "id" in piece.attrs:
            found.append(str(piece.attrs["id"]))
    return found


def repeated_labels(notebooks: Mapping[str, NotebookNode]) -> Iterator[str]:
    """A label, or the number of an equation, is unique in the whole book."""
    seen: dict[str, str] = {}
    for name, notebook in notebooks.items():
        for index, cell in markdown_cells(notebook):
            for label in labels(cell.source):
                here = f"{name}, cell {index}"
                if label in seen:
                    yield f"{here}: label {label!r} is also in {seen[label]}"
                seen.setdefault(label, here)


def anchors(markdown: str) -> set[str]:
    """Everything in a text that `#...` can point to."""
    found = {slug(text) for _, text in headings(markdown)} | set(labels(markdown))
    for token in pieces(markdown):
        if token.type.startswith("html"):
            html = BeautifulSoup(token.content, "html.parser")
            found |= {tag["id"] for tag in html.find_all(id=True)}
    return found


@lru_cache(maxsize=256)
def _anchors_of(path: Path, _modified: int) -> set[str]:
    if path.suffix != ".ipynb":
        return anchors(path.read_text(encoding="utf-8"))
    cells = markdown_cells(nbformat.read(path, as_version=4))
    return {name for _, cell in cells for name in anchors(cell.source)}


def broken_links(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A relative link leads to a file that exists and to an anchor in it.

    Args:
        notebook: the notebook to read.
        path: where it is stored; links start from there.
    """
    for index, link in _links(notebook):
        if re.match(r"[a-z][a-z+.-]*:|//", link.target):
            continue
        name, _, anchor = unquote(link.target).partition("#")
        file = path.parent / name if name else path
        if not name and not anchor:
            yield f"cell {index}: empty link"
        elif not file.is_file():
            yield f"cell {index}: no file {link.target}"
        elif anchor and anchor not in _anchors_of(file, file.stat().st_mtime_ns):
            yield f"cell {index}: no anchor #{anchor} in {name or 'this page'}"


RULES = [pictures, link_text, colab_markdown]
FILE_RULES = [broken_links]
