"""The page of questions to check oneself: what they are held to, and how they stand."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import nbformat
from sphinx.errors import ExtensionError

from book._ext import cards
from book._ext.notebook_parts import OPTIONAL, headings, slug
from book._ext.toc import chapter_of, chapters
from transformer_book.checks import FORMS, Item, in_order, of_form, place, read, write

Targets = Mapping[tuple[int, str], str]  # chapter and heading: address
ITEMS = Path("transformer_book/checks.yml")
FOLD = '<details class="check-{}" id="check-{}"><summary>{}</summary>'


def targets(root: Path) -> dict[tuple[int, str], str]:
    """The address of every heading of the chapters."""
    return {
        (chapter_of(path), text.removesuffix(OPTIONAL)): path.name
        + (f"#{slug(text)}" if level > 1 else "")
        for path in chapters(root)
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown"
        for level, text in headings(cell.source)
    }


def problems(items: Sequence[Item], places: Targets) -> Iterator[str]:
    """What is wrong with the items of all chapters that have places."""
    for name, count in Counter(item["id"] for item in items).items():
        if count > 1:
            yield f"{name}: {count} items have this id"
    for item in items:
        kinds = Counter(next(iter(choice)) for choice in item["choices"])
        if kinds["right"] != 1:
            yield f"{item['id']}: {kinds['right']} choices are right, not 1"
        if kinds["wrong"] < 2:
            yield f"{item['id']}: fewer than 2 wrong choices"
        for choice in [item, *item["choices"]]:
            chapter, heading = place(item, choice)
            if (chapter, heading) not in places:
                yield f"{item['id']}: chapter {chapter} has no section {heading!r}"
        yield from (f"{item['id']}: {fault}" for fault in unproved(item))
    for start in {f"{chapter:02}{form}" for chapter, _ in places for form in FORMS}:
        if (count := len(of_form(items, start))) != 4:
            yield f"{start}: {count} items, not 4"


def unproved(item: Item) -> Iterator[str]:
    """What an item lacks of a key that a test can compute."""
    choices = item["choices"]
    proofs = [choice["proof"] for choice in choices if "proof" in choice]
    statements = [choice.get("holds", item.get("holds")) for choice in choices]
    if not proofs and None in statements:
        yield "nothing computes its key: a proof, or a holds for every choice"
    for proof in proofs:
        if isinstance(ast.parse(str(proof), mode="eval").body, ast.Constant):
            yield f"the proof {proof} computes nothing"
    for statement in {str(statement) for statement in statements} - {"None"}:
        if not any(isinstance(x, ast.Name) for x in ast.walk(ast.parse(statement))):
            yield f"{statement} holds whatever runs"
    if item["kind"] == "bug" and "goal" not in item:
        yield "no goal that its code misses"


def list_checks(root: Path, cells: Sequence[cards.Cell]) -> str:
    """Write both forms of every chapter, and what to read again.

    Raises:
        ExtensionError: an item is not what it is held to.
    """
    items, places = read(), targets(root)
    if faults := list(problems(items, places)):
        raise ExtensionError("\n".join(faults))
    asked = {question["id"] for question in cards.read(cards.QUESTIONS, root)}

    def link(item: Item, choice: Item) -> str:
        """A section, and the question of learners that a mistake answers."""
        at = place(item, choice)
        text = f"[{at[1]}]({places[at]})"
        if choice.get("known") in asked:
            text += f", and [what learners ask](#question-{choice['known']})"
        return text

    blocks = []
    for (chapter, title), address in places.items():
        if "#" in address:  # a section; a chapter is asked about as a whole
            continue
        blocks.append(f"(check-{chapter:02})=\n## [{title}]({address})")
        for form, when in FORMS.items():
            start = f"{chapter:02}{form}"
            questions = of_form(items, start)
            blocks.append(FOLD.format("form", start.lower(), f"{when}: form {form}"))
            blocks += [write(item, link) for item in questions]
            blocks.append("</details>")
        # Both forms ask about the same ideas.
        again = [f"1. {item['idea']}: {link(item, item)}" for item in questions]
        blocks.append(FOLD.format("again", f"{chapter:02}c", "What to read again"))
        blocks += ["\n".join(again), "</details>"]
    return "\n\n".join(blocks)


def list_keys(root: Path, cells: Sequence[cards.Cell]) -> str:
    """Write the letters of the right choices."""
    keys = {}
    for item in read():
        start = f"**{int(item['id'][:2])} {item['id'][2]}** "
        right = next(letter for letter, choice in in_order(item) if "right" in choice)
        keys[start] = keys.get(start, "") + right
    text = " · ".join(start + letters for start, letters in keys.items())
    return "\n\n".join([FOLD.format("key", "key", "The key"), text, "</details>"])


def lead(page: str) -> str:
    """The line that leads from a page such as book/03_… to its questions."""
    return (
        '<p class="check-lead"><strong>Check yourself:</strong> '
        f'<a href="check_yourself.html#check-{page[5:7]}">four questions before this '
        "chapter, four after it</a>.</p>"
    )
