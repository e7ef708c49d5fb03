"""What a grader is: cases, one solution, and a table of known mistakes.

    check_shift = Grader(
        "target (batch, length), bos_id -> (batch, length)",
        cases=lambda: [(torch.tensor([[5, 6, 2], [9, 2, 0]]), 1)],
        solution=shift,
        right="Every position reads the token before the one it must predict.",
        mistakes={
            "nothing is shifted: every position would read its own answer.": (
                lambda target, bos_id: target
            ),
        },
    )

A mistake is an answer as a reader might write it, under the sentence that names it.
`check_shift(answer)` runs the answer on every case and compares what it returns with
what the solution returns. If they differ, and one of the mistakes returns the same as
the answer, its sentence is the feedback.
"""

import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

Case = tuple[Any, ...]

_PLAIN = int | float | str | list | tuple | set  # arguments that a message can show


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


class Mistake(Exception):  # noqa: N818 - it's the reader's, and no error of ours
    """What `Grader.run` raises to name a mistake before any comparison."""


@dataclass(frozen=True)
class Seen:
    """A mistake that many different results show, recognized by a sign in them.

    Attributes:
        sign: takes a result and then the case's arguments; tells whether the mistake
            is seen. Other values than True and False are written into the `{}` of the
            sentence; None means False.
        example: an answer with this mistake.
    """

    sign: Callable[..., Any]
    example: Any


