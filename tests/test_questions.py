"""Every question of a learner is answered by a cell of the book that was executed."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest
from built_site import SITE, stale

from book_tools.questions import (
    Question,
    answering_cells,
    problems,
    read_answering_cells,
    read_questions,
)
from book_tools.sphinx_questions import address_name, card
from book_tools.toc import ROOT

QUESTIONS = read_questions()
CELLS = read_answering_cells()

ONE = Question(
    id="why-root",
    topic="Scaling",
    question="Why divide by the root?",
    asked=("https://example.org/why",),
    answer="It keeps the variance at 1. Otherwise softmax saturates.",
)


def notebook(**changed):
    code = {
        "cell_type": "code",
        "source": "print(1)",
        "metadata": {"answers": ["why-root"]},
        "execution_count": 1,
        "outputs": [{"output_type": "stream", "name": "stdout", "text": "1\n"}],
    }
    title = {
        "cell_type": "markdown",
        "source": "# 2. Scaled\n\n## Root",
        "metadata": {},
    }
    return [title, code | changed]


def cells(**changed):
    return list(answering_cells("book/02_scaled_attention", notebook(**changed)))


def test_every_question_has_an_executed_answer() -> None:
    if found := list(problems(QUESTIONS, CELLS)):
        pytest.fail("\n".join(found), pytrace=False)


def test_there_are_two_hundred_questions_on_many_topics() -> None:
    assert len(QUESTIONS) >= 200
    assert len({question.question.lower() for question in QUESTIONS}) == len(QUESTIONS)
    topics = [question.topic for question in QUESTIONS]
    assert len(set(topics)) >= 18
    changes = sum(a != b for a, b in zip(topics, topics[1:], strict=False))
    assert changes == len(set(topics)) - 1, "a topic stands in one place"


def test_no_anchor_is_given_twice() -> None:
    assert Counter(cell.anchor for cell in CELLS).most_common(1)[0][1] == 1


def test_a_cell_that_ran_answers_a_question() -> None:
    assert list(problems([ONE], cells())) == []
    [cell] = cells()
    assert cell.anchor == "scaled-attention-answers-why-root"
    assert (cell.title, cell.heading) == ("2. Scaled", "Root")


@pytest.mark.parametrize(
    ("question", "changed", "message"),
    [
        (ONE, {"metadata": {}}, "why-root: no executed cell answers it"),
        (ONE, {"execution_count": None}, "why-root: no executed cell answers it"),
        (ONE, {"outputs": []}, "why-root: no executed cell answers it"),
        (ONE, {"metadata": {"answers": ["why"]}}, "there is no such question"),
        (replace(ONE, question="Why"), {}, "does not end with"),
        (replace(ONE, answer="A. B. C. D."), {}, "the answer has 4 sentences, not 2"),
        (replace(ONE, asked=()), {}, "'' is no address of a page"),
        (replace(ONE, asked=("example.org/x",)), {}, "is no address of a page"),
    ],
)
def test_what_is_wrong_is_named(question, changed, message) -> None:
    assert any(message in line for line in problems([question], cells(**changed)))


def test_a_question_that_is_listed_twice_is_named() -> None:
    assert "the question 'why-root' is listed 2 times" in problems([ONE] * 2, cells())


def test_a_card_leads_to_the_cell_and_to_where_it_was_asked() -> None:
    text = card(ONE, cells())
    assert "[2. Scaled, Root](#scaled-attention-answers-why-root)" in text
    assert "[example.org](https://example.org/why)" in text
    assert address_name("https://github.com/a/b/issues/7#issue-1") == "a/b 7"
    assert address_name("https://www.example.org/q/1") == "example.org"


def test_the_page_leads_to_every_cell() -> None:
    if reason := stale(SITE, ROOT):
        pytest.skip(reason)
    page = (SITE / "book/questions.html").read_text(encoding="utf-8")
    assert page.count('class="question docutils container"') == len(QUESTIONS)
    for cell in CELLS:
        assert f'{cell.page.removeprefix("book/")}.html#{cell.anchor}"' in page
        built = (SITE / f"{cell.page}.html").read_text(encoding="utf-8")
        assert f'id="{cell.anchor}"' in built


@pytest.mark.skipif(
    os.environ.get("BOOK_SKIP_BROWSER") == "1", reason="BOOK_SKIP_BROWSER is set"
)
def test_typing_leaves_the_questions_with_all_words(page) -> None:
    if reason := stale(SITE, ROOT):
        pytest.skip(reason)
    page.goto((SITE / "book/questions.html").as_uri())
    shown = page.locator(".question:visible")
    assert shown.count() == len(QUESTIONS)
    page.get_by_role("searchbox", name="Search the questions").fill("Mask nan")
    texts = [text.lower() for text in shown.all_text_contents()]
    assert 0 < len(texts) < len(QUESTIONS) / 4
    assert all("mask" in text and "nan" in text for text in texts)
    assert page.locator("output").text_content() == f"{len(texts)} of {len(QUESTIONS)}"
    page.evaluate(f"location.hash = 'question-{QUESTIONS[0].id}'")
    page.wait_for_function("() => document.querySelector('[type=search]').value === ''")
    assert shown.count() == len(QUESTIONS)
