"""What a grader answers, and the few helpers all graders share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor


@dataclass(frozen=True, repr=False)
class Feedback:
    """One sentence for the reader, and whether the exercise is solved.

    Attributes:
        status: "open" before the first attempt, then "wrong" or "right".
        message: the sentence.
    """

    status: Literal["open", "wrong", "right"]
    message: str

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.status == "right"

    def __repr__(self) -> str:
        sign = {"open": "…", "wrong": "✗", "right": "✓"}[self.status]
        return f"{sign} {self.message}"


NOT_ATTEMPTED = Feedback("open", "Not attempted yet.")


def right(message: str) -> Feedback:
    """The answer is right; say what it shows."""
    return Feedback("right", message)


def wrong(message: str) -> Feedback:
    """The answer is wrong; name the mistake."""
    return Feedback("wrong", message)


def call(answer: Callable[..., Any], *arguments: Any) -> Any:
    """Run the reader's function; an error in it becomes a `Feedback`, not a crash."""
    try:
        return answer(*arguments)
    except Exception as error:  # whatever the reader's code raises is told back
        return wrong(f"your function raised {type(error).__name__}: {error}")


def unanswered(result: Any) -> Feedback | None:
    """Tell that there is no answer yet, or that it raised an error; None if neither."""
    if result is None or result is Ellipsis:
        return NOT_ATTEMPTED
    return result if isinstance(result, Feedback) else None


def check_integer(result: Any) -> Feedback | None:
    """Tell if the result isn't a whole number; None if it is."""
    if problem := unanswered(result):
        return problem
    if isinstance(result, bool) or not isinstance(result, int):
        return wrong(f"expected a whole number, but got {result!r}.")
    return None


def check_tensor(result: Any, shape: tuple[int, ...]) -> Feedback | None:
    """Tell if the result isn't a finite tensor of this shape; None if it is."""
    if problem := unanswered(result):
        return problem
    if not isinstance(result, Tensor):
        return wrong(f"expected a tensor, but got {type(result).__name__}.")
    if tuple(result.shape) != shape:
        return wrong(f"expected shape {shape}, but got {tuple(result.shape)}.")
    if result.is_floating_point() and not torch.isfinite(result).all():
        return wrong("the result holds NaN or infinity.")
    return None


def compare(
    result: Any, expected: Tensor, mistakes: Mapping[str, Tensor], atol: float = 1e-7
) -> Feedback | None:
    """Compare with the right numbers and with known wrong ones; None if it is right.

    Args:
        result: the reader's tensor, or what `call` made of an error.
        expected: the right one, float64.
        mistakes: the sentence that names a mistake, and what it leads to, float64.
        atol: differences up to this size are rounding.
    """
    if problem := check_tensor(result, tuple(expected.shape)):
        return problem
    result = result.detach().double()
    if torch.allclose(result, expected, rtol=1e-5, atol=atol):
        return None
    for message, other in mistakes.items():
        if torch.allclose(result, other, rtol=1e-5, atol=atol):
            return wrong(message)
    worst = (result - expected).abs().max()
    return wrong(f"some numbers are off, by up to {worst:.3g}.")
