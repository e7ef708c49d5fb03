"""Link the terms of the glossary where a chapter first uses them.

    python -m book_tools.link_terms                          all chapters
    python -m book_tools.link_terms book/04_masks.ipynb      only this one

Only text changes: no cell is run, and outputs stay. Read the difference before you
keep it. A word that is no term where it stands wants another word.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from nbformat import NotebookNode

from book_tools.normal_form import normalize, read, write
from book_tools.term_rules import GLOSSARY, Use, first_uses, glossary_terms
from book_tools.toc import chapters


def link_terms(notebook: NotebookNode, terms: Mapping[str, str]) -> int:
    """Turn the first use of every term into a link, in place; return how many.

    Args:
        notebook: the notebook to change.
        terms: the terms of the glossary, each with its anchor.
    """
    missing: dict[int, list[Use]] = {}
    for index, use in first_uses(notebook, terms).values():
        if not use.linked:
            missing.setdefault(index, []).append(use)
    for index, wanted in missing.items():
        cell = notebook.cells[index]
        for use in sorted(wanted, key=lambda use: use.start, reverse=True):
            before, word = cell.source[: use.start], cell.source[use.start : use.end]
            link = f"[{word}]({GLOSSARY}#{use.slug})"
            cell.source = before + link + cell.source[use.end :]
    return sum(map(len, missing.values()))


def main(arguments: Sequence[str]) -> int:
    """Link the terms of the notebooks named, or of all chapters."""
    for path in [Path(argument) for argument in arguments] or chapters():
        notebook = normalize(read(path))
        count = link_terms(notebook, glossary_terms(path.parent / GLOSSARY))
        write(notebook, path)
        print(f"{path.name}: {count} {'link' if count == 1 else 'links'} added")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
