"""What all graders share."""

import pytest
import torch

from transformer_lib.checks.feedback import (
    NOT_ATTEMPTED,
    call,
    check_tensor,
    right,
    wrong,
)


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
