"""The questions to check oneself: each has one key, which is computed."""

import re
from collections import Counter
from copy import deepcopy
from pathlib import Path

import pytest
from built_site import SITE
from item_keys import NAMES, reaches_goal, right_ones, text

from book._ext import cards, checks
from book._ext.toc import ROOT
from transformer_book.checks import FORMS, check_yourself, in_order, read, write

ITEMS, PLACES = read(), checks.targets(ROOT)
GRADERS = (ROOT / "transformer_book/exercises").glob("*.py")
KNOWN = {question["id"] for question in cards.read(cards.QUESTIONS)}
KNOWN |= {*re.findall(r"check_\w+", "".join(map(Path.read_text, GRADERS)))}


def marked_right(item):
    return [text(choice) for choice in item["choices"] if "right" in choice]


def test_the_items_are_what_they_are_held_to():
    assert list(checks.problems(ITEMS, PLACES)) == []
    assert len(ITEMS) == 19 * len(FORMS) * 4
    ideas = {(item["id"][:2] + item["id"][3], item["idea"]) for item in ITEMS}
    assert len(ideas) == len(ITEMS) / 2  # form B asks for those of form A


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (lambda x: x[0]["choices"].pop(0), "01A1: 0 choices are right, not 1"),
        (lambda x: x[0]["choices"].append({"right": 1}), "01A1: 2 choices are right"),
        (lambda x: x[1].update(choices=x[1]["choices"][:2]), "01B1: fewer than 2"),
        (lambda x: x[2]["choices"][1].update(see="5: No"), "01A2: chapter 5 has no"),
        (lambda x: x.append(x[4]), "01A3: 2 items have this id"),
        (lambda x: x.pop(6), "01A: 3 items, not 4"),
        (lambda x: x[0]["choices"][0].pop("proof"), "01A1: nothing computes its key"),
        (lambda x: x[0]["choices"][0].update(proof=3), "01A1: the proof 3 computes"),
        (lambda x: x[2]["choices"][1].pop("holds"), "01A2: nothing computes its key"),
        (lambda x: x[2]["choices"][0].update(holds=True), "01A2: True holds whatever"),
        (lambda x: x[7].pop("goal"), "01B4: no goal"),
    ],
)
def test_each_fault_is_named(harm, fault):
    places = {at: PLACES[at] for at in PLACES if at[0] == 1}
    items = deepcopy([item for item in ITEMS if item["id"].startswith("01")])
    assert list(checks.problems(items, places)) == []
    harm(items)
    assert fault in "\n".join(checks.problems(items, places))


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["id"])
def test_the_key_is_what_the_item_computes(item):
    assert right_ones(item) == marked_right(item)
    if "goal" in item:
        assert reaches_goal(item, "code") == ("fix" not in item)
        assert reaches_goal(item, "fix" if "fix" in item else "code")


@pytest.mark.parametrize("item", ITEMS[::8], ids=lambda item: item["id"])
def test_no_wrong_choice_can_be_marked_as_right(item):
    for number in range(1, len(item["choices"])):
        exchanged = deepcopy(item)
        right, other = (exchanged["choices"][n] for n in (0, number))
        right["wrong"], other["right"] = right.pop("right"), other.pop("wrong")
        assert right_ones(exchanged) != marked_right(exchanged)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["id"])
def test_mistakes_are_computed_and_known(item):
    for choice in item["choices"]:
        assert str(eval(choice.get("gives", "None"), NAMES)) in (text(choice), "None")
        assert choice["because"].endswith(".")
        assert choice.get("known", "check_shift") in KNOWN


def test_no_position_is_right_more_often_than_others():
    right = Counter(at for x in ITEMS for at, c in in_order(x) if "right" in c)
    assert max(map(right.get, "abc")) < 1.3 * min(map(right.get, "abc"))


def test_what_computes_a_key_is_not_shown():
    hidden = {"setup", "fix", "goal", "holds", "proof", "gives"}
    for item in ITEMS:
        shown = {key: item[key] for key in item.keys() - hidden}
        choices = shown["choices"]
        shown["choices"] = [{k: c[k] for k in c if k not in hidden} for c in choices]
        assert write(shown) == write(item)


def test_a_notebook_shows_the_items_with_folded_answers():
    text = check_yourself(3).data
    assert text.count("**Right.**") == 4
    assert "Read again: Chapter 3, *" in text
    with pytest.raises(ValueError, match="no questions for chapter 19"):
        check_yourself(19)


def test_the_first_choice_counts_and_stays(page):
    page.goto((SITE / "book/check_yourself.html").resolve().as_uri())
    assert "first tries" in page.locator(".check-result output").inner_text()
    page.locator("#check-03b > summary").press("Enter")
    page.locator("#check-03b1 .wrong > summary").first.press("Enter")
    page.locator("#check-03b1 .right > summary").press("Enter")
    page.locator("#check-03b2 .right > summary").click()
    page.reload()
    assert "B 1 of 2" in page.locator(".check-result output").inner_text()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save my answers").click()
    assert '"right": true' in saved.value.path().read_text()
