"""Rules for one open page of the built book; each returns its complaints.

A rule takes a page in the browser and answers with a list of sentences, empty if all is
well. axe knows what makes a page accessible; the rules besides are the book's own.
`tests/test_site.py` applies them to every page, and breaks pages to see each complain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

Rule = Callable[[Page], list[str]]
IN_THE_PAGE = (Path(__file__).parent / "page_rules.js").read_text(encoding="utf-8")


def axe(page: Page, context: dict[str, Any], **options: Any) -> list[str]:
    """What axe-core finds wrong with a part of a page."""
    if not page.locator(context["include"]).count():
        return []  # axe refuses to look at nothing
    options = {"resultTypes": ["violations"], "preload": False, **options}
    violations = Axe().run(page, context, options).response["violations"]
    return [
        f"{kind['id']}, {len(kind['nodes'])} times, first: "
        f"{kind['nodes'][0]['html']:.150} {kind['nodes'][0]['failureSummary']:.200}"
        for kind in violations
    ]


def accessibility(page: Page) -> list[str]:
    """Headings, names, contrast and the keyboard are as axe wants them.

    Code and formulas consist of thousands of parts: `code` and `mathematics` look at
    these, in a tenth of the time.
    """
    context = {"include": "html", "exclude": ["mjx-container", "pre"]}
    # The corner of a table with names on two sides.
    left_out = {"empty-table-header": {"enabled": False}}
    return axe(page, context, rules=left_out)


def code(page: Page) -> list[str]:
    """Code that scrolls can be scrolled with the keyboard."""
    return axe(page, {"include": "pre"}, runOnly=["scrollable-region-focusable"])


def code_colors(page: Page) -> list[str]:
    """Every color of code and outputs stands out from what is behind it.

    axe looks at one part of each look: thousands of others are like it.
    """
    page.evaluate(f"{IN_THE_PAGE}.markLooks()")
    return axe(page, {"include": "[data-look]"}, runOnly=["color-contrast"])


def in_the_page(name: str) -> Rule:
    """A rule that looks at the page with a function of page_rules.js."""

    def rule(page: Page) -> list[str]:
        return page.evaluate(f"{IN_THE_PAGE}.{name}()")

    rule.__name__ = name
    return rule


NAMES = ["mathematics", "charts", "pictures", "captions", "diagrams", "labels"]
NAMES += ["sideways", "width"]
mathematics, charts, pictures, captions, diagrams, labels, sideways, width = own = [
    in_the_page(name) for name in NAMES
]
stretches = in_the_page("stretches")  # of chapters
RULES = [accessibility, code, *own]


def complaints(page: Page, rules: Sequence[Rule] = RULES) -> list[str]:
    """Apply rules to an open page; each complaint starts with the rule's name."""
    return [f"{rule.__name__}: {text}" for rule in rules for text in rule(page)]


def open_optional(page: Page) -> None:
    """Open the sections off the core path."""
    page.locator("details.optional").evaluate_all(
        "folds => folds.forEach((fold) => { fold.open = true; })"
    )


def wait_until(page: Page, script: str, arg: Any = None, seconds: float = 30) -> None:
    """Wait until a script in the page says yes.

    `page.wait_for_function` asks again from within the page, where the book's policy
    lets no text become code: it works only where the first answer is yes.

    Args:
        page: which one.
        script: an expression or a function, as `page.evaluate` takes it.
        arg: the function's argument.
        seconds: the longest to wait.

    Raises:
        TimeoutError: it still says no.
    """
    end = time.monotonic() + seconds
    while not page.evaluate(script, arg):
        if time.monotonic() > end:
            raise TimeoutError(f"after {seconds} seconds, this is not true: {script}")
        page.wait_for_timeout(20)


def visit(page: Page, address: str) -> None:
    """Go to a page, open what is optional, wait until fonts and charts are there."""
    page.goto(address)
    open_optional(page)
    page.evaluate("() => document.fonts.ready")
    page.evaluate("() => document.querySelector('div.vega-chart')?.scrollIntoView()")
    drawn = "() => !document.querySelector('div.vega-chart:not(.vega-drawn)')"
    with suppress(TimeoutError):  # the rules of the page tell what is missing
        wait_until(page, drawn, seconds=10)
