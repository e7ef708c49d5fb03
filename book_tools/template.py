"""The templates of chapters: which parts there are, and in which order.

A chapter follows the first template whose first part it has; so a new template can
stand beside the old one while chapters move from one to the other.
"""

from __future__ import annotations

from collections.abc import Collection

IDEAS = "(the chapter's own sections)"

# Heading of each part, in order: what its text must hold, in this order.
TEMPLATES: list[dict[str, list[str]]] = [
    {
        "What you will build": [
            "**You will build**",
            "**You will learn**",
            "**You need**",
        ],
        "Setup": [],
        IDEAS: [],  # one or more, with headings of their own
        "The library's version": [],
        "Common mistakes": [],
        "Summary": [],
        "Exercises": ["### Exercise"],
        "Further reading": ["](http"],
    },
]

# The code cells of Setup: a tag that each must carry.
SETUP_TAGS = ["remove-cell", "hide-input"]  # the bootstrap, unseen in the book; imports

# What hides a solution in the book, in Colab and in JupyterLab.
SOLUTION_METADATA = {
    "cellView": "form",
    "jupyter": {"source_hidden": True},
    "mystnb": {"code_prompt_show": "Show the solution"},
    "tags": ["hide-cell"],
}


def template_of(titles: Collection[str]) -> dict[str, list[str]]:
    """The template that a chapter with these sections follows."""
    return next((one for one in TEMPLATES if next(iter(one)) in titles), TEMPLATES[0])


def opening(titles: Collection[str]) -> list[str]:
    """The parts that stand before a chapter's own sections."""
    parts = list(template_of(titles))
    return parts[: parts.index(IDEAS)]
