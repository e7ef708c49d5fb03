"""Check yourself: for every chapter four questions, in two forms.

Form A may be answered before the chapter, form B after it. Both ask for the same four
ideas. `checks.yml` holds the items, and the page *Check yourself* is made of them:

    - id: 03B2              # chapter, form, number
      idea: what is asked for, as in 03A2, in words that tell no answer
      kind: predict         # or choose, order, bug
      see: Two heads by hand    # a section of the chapter; "4: Common bugs" of another
      question: Markdown
      code: Python that is shown, if any
      choices:
      - right: one sentence
        because: one sentence
      - wrong: one sentence
        mistake: its name
        because: one sentence
        known: the id of a question in book/questions.yml, or a grader
        see: a section, if it is another one

Which choice is right is computed, by `tests/item_keys.py`, from fields that no page
shows:

      setup: Python that runs first
      fix: lines in the place of code that do what it was meant to do
      goal: an expression, false after code and true after fix; true after code that is
          right and has no fix. Every bug has one
      choices:
      - right: one sentence
        proof: an expression with this value
        holds: or an expression, true in this choice only; all choices have one. If the
            same serves all, reading what a choice says as `text`, the item has it
      - wrong: one sentence
        gives: an expression with this value, the mistake made

They are in Python, with `math`, `torch`, `F`, `lib` for transformer_lib, and the
functions of `tests/item_keys.py`: `tiny_model`, `same`, `fails`, `calls`, and `again`,
which runs the code once more with other values.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import yaml

FORMS = {"A": "Before you read", "B": "After you have read"}
Item = Mapping[str, Any]


def read() -> list[Item]:
    """All items, in the order of the book."""
    return yaml.safe_load(files(__package__).joinpath("checks.yml").read_text("utf-8"))


def of_form(items: Sequence[Item], start: str) -> list[Item]:
    """The items of one chapter and form, such as 03A."""
    return [item for item in items if item["id"][:3] == start]


def in_order(item: Item) -> list[tuple[str, Item]]:
    """The choices with their letters, always in the same shuffled order."""
    choices = item["choices"]
    shuffled = random.Random(f"deal {item['id']}").sample(choices, len(choices))
    return list(zip("abcd", shuffled, strict=False))


def place(item: Item, choice: Item) -> tuple[int, str]:
    """The chapter and the heading where to read again after a choice."""
    see = choice.get("see", item["see"])
    chapter, heading = re.fullmatch(r"(?:(\d+): )?(.+)", see).groups()
    return int(chapter or item["id"][:2]), heading


def in_words(item: Item, choice: Item) -> str:
    """Where to read again, without a link."""
    return "Chapter {}, *{}*".format(*place(item, choice))


def write(item: Item, link: Callable[[Item, Item], str] = in_words) -> str:
    """Write an item as Markdown: every choice unfolds what there is to say about it.

    Args:
        item: one of `read`.
        link: takes the item and a wrong choice; says where to read again.
    """
    parts = [f'<div class="check" id="check-{item["id"].lower()}">']
    parts.append(f"**{item['id'][-1]}.** {item['question'].strip()}")
    if "code" in item:
        parts.append(f"```python\n{item['code'].strip()}\n```")
    for letter, choice in in_order(item):
        kind = "right" if "right" in choice else "wrong"
        text = escape(str(choice[kind]).replace("'", "’"))
        text = re.sub("`(.+?)`", r"<code>\1</code>", text)
        text = re.sub(r"\*(.+?)\*", r"<em>\1</em>", text)
        reason = f"**Right.** {choice['because']}"
        if kind == "wrong":
            reason = f"**Wrong: {choice['mistake']}.** {choice['because']}"
            reason += f" Read again: {link(item, choice)}."
        parts.append(
            f'<details class="choice {kind}"><summary><b>{letter}</b> '
            f"<span>{text}</span></summary>"
        )
        parts += [reason, "</details>"]
    return "\n\n".join([*parts, "</div>"])


def check_yourself(chapter: int, form: str = "B") -> Any:
    """The four questions of a chapter, which a notebook shows.

    Args:
        chapter: 0 to 18.
        form: "A" before the chapter, "B" after it.

    Raises:
        ValueError: there is no such chapter or form.
    """
    from IPython.display import Markdown

    if not (items := of_form(read(), f"{chapter:02}{form}")):
        raise ValueError(f"no questions for chapter {chapter}, form {form!r}")
    return Markdown("\n\n".join(map(write, items)))
