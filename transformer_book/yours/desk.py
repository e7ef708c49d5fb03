"""What the pages ask of Python: `answer(task, question)`, plain data in and out.

    answer("check", {"part": "attention", "source": "def …"})
    answer("load", {"packed": …}), answer("use", {"parts": {"attention": "def …"}})
    answer("write", {"src": [17, 5, 2], "edits": {}})

What a reader prints goes nowhere but into the answer, and what a reader's code changes
in torch is put back: the next check starts as the first one did.
"""

import io
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from transformer_book.yours import machine, reader, script
from transformer_book.yours.parts import PARTS, answer_of, build
from transformer_book.yours.reader import Problem
from transformer_book.yours.runner import Runner
from transformer_lib.model.config import TransformerConfig

Plain = dict[str, Any]
Progress = Callable[[float], Any]
MOST_PRINTED = 20_000  # letters

_MISSING = object()
_ASKED = {"write", "look", "head", "search", "loss"}  # of the machine
_machine: machine.Machine | None = None


def answer(task: str, question: Plain, progress: Progress = lambda share: None) -> Any:
    """Do what a page asks.

    Args:
        task: "check", "load", "use", "say", "program", or one of the machine.
        question: "part" and "source"; "packed"; "parts", the text of each; or what
            `Tasks` of types.d.ts says.
        progress: is told the share that is done, as it grows.

    Raises:
        Problem: the question can't be answered, in a sentence.
    """
    global _machine  # noqa: PLW0603 - there is one in each worker
    if task == "check":
        return check(question["part"], question["source"])
    if task == "say":
        return {"words": script.say(question["parts"])}
    if task == "program":
        sentence = question.get("sentence", "")
        return {"text": script.as_script(question["parts"], sentence)}
    if task == "load":
        _machine = machine.Machine(question["packed"])
        return {}
    if task not in (*_ASKED, "use"):
        raise Problem(f"Python has no task {task}.")
    if _machine is None:
        raise Problem("The model isn't loaded yet.")
    _machine.progress = progress
    is_use = task == "use"
    sources = question["parts"] if is_use else _machine.runner.sources
    changed: list[str] = []
    try:
        with _quiet(Printed()), _unchanged(sources.values(), changed):
            if not is_use:
                return getattr(_machine, task)(**question)
            _machine.use(question["parts"])
            return {}
    finally:
        if changed:  # whatever came of it
            raise Problem(_own_name(changed))


def reply(task: str, question: Plain, progress: Progress = lambda share: None) -> Plain:
    """Answer as the worker of tasks.js does: {"answer": …} or {"error": sentence}."""
    try:
        return {"answer": answer(task, question, progress)}
    except Problem as problem:
        return {"error": str(problem)}
    except Exception as error:  # ours: it is told all the same
        return {"error": reader.short(error)}


# --- checking -------------------------------------------------------------------------


def check(part: str, source: str) -> Plain:
    """Run a reader's text, and let the book's grader answer.

    Args:
        part: its name in PARTS.
        source: the text.

    Returns:
        status: "open", "wrong" or "right" as the grader says, "error" if Python does.
        message: the grader's sentence, or the error with the reader's lines.
        printed: what was printed, its first 20,000 letters.
        line: where the error was raised, or None.
        runs: whether the machine can run on it, right or wrong.
        ms: how long it took.
    """
    start, printed = time.perf_counter(), Printed()
    found: Plain = {"status": "error", "line": None, "runs": False}
    changed: list[str] = []
    with _quiet(printed), _unchanged([source], changed):
        try:
            space = reader.run(source, part, {})
            found |= _grade(part, space)
        except Problem as problem:
            found["message"] = str(problem)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not reader.reader_frames(error):
                raise  # it wasn't the reader's code that raised it
            found["message"], found["line"] = reader.tell(error)
        if found["status"] in ("wrong", "right"):
            with _quiet(Printed()):
                found["runs"] = _runs(part, source)
    if changed:
        found |= {"status": "error", "runs": False, "message": _own_name(changed)}
    ms = round(1000 * (time.perf_counter() - start))
    return {**found, "printed": str(printed), "ms": ms}


