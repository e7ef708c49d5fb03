"""What a grader is: its solution, decorated with cases and a table of known mistakes.

    @grader(
        cases=lambda: [(torch.tensor([[5, 6, 2], [9, 2, 0]]), 1)],
        right="Every position reads the token before the one it must predict.",
        mistakes=lambda solve: {
            "nothing is shifted: every position would read its own answer.": (
                lambda target, bos_id: target
            ),
            "every row must start with bos_id.": (
                lambda target, bos_id: solve(target, bos_id + 1)
            ),
        },
    )
    def check_shift(target, bos_id):
        \"\"\"The target (batch, length) and bos_id -> (batch, length).\"\"\"
        return torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], 1)

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
from itertools import cycle
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

Case = tuple[Any, ...]

_PLAIN = int | float | str | list | tuple | set  # arguments that a message can show
_SIGNS = {"open": "…", "wrong": "✗", "right": "✓"}


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
        return f"{_SIGNS[self.status]} {self.message}"


NOT_ATTEMPTED = Feedback("open", "Not attempted yet.")


class Mistake(Exception):  # noqa: N818 - it's the reader's, and no error of ours
    """What `Grader.run` raises to name a mistake before any comparison."""


@dataclass(frozen=True)
class Seen:
    """A mistake that many different results show, recognized by a sign in them.

    Attributes:
        sign: takes a result and then the case's arguments; tells whether the mistake
            is seen. Other true values than True, or several in a tuple or list, are
            written into the `{}` of the sentence.
        examples: answers with this mistake, or dictionaries that make one.
    """

    sign: Callable[..., Any]
    examples: list[Any]


@dataclass(eq=False)
class Grader:
    """Grades the answers to one exercise: `grader(answer)` returns a `Feedback`.

    Attributes:
        solution: an answer that is right. Its docstring says what an answer takes and
            returns.
        cases: makes the arguments of each call. It is called anew for every answer,
            with the same random numbers, so no answer can spoil another one's case.
        right: what the reader is told then; or a function that makes it from the
            results of all cases.
        mistakes: takes the solution and returns the table: the sentence that names a
            mistake -> an answer with that mistake, a dictionary that makes one of the
            solution (keyword arguments of a function, attributes of a class), a list of
            those, or `Seen`. The sentence of an answer that has the wrong shape or type
            fits all answers that are wrong in the same way.
        run: takes an answer and a case's arguments; returns the result, by default
            `answer(*case)`. None means that there is no answer yet.
        view: takes a result and a case's arguments; returns the part of it that is
            compared, by default all of it.
        atol: differences up to this size are rounding.
        any_answer: there are many right answers: any that shows none of the mistakes.
    """

    solution: Any
    cases: Callable[[], Sequence[Case]]
    right: str | Callable[[list[Any]], str]
    mistakes: Callable[[Any], Mapping[str, Any]]
    run: Callable[..., Any] = lambda answer, *case: answer(*case)
    view: Callable[..., Any] = lambda result, *case: result
    atol: float = 1e-5
    any_answer: bool = False

    def __post_init__(self) -> None:
        self.__doc__ = self.solution.__doc__

    def __call__(self, *answer: Any) -> Feedback:
        """Run an answer, which may have several parts, and say what to do next."""
        if any(map(is_missing, answer)):
            return NOT_ATTEMPTED
        given = self.make_cases()
        found = self._run_all(answer[0] if len(answer) == 1 else answer, given)
        if found[0] is None:
            return NOT_ATTEMPTED
        for number, case in enumerate(given):
            sentence = self._find_mistake(number, found)
            if sentence or (sentence := self._find_change(number, case)):
                return Feedback("wrong", self._tell_case(number) + sentence)
        message = self.right if isinstance(self.right, str) else self.right(found)
        return Feedback("right", message)

    def make_cases(self) -> list[Case]:
        """Make the arguments of each call, the same every time."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(2)
            return list(self.cases())

    @cached_property
    def table(self) -> Mapping[str, Any]:
        """The mistakes of this solution."""
        return self.mistakes(self.solution)

    def answers_with(self, sentence: str) -> list[Any]:
        """The table's answers with this mistake."""
        answers = self.table[sentence]
        answers = answers.examples if isinstance(answers, Seen) else answers
        answers = answers if isinstance(answers, list) else [answers]
        return [
            _change(self.solution, answer)
            if isinstance(answer, dict) and callable(self.solution)
            else answer
            for answer in answers
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
            for sentence, mistake in self.table.items()
            if not isinstance(mistake, Seen)
            for answer in self.answers_with(sentence)
        ]

    def _run_all(self, answer: Any, cases: Sequence[Case]) -> list[Any]:
        """Run an answer on each case; an error becomes a `Mistake` with its text."""
        results = []
        for case in cases:
            try:
                with torch.random.fork_rng(devices=[]):  # the reader's stay as they are
                    result = self.run(answer, *case)
            except Mistake as mistake:
                result = mistake
            except Exception as error:  # whatever a reader's code raises is told back
                text = f"your function raised {type(error).__name__}: {error}"
                result = Mistake(text)
            first = result[0] if isinstance(result, tuple | list) and result else result
            results.append(None if is_missing(first) else result)
        return results

    def _find_mistake(self, number: int, found: list[Any]) -> str | None:
        """Name what is wrong with the result of one case; None if it is right."""
        result, expected = found[number], self._expected[number]
        if result is None:
            return "nothing is returned here."
        problem = _complain(result, expected)
        right = not problem and (
            self.any_answer or self._agree(number, result, expected)
        )
        if not right and (sentence := self._recognize(number, found)):
            return sentence
        if problem:
            return problem
        for sentence, mistake in self.table.items():
            if not isinstance(mistake, Seen):
                continue
            if value := mistake.sign(result, *self._cases[number]):
                several = isinstance(value, tuple | list)
                return sentence.format(*(value if several else [value]))
        return None if right else _differ(*self._views(number, result, expected))

    def _recognize(self, number: int, found: list[Any]) -> str | None:
        """Find the mistake with this result, if possible in the other cases too."""
        fitting = {}
        for sentence, others in reversed(self._mistaken):
            rows = zip(range(len(found)), found, others, strict=True)
            agreed = [self._agree(*row) for row in rows]
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
        for name, now, before in zip(
            self._names, given, self._cases[number], strict=True
        ):
            data = isinstance(before, Tensor | np.ndarray | list | set)
            if data and not _same(now, before, atol=0.0):
                return f"the result is right, but {name} was changed in place; copy it."
        return None

    @cached_property
    def _names(self) -> list[str]:
        """The names of a case's arguments, as `run` or the solution calls them."""
        own = [*inspect.signature(self.run).parameters.values()][1:]
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in own):
            own = inspect.signature(self.solution).parameters.values()
        return [parameter.name for parameter in own][: len(self._cases[0])]

    def _tell_case(self, number: int) -> str:
        """Say which case it is, by the arguments that differ among the cases."""
        plain = all(isinstance(value, _PLAIN) for value in self._cases[0])
        telling = []
        for name, *column in zip(self._names, *self._cases, strict=True):
            shown = [_show(value) for value in column]
            alone = len(shown) == 1 and plain
            if shown[number] and (alone or len({*shown}) > 1):
                telling.append(f"{name} = {shown[number]}")
        return f"{', '.join(telling)}: " if telling else ""


