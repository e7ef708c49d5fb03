"""What all graders share."""

import inspect
import pkgutil
from importlib import import_module

import pytest
import torch

from transformer_lib import exercises as checks
from transformer_lib.exercises.feedback import (
    NOT_ATTEMPTED,
    call,
    check_tensor,
    compare,
    right,
    wrong,
)

NOT_OF_FUNCTIONS = {"check_sorting_network", "check_design", "check_diagnosis"}
GRADERS = [
    grader
    for module in pkgutil.iter_modules(checks.__path__, f"{checks.__name__}.")
    for name, grader in inspect.getmembers(import_module(module.name))
    if name.startswith("check_")
    and grader.__module__ == module.name != NOT_ATTEMPTED.__module__
    and name not in NOT_OF_FUNCTIONS
]


def test_feedback_reads_as_a_sentence() -> None:
    assert repr(right("It adds up.")) == "✓ It adds up."
    assert repr(wrong("No scale.")) == "✗ No scale."
    assert repr(NOT_ATTEMPTED) == "… Not attempted yet."
    assert [f.passed for f in (right(""), wrong(""), NOT_ATTEMPTED)] == [1, 0, 0]


def test_an_error_in_the_answer_is_told_back() -> None:
    assert call(lambda x: x + 1, 1) == 2
    feedback = call(lambda: 1 / 0)
    assert (
        feedback.message == "your function raised ZeroDivisionError: division by zero"
    )


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "Not attempted yet."),
        (..., "Not attempted yet."),
        (wrong("told"), "told"),
        ([1.0], "expected a tensor, but got list."),
        (torch.zeros(3), r"expected shape (2,), but got (3,)."),
        (torch.tensor([0.0, torch.nan]), "the result holds NaN or infinity."),
    ],
)
def test_a_result_that_cannot_be_graded_is_explained(result, message) -> None:
    assert check_tensor(result, (2,)).message == message


def test_a_tensor_of_the_right_shape_passes_on() -> None:
    assert check_tensor(torch.zeros(2), (2,)) is None


@pytest.mark.parametrize("grader", GRADERS, ids=lambda grader: grader.__name__)
def test_every_grader_waits_for_an_answer_and_tells_errors_back(grader) -> None:
    assert grader(lambda *given: None).status == "open"
    assert grader(lambda *given: ...).status == "open"
    feedback = grader(lambda *given: 1 / 0)
    assert feedback.status == "wrong"
    assert "ZeroDivisionError" in feedback.message


def test_graders_are_found() -> None:
    assert len({grader.__module__ for grader in GRADERS}) >= 11


def test_numbers_are_compared_with_the_right_ones_and_with_known_mistakes() -> None:
    expected = torch.tensor([1.0, 2.0], dtype=torch.float64)
    mistakes = {"Doubled.": 2 * expected}
    assert compare(expected.float(), expected, mistakes) is None
    assert compare(2 * expected, expected, mistakes).message == "Doubled."
    assert "up to 1." in compare(expected + 1, expected, mistakes).message
    assert compare(expected + 1e-4, expected, {}, atol=1e-3) is None
    assert "shape" in compare(expected[:1], expected, mistakes).message
    assert compare(None, expected, mistakes) is NOT_ATTEMPTED