def _grade(part: str, space: Plain) -> Plain:
    """Ask the grader; an error that it tells of gets the reader's line."""
    grader = PARTS[part].grader
    feedback = grader(answer_of(part, space))
    found = {"status": feedback.status, "message": marked(feedback.message)}
    if "your function raised" in feedback.message:
        error = grader.error_of(answer_of(part, space))
        if error is not None:
            found["message"], found["line"] = reader.tell(error)
            found["status"] = "error"
    return found


# What is code in a grader's sentence: a call, a name with dots or underscores, an
# argument, a comparison, a power
_CALL = r"(?:lambda \w+: )?\.?[A-Za-z_][\w.…]*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_CODE = re.compile(
    rf"`[^`]*`|{_CALL}(?:\.\w+(?:\([^()]*\))?)*|\w+ != \w+|\w+_\w+ \*\* [\d.]*\d"
    r"|\b\w+=-?\w+(?:\.\w+)*|\b\w+\[[^\]]*\]|\b[A-Za-z]\w*(?:\.\w+)+|\b\w*[a-z]_\w+"
    r"|(?<!\w)\.T\b|\b(?:argmax|eps|tril|triu)\b"
)


def marked(message: str) -> str:
    """Return a grader's sentence as one, and its code between backticks."""
    is_word = re.match(r"(?!x )[a-z]+(-[a-z]+)?,? ", message)
    if is_word and not _CODE.match(message):
        message = message[0].upper() + message[1:]
    return _CODE.sub(lambda found: f"`{found[0].strip('`')}`", message)


def _runs(part: str, source: str) -> bool:
    """Whether a small model runs on this text."""
    try:
        runner = Runner(SMALL, _small_weights(), {part: source})
        if part == "search":
            runner.decode(torch.tensor([[5, 4, 2]]), 1, 2, 6)
    except Problem:
        return False
    return True


SMALL = TransformerConfig(
    src_vocab_size=11, tgt_vocab_size=11, d_model=12, n_heads=3, d_ff=10,
    n_encoder_layers=1, n_decoder_layers=2, dropout=0.0, norm_first=True, max_len=20,
)  # fmt: skip


def _small_weights() -> dict[str, nn.Parameter]:
    """Return weights for a model of size SMALL, any that are no special ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build(SMALL, {})
    return {
        name: nn.Parameter(x.detach(), requires_grad=False)
        for name, x in model.named_parameters(remove_duplicate=False)
    }


# --- around a reader's code -----------------------------------------------------------


class Printed(io.TextIOBase):
    """What is printed, up to a limit: what comes after it is dropped at once.

    Attributes:
        is_full: whether something was dropped.
    """

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._room, self.is_full = MOST_PRINTED, False

    def write(self, text: str) -> int:
        """Keep a text while there is room."""
        kept = text[: self._room]
        self._kept.append(kept)
        self._room -= len(kept)
        self.is_full = self.is_full or len(kept) < len(text)
        return len(text)

    def __str__(self) -> str:
        end = f"\n… more than {MOST_PRINTED:,} letters: the rest isn't shown."
        return "".join(self._kept) + end * self.is_full


@contextmanager
def _quiet(printed: Printed) -> Iterator[None]:
    with redirect_stdout(printed), redirect_stderr(printed):
        yield


@contextmanager
def _unchanged(sources: Iterable[str], changed: list[str]) -> Iterator[None]:
    """Put back what a reader's texts change in torch, and add its names to a list."""
    places = {"torch": torch, "nn": nn, "F": F, "nn.Module": nn.Module}
    places |= {"nn.Linear": nn.Linear, "Tensor": torch.Tensor}
    before = [
        (f"{place_name}.{name}", place, name, vars(place).get(name, _MISSING))
        for place_name, place in places.items()
        for name in set().union(*map(_assigned, sources))
    ]
    try:
        yield
    finally:
        for full_name, place, name, value in before:
            if vars(place).get(name, _MISSING) is value:
                continue
            changed.append(full_name)
            if value is _MISSING:
                delattr(place, name)
            else:
                setattr(place, name, value)
        if hasattr(torch, "set_default_dtype"):
            torch.set_default_dtype(torch.float32)


def _assigned(source: str) -> set[str]:
    try:
        return reader.assigned(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # it will not run


def _own_name(changed: list[str]) -> str:
    return (
        f"Your code changes {changed[0]}, which everything here needs. It was put "
        "back: give what is yours a name of its own."
    )
