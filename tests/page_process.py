"""The page's torch in a process of its own, and answers that can be compared.

Two torches can't be in one process. So tests send programs as text to a second one,
which has nothing but Python and the files of the pages:

    python -I -S page_process.py FOLDER

A program's answer is what its last line is worth, as plain data; `answers` gives it in
either process.
"""

import ast
import contextlib
import functools
import importlib
import json
import math
import random
import subprocess
import sys
import warnings

DTYPES = ("float32", "float64", "int64", "bool")
SPECIAL = (math.nan, math.inf, -math.inf, 0.0)


class Page:
    """The process with the page's torch: called as `answers`, answers the same."""

    def __init__(self, folder):
        command = [sys.executable, "-I", "-S", __file__, str(folder)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, **pipes)

    def __call__(self, programs, before=""):
        self.process.stdin.write(json.dumps([programs, before]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the page's torch has ended:\n{before}{programs}"
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def answers(programs, before=""):
    """Run programs with the torch of this process.

    Args:
        programs: their texts. Each finds the names of `before`, and leaves none.
        before: lines that are run once.

    Returns:
        For each program what its last line is worth, or its error, as plain data.
    """
    import torch
    import torch.nn.functional as F
    from torch import nn

    names = {"torch": torch, "nn": nn, "F": F, "math": math, "Tensor": torch.Tensor}
    names |= {"make": make, "ask": ask, "attempt": attempt}
    with warnings.catch_warnings(action="ignore"):
        exec(before, names)
        return json.loads(json.dumps([_run(each, {**names}) for each in programs]))


def _run(program, names):
    try:
        lines, last = _compile(program)
        exec(lines, names)
        return describe(eval(last, names))
    except Exception as error:
        return {"error": _kind(error), "message": str(error).partition("\n")[0]}


@functools.cache
def _compile(program):
    *lines, last = ast.parse(program).body
    lines = compile(ast.Module(lines, []), "program", "exec")
    return lines, compile(ast.Expression(last.value), "program", "eval")


def attempt(function):
    """The first line of what a call raises; None if it works."""
    try:
        function()
    except Exception as error:
        return f"{_kind(error)}: {error}".partition("\n")[0]
    return None


def _kind(error):
    # PyTorch has both for a type of numbers that an operation doesn't take.
    name = type(error).__name__
    return "RuntimeError" if name == "NotImplementedError" else name


def describe(value):
    """A value as plain data: tensors with type, shape and numbers."""
    import torch

    if isinstance(value, torch.Tensor):
        dtype, shape = str(value.dtype), list(value.shape)
        kind = "parameter" if isinstance(value, torch.nn.Parameter) else "tensor"
        return {kind: value.reshape(-1).tolist(), "dtype": dtype, "shape": shape}
    if isinstance(value, list | tuple):  # named tuples and sizes, too
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [describe(part) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[str(key), describe(part)] for key, part in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return {"repr": repr(value)}


def make(shape, dtype, layout="plain", seed=0, special=False):
    """A tensor of numbers that both processes draw alike, whose memory lies otherwise.

    Args:
        shape: of the tensor.
        dtype: its name.
        layout: "plain", "transposed" (the axes of the memory run backward) or "sliced"
            (every second number of the memory).
        seed: of the numbers.
        special: whether NaN and infinity are among them.
    """
    import torch

    sizes = [*shape]
    if layout == "transposed":
        sizes.reverse()
    if layout == "sliced":
        sizes = [2 * size for size in sizes]
    draw = random.Random(repr(seed))  # a text seeds alike on 32 and 64 bits
    numbers = {
        "bool": lambda: draw.random() < 0.5,
        "int64": lambda: draw.randint(-3, 3),
    }.get(dtype, lambda: draw.uniform(-3, 3))
    values = [numbers() for _ in range(math.prod(sizes))]
    if special:
        values = [draw.choice([value, value, *SPECIAL]) for value in values]
    x = torch.tensor(values, dtype=getattr(torch, dtype)).view(sizes)
    if layout == "transposed":
        return x.permute(*range(x.dim() - 1, -1, -1)) if sizes else x
    if layout == "sliced":
        return x[tuple(slice(None, None, 2) for _ in sizes)]
    return x


# Graders.


def ask(module, name, which):
    """Let a grader grade its solution, one of its planted answers, or a broken one.

    Args:
        module: the chapter's.
        name: of the grader.
        which: "solve", the numbers of a mistake and its answer, or a key of `BROKEN`.

    Returns:
        Whether it is right, and the sentence.
    """
    module = importlib.import_module(f"transformer_book.exercises.{module}")
    grader = getattr(module, name)
    if which == "solve":
        given = grader.solve
    elif which in BROKEN:
        given = BROKEN[which](grader)
    else:
        mistake, number = which
        given = grader.mistakes[mistake].answers[number]
    feedback = grader(*(given if isinstance(given, tuple) else [given]))
    return feedback.status, feedback.message


def _changing(change):
    """Answers that change what the solution returns, if it is a tensor."""

    def broken(grader):
        def answer(*case, **options):
            import torch

            result = grader.solve(*case, **options)
            return change(result) if isinstance(result, torch.Tensor) else "nothing"

        return answer

    return broken


def _spoiling(grader):
    """An answer that returns what is right, and fills its arguments with zeros."""

    def answer(*case):
        import torch

        result = grader.solve(*case)
        result = result.clone() if isinstance(result, torch.Tensor) else result
        for argument in case:
            if isinstance(argument, torch.Tensor):
                argument.zero_()
            elif isinstance(argument, list):
                argument.clear()
        return result

    return answer


def _recurse(*case):
    return _recurse(*case)


BROKEN = {
    "nothing": lambda grader: lambda *case: None,
    "a list": lambda grader: lambda *case: [1.0, 2.0],
    "an empty list": lambda grader: lambda *case: [],
    "a number": lambda grader: lambda *case: 0.5,
    "a text": lambda grader: lambda *case: "softmax",
    "an object": lambda grader: lambda *case: object(),
    "an error": lambda grader: lambda *case: 1 / 0,
    "no end": lambda grader: _recurse,
    "NaN": _changing(lambda x: x * math.nan),
    "one off": _changing(lambda x: x + 1),
    "another shape": _changing(lambda x: x[None]),
    "a list of tensors": _changing(lambda x: [x, x]),
    "its numbers": _changing(lambda x: x.tolist()),
    "integers": _changing(lambda x: x.long()),
    "doubles": _changing(lambda x: x.double()),
    "arguments changed": _spoiling,
}


def serve():
    """Answer programs, one a line, until the input ends."""
    sys.path.insert(0, sys.argv[1])
    page_torch = importlib.import_module("transformer_book.yours.page_torch")
    page_torch.install()
    with contextlib.redirect_stdout(sys.stderr):
        for line in sys.stdin:
            sys.__stdout__.write(json.dumps(answers(*json.loads(line))) + "\n")
            sys.__stdout__.flush()


if __name__ == "__main__":
    serve()