@dataclass(frozen=True, eq=False)
class Grader:
    """Grades the answers to one exercise: `grader(answer)` returns a `Feedback`.

    Attributes:
        task: what an answer takes and returns.
        cases: makes the arguments of each call. It is called anew for every answer,
            with the same random numbers, so no answer can spoil another one's case.
        solution: an answer that is right.
        right: what the reader is told then; or a function that makes it from the
            results of all cases.
        mistakes: the sentence that names a mistake -> an answer with that mistake, a
            dictionary of keyword arguments that make one of the solution, a list of
            those, or `Seen`. The sentence of an answer that has the wrong shape or
            type fits all answers that are wrong in the same way.
        run: takes an answer and a case's arguments; returns the result, by default
            `answer(*case)`. None means that there is no answer yet.
        view: takes a result and a case's arguments; returns the part of it that is
            compared, by default all of it.
        atol: differences up to this size are rounding.
        any_answer: there are many right answers: any that shows none of the mistakes.
    """

    task: str
    cases: Callable[[], Sequence[Case]]
    solution: Any
    right: str | Callable[[list[Any]], str]
    mistakes: Mapping[str, Any]
    run: Callable[..., Any] = lambda answer, *case: answer(*case)
    view: Callable[..., Any] = lambda result, *case: result
    atol: float = 1e-5
    any_answer: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.task)

    def __call__(self, *answer: Any) -> Feedback:
        """Run an answer, which may have several parts, and say what to do next."""
        if any(is_missing(part) for part in answer):
            return NOT_ATTEMPTED
        given = self.make_cases()
        found = self._run_all(answer[0] if len(answer) == 1 else answer, given)
        for number, result in enumerate(found):
            if result is None:
                return NOT_ATTEMPTED
            sentence = self._find_mistake(number, found)
            if sentence or (sentence := self._find_change(number, given[number])):
                return Feedback("wrong", self._tell_case(number) + sentence)
        message = self.right if isinstance(self.right, str) else self.right(found)
        return Feedback("right", message)

    def make_cases(self) -> list[Case]:
        """Make the arguments of each call, the same every time."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(2)
            return list(self.cases())

    def answers_with(self, sentence: str) -> list[Any]:
        """The table's answers with this mistake."""
        answers = self.mistakes[sentence]
        if isinstance(answers, Seen):
            answers = answers.example
            return answers if isinstance(answers, list) else [answers]
        return [
            partial(self.solution, **answer) if isinstance(answer, dict) else answer
            for answer in (answers if isinstance(answers, list) else [answers])
        ]

    @cached_property
    def _cases(self) -> list[Case]:
        """Cases that no answer gets into its hands."""
        return self.make_cases()

    @cached_property
    def _expected(self) -> list[Any]:
        return self._run_all(self.solution, self.make_cases())

    @cached_property
    def _mistaken(self) -> list[tuple[str, list[Any]]]:
        """The sentences of mistakes known by their results, and these results."""
        return [
            (sentence, self._run_all(answer, self.make_cases()))
            for sentence, mistake in self.mistakes.items()
            if not isinstance(mistake, Seen)
            for answer in self.answers_with(sentence)
        ]

    def _run_all(self, answer: Any, cases: Sequence[Case]) -> list[Any]:
        """Run an answer on each case; an error becomes a `Mistake` with its text."""
        results = []
        for case in cases:
            try:
                result = self.run(answer, *case)
            except Mistake as mistake:
                result = mistake
            except Exception as error:  # whatever a reader's code raises is told back
                text = f"your function raised {type(error).__name__}: {error}"
                result = Mistake(text)
            parts = result if isinstance(result, tuple | list) and result else [result]
            results.append(None if all(map(is_missing, parts)) else result)
        return results

    def _find_mistake(self, number: int, found: list[Any]) -> str | None:
        """Name what is wrong with the result of one case; None if it is right."""
        result, expected = found[number], self._expected[number]
        problem = _complain(result, expected)
        right = (
            not problem if self.any_answer else self._agree(number, result, expected)
        )
        if not right and (sentence := self._recognize(number, found)):
            return sentence
        if problem:
            return problem
        for sentence, mistake in self.mistakes.items():
            if isinstance(mistake, Seen):
                value = mistake.sign(result, *self._cases[number])
                value = value.item() if hasattr(value, "item") else value
                if value is not None and value is not False:
                    return sentence.format(
                        *value if isinstance(value, tuple) else [value]
                    )
        return None if right else _differ(*self._views(number, result, expected))

    def _recognize(self, number: int, found: list[Any]) -> str | None:
        """Find the mistake with this result, if possible in the other cases too."""
        fitting = {}
        for sentence, others in reversed(self._mistaken):
            agreed = [self._agree(*each) for each in zip(count(), found, others)]
            if agreed[number]:
                fitting[all(agreed)] = sentence
        return fitting.get(True) or fitting.get(False)

    def _agree(self, number: int, result: Any, other: Any) -> bool:
        """Whether two results are equal, or can't be compared for the same reason."""
        problems = [_complain(each, self._expected[number]) for each in (result, other)]
        if any(problems):
            return problems[0] == problems[1]
        return _same(*self._views(number, result, other), self.atol)

    def _views(self, number: int, *results: Any) -> list[Any]:
        return [self.view(result, *self._cases[number]) for result in results]

    def _find_change(self, number: int, given: Case) -> str | None:
        """Name an argument that the answer has changed in place."""
        case = self._cases[number]
        for name, now, before in zip(self._names(case), given, case, strict=True):
            kept = not isinstance(before, Tensor | np.ndarray | list | set)
            if not kept and not _same(now, before, atol=0.0):
                return (
                    f"the result is right, but {name} was changed in place; leave it as "
                    "it was, and return a new one."
                )
        return None

    def _names(self, case: Case) -> list[str]:
        """The names of a case's arguments, as the solution calls them."""
        if type(self).run is not self.run:
            return list(inspect.signature(self.run).parameters)[1 : len(case) + 1]
        return list(inspect.signature(self.solution).parameters)[: len(case)]

    def _tell_case(self, number: int) -> str:
        """Say which case it is, by the arguments that differ among the cases."""
        cases = self._cases
        if len(cases) == 1 and not all(isinstance(it, _PLAIN) for it in cases[0]):
            return ""  # one case, of which numbers alone tell little
        columns = zip(self._names(cases[0]), *cases, strict=True)
        shown = {name: [_show(value) for value in values] for name, *values in columns}
        telling = [
            f"{name}={values[number]}"
            for name, values in shown.items()
            if values[number] and (len(set(values)) > 1 or len(cases) == 1)
        ]
        return f"{', '.join(telling)}: " if telling else ""


def is_missing(part: Any) -> bool:
    """Whether there is no answer yet."""
    return part is None or part is ...


def _show(value: Any) -> str:
    """Write an argument briefly; nothing if that is impossible."""
    if isinstance(value, Tensor):
        if value.numel() <= 4 and value.equal(value.round()):
            return str(value.tolist())
        return f"tensor of shape {tuple(value.shape)}"
    text = repr(value) if isinstance(value, _PLAIN) else ""
    return text if len(text) <= 60 and "tensor(" not in text else ""