def _change(solution: Any, parts: Mapping[str, Any]) -> Any:
    """A function with other keyword arguments, or a class with other attributes."""
    if not isinstance(solution, type):
        return partial(solution, **parts)
    attributes = {n: staticmethod(p) if callable(p) else p for n, p in parts.items()}
    return type(solution.__name__, (solution,), attributes)


def grader(**parts: Any) -> Callable[[Any], Grader]:
    """Make a solution into its grader; the arguments are attributes of `Grader`."""
    return partial(Grader, **parts)


def run_module(
    answer: Any,
    sizes: Case,
    given: Case,
    parameters: Mapping[str, Tensor] | None = None,
) -> Any:
    """Make a reader's module, give it known weights and call it.

    Args:
        answer: a class, or a function that makes the module.
        sizes: its arguments.
        given: the arguments of the module itself.
        parameters: what its parameters of these names become; the others become 0.

    Returns:
        What the module returns; None if nothing is written yet.

    Raises:
        Mistake: there is no module, or a parameter is missing or has another shape.
    """
    if getattr(answer, "forward", None) is nn.Module.forward:
        return None
    module = answer(*sizes)
    if is_missing(module):
        return None
    if not isinstance(module, nn.Module):
        raise Mistake(f"expected a module, but got {type(module).__name__}.")
    own, absent = dict(module.named_parameters(remove_duplicate=False)), None
    if parameters:
        for parameter in own.values():
            nn.init.zeros_(parameter)
        for name, value in parameters.items():
            wanted = f"a parameter {name} of shape {tuple(value.shape)}"
            if name not in own:
                absent = wanted
            elif own[name].shape != value.shape:
                raise Mistake(f"the module needs {wanted}.")
            else:
                own[name].data.copy_(value)
    result = module.eval()(*given)
    if absent and not is_missing(result):  # an empty forward comes first
        raise Mistake(f"the module needs {absent}.")
    return result


