"""The table of contents: which pages and chapters there are, and in which order."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx_external_toc.parsing import parse_toc_yaml

ROOT = Path(__file__).resolve().parents[2]


def pages(root: Path = ROOT) -> list[str]:
    """Every page of the table of contents, in its order, such as book/04_masks."""
    site = parse_toc_yaml(root / "_toc.yml")

    def below(name: str) -> list[str]:
        own = name.removesuffix(".ipynb").removesuffix(".md")
        children = site[name].child_files()
        return [own, *(page for child in children for page in below(child))]

    return below(site.root.docname)


def notebook_pages(root: Path = ROOT) -> list[Path]:
    """The pages that are notebooks: the chapters, and what else has cells to run."""
    paths = [root / f"{page}.ipynb" for page in pages(root)]
    return [path for path in paths if path.exists()]


def chapter_of(path: Path) -> int | None:
    """The chapter that a file belongs to by its name; None for any other page."""
    match = re.match(r"(\d+)_", path.name)
    return int(match[1]) if match else None


def chapters(root: Path = ROOT) -> list[Path]:
    """The notebooks whose names begin with a number."""
    return [path for path in notebook_pages(root) if chapter_of(path) is not None]