def _kind(x: Tensor) -> str:
    if x.dtype == torch.bool:
        return "boolean"
    return "floating-point" if x.is_floating_point() else "integer"


def _complain(result: Any, expected: Any) -> str | None:
    """Say why a result can't be compared with the expected one; None if it can."""
    got = f"but got {_show(result) or type(result).__name__}."
    if isinstance(result, Mistake):
        return str(result)
    if isinstance(expected, Tensor):
        return _complain_of_tensor(result, expected)
    if isinstance(expected, bool | str):
        right_type = isinstance(result, type(expected))
        return None if right_type else f"expected a {type(expected).__name__}, {got}"
    if isinstance(expected, int):
        return (
            None
            if _as_integer(result) is not None
            else f"expected a whole number, {got}"
        )
    if isinstance(expected, float):
        number = _as_number(result)
        if number is None:
            return f"expected a number, {got}"
        return None if math.isfinite(number) else f"the result is {number}."
    if isinstance(expected, tuple):
        if not isinstance(result, tuple | list) or len(result) != len(expected):
            return f"expected {len(expected)} results, as a tuple, {got}"
        pairs = zip(result, expected, strict=True)
        return next(filter(None, (_complain(*pair) for pair in pairs)), None)
    if isinstance(expected, list | set):
        allowed = (list, tuple) if isinstance(expected, list) else (set, frozenset)
        if not isinstance(result, allowed):
            return f"expected a {type(expected).__name__}, {got}"
        like = next(iter(expected), None)
        problems = (_complain(item, like) for item in result if like is not None)
        return next(filter(None, problems), None)
    right_type = isinstance(result, type(expected))
    return None if right_type else f"expected a {type(expected).__name__}, {got}"


def _complain_of_tensor(result: Any, expected: Tensor) -> str | None:
    if not isinstance(result, Tensor):
        return f"expected a tensor, but got {type(result).__name__}."
    if result.shape != expected.shape:
        shapes = tuple(expected.shape), tuple(result.shape)
        return f"expected shape {shapes[0]}, but got {shapes[1]}."
    kinds = _kind(expected), _kind(result)
    if kinds[0] != kinds[1] and kinds != ("floating-point", "integer"):
        return f"expected a tensor that is {kinds[0]}, but got {result.dtype}."
    if expected.isfinite().all() and (n_bad := int((~result.isfinite()).sum())):
        return f"{n_bad} of {result.numel()} numbers are NaN or infinity."
    return None


def _as_integer(result: Any) -> int | None:
    try:
        return None if isinstance(result, bool) else operator.index(result)
    except TypeError:
        return None


def _as_number(result: Any) -> float | None:
    if isinstance(result, bool | str) or getattr(result, "shape", ()) != ():
        return None
    try:
        return float(result)
    except (TypeError, ValueError, RuntimeError):
        return None


def _same(result: Any, expected: Any, atol: float) -> bool:
    """Whether two results are equal up to rounding."""
    if isinstance(expected, Tensor):
        if result.shape != expected.shape:
            return False
        x, y = (each.detach().double() for each in (result, expected))
        return torch.allclose(
            x, y, rtol=1e-4 if atol else 0.0, atol=atol, equal_nan=True
        )
    if isinstance(expected, np.ndarray):
        return np.array_equal(result, expected)
    if isinstance(expected, tuple | list):
        return len(result) == len(expected) and all(
            _same(*pair, atol) for pair in zip(result, expected, strict=True)
        )
    if isinstance(expected, float):
        return math.isclose(float(result), expected, rel_tol=1e-6, abs_tol=atol)
    return bool(result == expected)


def _differ(result: Any, expected: Any) -> str:
    """Say where a result differs that is none of the known mistakes."""
    if isinstance(expected, tuple) and isinstance(expected[0], Tensor):
        pairs = zip(result, expected, strict=True)
        return next(_differ(*pair) for pair in pairs if not _same(*pair, 1e-5))
    if not isinstance(expected, Tensor):
        return f"expected {expected!r}, but got {result!r}."
    if _kind(expected) == "floating-point":
        worst = (result.detach().double() - expected.detach().double()).abs().max()
        return f"some numbers are off, by up to {worst.item():.3g}."
    index = tuple((result != expected).nonzero()[0].tolist())
    found, wanted = result[index].item(), expected[index].item()
    return f"the entry at {index} is {found}, but should be {wanted}."
