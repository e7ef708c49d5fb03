"""The table of contents: which pages and chapters there are, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent


def pages(root: Path = ROOT) -> list[str]:
    """The names in the table of contents, in its order, such as book/04_masks."""

    def names(entry: Any) -> Iterator[str]:
        if isinstance(entry, list):
            for child in entry:
                yield from names(child)
        if isinstance(entry, dict):
            for key, value in entry.items():
                if key in ("root", "file"):
                    yield value.removesuffix(".ipynb").removesuffix(".md")
                else:
                    yield from names(value)

    return list(names(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))))


def chapters(root: Path = ROOT) -> list[Path]:
    """The notebooks of the table of contents, in its order."""
    paths = [root / f"{name}.ipynb" for name in pages(root)]
    return [path for path in paths if path.exists()]
