"""What a grader is: a solution with cases to try it on, and the mistakes it knows.

    @grader(
        cases=lambda: [(torch.tensor([[5, 6, 2], [9, 2, 0]]), 1)],
        right="Every position reads the token before the one it must predict.",
    )
    def check_shift(target, bos_id):
        \"\"\"The target (batch, length) and bos_id -> (batch, length).\"\"\"
        return torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], 1)

    check_shift.mistake(
        "nothing is shifted: every position would read its own answer.",
        lambda target, bos_id: target,
    )
    check_shift.mistake(
        "every row must start with bos_id.",
        lambda target, bos_id: check_shift.solve(target, bos_id + 1),
    )

A mistake is a sentence that names it, and answers as a reader might write them.
`check_shift(answer)` runs the answer on every case and compares what it returns with
what the solution, `check_shift.solve`, returns. If they differ, and an answer of one
of the mistakes returns the same, its sentence is the feedback.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from typing import Any, Literal

import torch
from torch import Tensor, nn

Case = tuple[Any, ...]

_NUMBER = Real | Tensor
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

    def __repr__(self) -> str:
        return f"{_SIGNS[self.status]} {self.message}"


class Mistake(Exception):  # noqa: N818 - it's the reader's, and no error of ours
    """What `Grader.run` raises to name a mistake before any comparison."""


@dataclass(frozen=True)
class KnownMistake:
    """A mistake that a grader can name.

    Attributes:
        sentence: what the reader is told.
        answers: answers that show it.
        sign: recognizes a mistake that many different results show, by something in
            them: takes a result and then the case's arguments, and tells whether the
            mistake is seen. Other true values than True, or several in a tuple or list,
            are written into the `{}` of the sentence. None: a result shows the mistake
            if one of the answers returns the same.
    """

    sentence: str
    answers: tuple[Any, ...]
    sign: Callable[..., Any] | None = None


@dataclass(eq=False)
class Grader:
    """Grades the answers to one exercise: `grader(answer)` returns a `Feedback`.

    Attributes:
        solve: an answer that is right. Its docstring says what an answer takes and
            returns.
        cases: makes the arguments of each call. It is called anew for every answer,
            with the same random numbers, so no answer can spoil another one's case.
        right: what the reader is told then; or a function that makes it from the
            results of all cases.
        run: takes an answer and a case's arguments; returns the result, by default
            `answer(*case)`. None means that there is no answer yet.
        atol: differences up to this size are rounding.
        any_answer: there are many right answers: any that shows none of the mistakes.
        mistakes: those that `mistake` has named.
    """

    solve: Any
    cases: Callable[[], Sequence[Case]]
    right: str | Callable[[list[Any]], str]
    run: Callable[..., Any] = lambda answer, *case: answer(*case)
    atol: float = 1e-5
    any_answer: bool = False
    mistakes: list[KnownMistake] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.__doc__ = self.solve.__doc__

    def mistake(
        self, sentence: str, *answers: Any, sign: Callable[..., Any] | None = None
    ) -> None:
        """Name a mistake: the arguments are attributes of `KnownMistake`."""
        self.mistakes.append(KnownMistake(sentence, answers, sign))

    def __call__(self, *answer: Any) -> Feedback:
        """Run an answer, which may have several parts, and say what to do next."""
        cases, used = self.make_cases(), self.make_cases()
        missing = any(map(is_missing, answer))
        results = self._run_all(answer[0] if len(answer) == 1 else answer, used)
        if missing or results[0] is None:
            return Feedback("open", "Not attempted yet.")
        expected = self._run_all(self.solve, self.make_cases())
        for number, case in enumerate(cases):
            problem = self._find_mistake(number, results, expected, case)
            problem = problem or self._find_change(used[number], case)
            if problem:
                return Feedback("wrong", self._write_arguments(case) + problem)
        message = self.right if isinstance(self.right, str) else self.right(results)
        return Feedback("right", message)

    def make_cases(self) -> list[Case]:
        """Make the arguments of each call, the same every time."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(2)
            return list(self.cases())

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

    def _find_mistake(
        self, number: int, results: list[Any], expected: list[Any], case: Case
    ) -> str | None:
        """Name what is wrong with the result of one case; None if it is right."""
        result, wanted = results[number], expected[number]
        if result is None:
            return "nothing is returned here."
        fits = _kind(result) == _kind(wanted)
        right = fits and (self.any_answer or _close(result, wanted, self.atol))
        if not right and (sentence := self._recognize(number, results, expected)):
            return sentence
        if isinstance(result, Mistake):
            return str(result)
        if not fits:
            return f"expected {_kind(wanted)}, but got {_kind(result)}."
        for mistake in self.mistakes:
            if mistake.sign and (value := mistake.sign(result, *case)):
                several = isinstance(value, tuple | list)
                return mistake.sentence.format(*(value if several else [value]))
        return None if right else _differ(result, wanted, self.atol)

    def _recognize(
        self, number: int, results: list[Any], expected: list[Any]
    ) -> str | None:
        """Find the mistake with this result, and with most of the others too."""
        fitting = {}
        for mistake in self.mistakes:
            for answer in () if mistake.sign else mistake.answers:
                others = self._run_all(answer, self.make_cases())
                agreed = [*map(self._agree, results, others, expected)]
                if agreed[number]:
                    fitting.setdefault(sum(agreed), mistake.sentence)
        return fitting[max(fitting)] if fitting else None

    def _agree(self, result: Any, other: Any, expected: Any) -> bool:
        """Whether two results are equal, or wrong in the same way."""
        kind = _kind(result)
        if kind != _kind(other):
            return False
        return kind != _kind(expected) or _close(result, other, self.atol)

    def _find_change(self, used: Case, case: Case) -> str | None:
        """Name an argument that the answer has changed in place."""
        for name, now, before in zip(self._names, used, case, strict=False):
            if isinstance(before, Tensor | list) and not _close(now, before, 0.0):
                return f"the result is right, but {name} was changed in place; copy it."
        return None

    def _write_arguments(self, case: Case) -> str:
        """Write the arguments that a line has room for."""
        written = []
        for name, value in zip(self._names, case, strict=False):
            text = repr(value.tolist() if isinstance(value, Tensor) else value)
            if isinstance(value, _NUMBER | str | list | tuple | set) and len(text) < 60:
                written.append(f"{name} = {text}")
        return f"{', '.join(written)}: " if written else ""

    @property
    def _names(self) -> list[str]:
        """The names of a case's arguments, as `run` or the solution calls them."""
        if self.run is Grader.run:
            return [*inspect.signature(self.solve).parameters]
        return [*inspect.signature(self.run).parameters][1:]


