"""The table of contents: which chapters there are, and in which order."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent


def chapters(root: Path = ROOT) -> list[Path]:
    """The notebooks of the table of contents, in its order: number 1 comes first."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))

    def files(entry: dict) -> list[str]:
        below = [*entry.get("parts", []), *entry.get("chapters", [])]
        below += entry.get("sections", [])
        own = [entry[key] for key in ("root", "file") if key in entry]
        return own + [name for child in below for name in files(child)]

    paths = [root / f"{name.removesuffix('.ipynb')}.ipynb" for name in files(toc)]
    return [path for path in paths if path.exists()]