def is_missing(part: Any) -> bool:
    """Whether there is no answer yet."""
    return part is None or part is ...


def _show(value: Any) -> str:
    """Write a value briefly; nothing if that is impossible."""
    if isinstance(value, Tensor):
        small = value.numel() <= 4 and bool((value == value.long()).all())
        return str(value.tolist()) if small else f"tensor of shape {tuple(value.shape)}"
    text = repr(value) if isinstance(value, _PLAIN) else ""
    return text if len(text) <= 60 and "tensor(" not in text else ""


def _complain(result: Any, expected: Any) -> str | None:
    """Say why a result can't be compared with the expected one; None if it can."""
    if isinstance(result, Mistake):
        return str(result)
    if not _has_type_of(expected, result):
        wanted = type(expected).__name__
        wanted += f" of {len(expected)}" if isinstance(expected, tuple) else ""
        return (
            f"expected type {wanted}, but got {_show(result) or type(result).__name__}."
        )
    if isinstance(expected, Tensor):
        if result.shape != expected.shape:
            shapes = tuple(expected.shape), tuple(result.shape)
            return f"expected shape {shapes[0]}, but got {shapes[1]}."
        if result.dtype != expected.dtype and not expected.is_floating_point():
            return f"expected numbers of type {expected.dtype}, but got {result.dtype}."
        n_bad = int((~result.isfinite()).sum())
        return f"{n_bad} numbers are NaN or infinity." if n_bad else None
    if isinstance(expected, float):
        return None if math.isfinite(result) else f"the result is {float(result)}."
    if isinstance(expected, tuple | list | set):
        examples = expected if isinstance(expected, tuple) else cycle([*expected][:1])
        problems = (_complain(*pair) for pair in zip(result, examples, strict=False))
        return next(filter(None, problems), None)
    return None


def _has_type_of(expected: Any, result: Any) -> bool:
    """Whether a result has the type of the expected one, numpy's types included."""
    if isinstance(expected, tuple):
        return isinstance(result, tuple | list) and len(result) == len(expected)
    if not isinstance(expected, int | float):
        kind = type(expected)
        return isinstance(result, tuple | list if kind is list else kind)
    try:
        (operator.index if isinstance(expected, int) else math.isfinite)(result)
    except (TypeError, ValueError, RuntimeError):
        return False
    return not isinstance(result, bool)


def _same(result: Any, expected: Any, atol: float) -> bool:
    """Whether two results are equal up to rounding; with atol 0, exactly."""
    if isinstance(expected, Tensor):
        return (
            result.shape == expected.shape and not _wrong(result, expected, atol).any()
        )
    if isinstance(expected, np.ndarray):
        return np.array_equal(result, expected)
    if isinstance(expected, tuple | list):
        pairs = zip(result, expected, strict=False)
        return len(result) == len(expected) and all(_same(*p, atol) for p in pairs)
    if isinstance(expected, float):
        return math.isclose(result, expected, rel_tol=1e-6, abs_tol=atol)
    return bool(result == expected)


def _wrong(result: Tensor, expected: Tensor, atol: float) -> Tensor:
    """True where an entry is wrong."""
    x, y = (each.detach().double() for each in (result, expected))
    return ~x.isclose(y, 1e-4 if atol else 0.0, atol, equal_nan=True)


def _differ(result: Any, expected: Any) -> str:
    """Say where a result differs that is none of the known mistakes."""
    if isinstance(expected, tuple) and isinstance(expected[0], Tensor):
        pairs = zip(result, expected, strict=True)
        return next(_differ(*pair) for pair in pairs if not _same(*pair, 1e-5))
    if isinstance(expected, Tensor):
        index = tuple(_wrong(result, expected, 1e-5).nonzero()[0].tolist())
        found, wanted = (_round(x[index].item()) for x in (result, expected))
        return f"the entry at {index} is {found}, but should be {wanted}."
    return f"expected {_round(expected)}, but got {_round(result)}."


def _round(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_round, value))})"
    return f"{float(value):.4g}" if isinstance(value, float | Tensor) else repr(value)
