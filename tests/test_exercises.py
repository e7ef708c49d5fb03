"""Every grader lets its solution pass and names each mistake of its table."""

import importlib
import pkgutil
import re

import pytest
import torch
from torch import Tensor

from transformer_lib import exercises
from transformer_lib.exercises.grading import Grader

GRADERS = {
    f"{module.name}.{name}": grader
    for module in pkgutil.iter_modules(exercises.__path__)
    for name, grader in vars(
        importlib.import_module(f"{exercises.__name__}.{module.name}")
    ).items()
    if isinstance(grader, Grader)
}
MISTAKES = [
    (name, text) for name, grader in GRADERS.items() for text in grader.mistakes
]

each_grader = pytest.mark.parametrize("name", GRADERS)


def ask(grader, answer):
    """Grade an answer, which may have several parts."""
    return grader(*answer) if isinstance(answer, tuple) else grader(answer)


@each_grader
def test_the_solution_passes_and_leaves_the_random_numbers_alone(name):
    grader, before = GRADERS[name], torch.get_rng_state()
    feedback = ask(grader, grader.solution)
    assert feedback.passed, feedback
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("name", "sentence"), MISTAKES)
def test_each_mistake_gets_its_own_sentence(name, sentence):
    grader = GRADERS[name]
    told = "(.*: )?" + re.sub(r"\\\{[^}]*\\\}", ".+", re.escape(sentence))
    for answer in grader.answers_with(sentence):
        feedback = ask(grader, answer)
        assert feedback.status == "wrong" and "{}" not in feedback.message
        assert re.fullmatch(told, feedback.message, re.DOTALL), feedback


@each_grader
def test_no_answer_is_not_attempted(name):
    grader = GRADERS[name]
    for nothing in (None, ...):
        assert repr(grader(nothing)) == "… Not attempted yet."
        if callable(grader.solution):
            assert grader(lambda *given, it=nothing: it).status == "open"


FUNCTIONS = [name for name, grader in GRADERS.items() if callable(grader.solution)]
CHANGED = {  # what counts is what the answer does to its argument
    "residual.check_identity_start",
    "reading.check_pruning",
    "training.check_accumulation",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_error_in_the_answer_is_reported(name):
    feedback = GRADERS[name](lambda *given: 1 / 0)
    assert feedback.status == "wrong"
    assert "your function raised ZeroDivisionError: division" in feedback.message


@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {*CHANGED}))
def test_a_wrong_type_is_named(name):
    feedback = GRADERS[name](lambda *given: object())
    assert feedback.status == "wrong"
    assert re.search(r"expected .*, but got object\.", feedback.message), feedback


def returns_tensor(name):
    grader = GRADERS[name]
    return isinstance(grader.solution(*grader.make_cases()[0]), Tensor)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_shapes_and_numbers_are_named(name):
    grader = GRADERS[name]
    result = grader.run(grader.solution, *grader.make_cases()[0])
    if not isinstance(result, Tensor) or name in CHANGED:
        return
    longer = grader(lambda *given: grader.solution(*given)[None])
    assert "expected shape" in longer.message, longer
    if result.is_floating_point():
        empty = grader(lambda *given: grader.solution(*given) * torch.nan)
        assert "numbers are NaN or infinity." in empty.message
        off = grader(lambda *given: 3 * grader.solution(*given) + 1)
        assert "some numbers are off, by up to" in off.message


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if GRADERS[n].run is Grader.run])
def test_an_argument_that_is_changed_in_place_is_named(name):
    grader = GRADERS[name]

    def answer(*given):
        result = grader.solution(*given)
        result = result.clone() if isinstance(result, Tensor) else result
        for argument in given:
            if isinstance(argument, Tensor):
                argument.zero_()
            elif isinstance(argument, list | set):
                argument.clear()
        return result

    given = grader.make_cases()[0]
    feedback = grader(answer)
    if any(isinstance(argument, Tensor | list | set) for argument in given):
        assert "was changed in place" in feedback.message, feedback
    else:
        assert feedback.passed
