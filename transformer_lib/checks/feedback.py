"""What a grader answers, and the few helpers all graders share."""

from collections.abc import Callable
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


def check_tensor(result: Any, shape: tuple[int, ...]) -> Feedback | None:
    """Tell if the result isn't a finite tensor of this shape; None if it is."""
    if result is None or result is Ellipsis:
        return NOT_ATTEMPTED
    if isinstance(result, Feedback):
        return result
    if not isinstance(result, Tensor):
        return wrong(f"expected a tensor, but got {type(result).__name__}.")
    if tuple(result.shape) != shape:
        return wrong(f"expected shape {shape}, but got {tuple(result.shape)}.")
    if result.is_floating_point() and not torch.isfinite(result).all():
        return wrong("the result holds NaN or infinity.")
    return None