def grader(
    cases: Callable[[], Sequence[Case]], right: Any, **options: Any
) -> Callable[[Any], Grader]:
    """Make a solution into its grader; the arguments are attributes of `Grader`."""
    return lambda solve: Grader(solve, cases, right, **options)


def run_module(
    answer: Any, sizes: Case, inputs: Case, parameters: dict[str, Tensor] | None = None
) -> Any:
    """Make a reader's module, give it known weights and call it.

    Args:
        answer: a class, or a function that makes the module.
        sizes: its arguments.
        inputs: the arguments of the module itself.
        parameters: what its parameters of these names become; the others become 0.

    Returns:
        What the module returns; None if nothing is written yet.

    Raises:
        Mistake: a parameter is missing.
    """
    if getattr(answer, "forward", None) is nn.Module.forward:
        return None
    module, absent = answer(*sizes), []
    if is_missing(module):
        return None
    if parameters:
        for parameter in module.parameters():
            nn.init.zeros_(parameter)
        absent = module.load_state_dict(parameters, strict=False).unexpected_keys
    result = module.eval()(*inputs)
    if absent and not is_missing(result):  # an empty forward comes first
        raise Mistake(f"the module needs a parameter {absent[0]}.")
    return result


def fill(module: nn.Module) -> nn.Module:
    """Draw every parameter, gains and biases too, so that every mistake shows."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, float(parameter.dim() == 1), 0.5)
    return module.requires_grad_(False)


def is_missing(part: Any) -> bool:
    """Whether there is no answer yet."""
    return part is None or part is ...


def _kind(result: Any) -> str:
    """Say what sort of thing a result is: that must fit before its numbers can."""
    if isinstance(result, Tensor) and result.dim():
        numbers = "numbers" if result.is_floating_point() else str(result.dtype)
        return f"{numbers} of shape {tuple(result.shape)}"
    if isinstance(result, tuple | list):
        tensors = any(isinstance(part, Tensor) and part.dim() for part in result)
        if tensors or not result:
            return f"({', '.join(map(_kind, result))})"
        return f"list of {_kind(result[0])}"
    if isinstance(result, Mistake):
        return str(result)
    return "number" if isinstance(result, _NUMBER) else type(result).__name__


def _close(result: Any, expected: Any, atol: float) -> bool:
    """Whether two results are equal up to rounding."""
    if isinstance(expected, Tensor) and expected.dim():
        x, y = result.double(), expected.double()
        return torch.allclose(x, y, 1e-4, atol, equal_nan=True)
    if isinstance(expected, tuple | list):
        same = isinstance(result, tuple | list) and len(result) == len(expected)
        return same and all(map(partial(_close, atol=atol), result, expected))
    if isinstance(expected, float | Tensor) and isinstance(result, _NUMBER):
        return math.isclose(result, expected, rel_tol=1e-6, abs_tol=atol)
    return bool(result == expected)


def _differ(result: Any, expected: Any, atol: float) -> str:
    """Say where a result differs that is none of the known mistakes."""
    if isinstance(expected, Tensor) and expected.dim():
        wrong = ~result.double().isclose(expected.double(), 1e-4, atol)
        index = tuple(wrong.nonzero()[0].tolist())
        entry, wanted = (f"{x[index].item():.4g}" for x in (result, expected))
        return f"the entry at {index} is {entry}, but should be {wanted}."
    if _kind(expected).startswith("("):
        pairs = zip(result, expected, strict=True)
        return next(_differ(*p, atol) for p in pairs if not _close(*p, atol))
    return f"expected {expected}, but got {result}."


@contextmanager
def replacing(
    names: Sequence[str], change: Callable[[Callable], Callable]
) -> Iterator[None]:
    """Change torch's functions and methods of these names; those of F and nn call them.

    Args:
        names: "softmax", for example.
        change: takes what is there, and returns what stands in its place.
    """
    functions = {name: getattr(torch, name) for name in names}
    methods = {name: getattr(Tensor, name) for name in names}
    for name in names:
        setattr(torch, name, change(functions[name]))
        setattr(Tensor, name, change(methods[name]))
    try:
        yield
    finally:
        for name in names:
            setattr(torch, name, functions[name])
            delattr(Tensor, name)  # which leaves the one that it inherits
