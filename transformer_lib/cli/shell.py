"""What a shell expects of a command: streams that close or fill up, exit codes."""

import argparse
import codecs
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from transformer_lib.interrupts import (
    Terminated,
    ignore_sigterm,
    raise_again,
    raise_terminated,
)

EXIT_CODES = (
    "exit codes: 0 done; 1 refused or failed, one line on standard error says why; "
    "2 wrong options; 130 stopped by Ctrl-C, 143 by SIGTERM; 141 whoever read the "
    "output has stopped reading"
)

STOPPED = (
    "error: stopped by torchrun, as all processes are when one has ended; what was "
    "saved is whole, and --resume goes on from there"
)


def new_parser(command: str, description: str) -> argparse.ArgumentParser:
    """Return a parser of a command's options, with the exit codes in its help."""
    prog = f"python -m transformer_lib {command}".strip()
    return argparse.ArgumentParser(prog, description=description, epilog=EXIT_CODES)


@contextmanager
def good_manners() -> Iterator[None]:
    """End a command as a shell expects it, in one line, without a traceback."""
    if sys.stdout is None:
        sys.exit("error: standard output is closed")
    try:
        raise_again()
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        sys.exit(141)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            sys.exit(f"error: {error}")
        _forget_output()  # an error of a file names it
        sys.exit(f"error: standard output: {error.strerror}")
    except (ValueError, ImportError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


@contextmanager
def one_voice(may_speak: Callable[[], bool]) -> Iterator[None]:
    """Let one of several processes say what ends them all; each has its exit code.

    When one has ended, `torchrun` sends SIGTERM to the others. It also passes on to all
    what it is sent itself.

    Args:
        may_speak: is asked by a process that has something to say.
    """

    def speak(sentence: str) -> None:
        if may_speak():
            say([sentence])

    raise_terminated(partial(speak, STOPPED))
    try:
        with good_manners():
            yield
    except SystemExit as error:
        ignore_sigterm()  # it would take the word from whoever has it
        if not isinstance(error.code, str):
            raise
        speak(error.code)
        sys.exit(1)
    except Terminated:
        speak(STOPPED)
        sys.exit(143)


def read_lines() -> list[str]:
    """Return the lines of standard input, in UTF-8, without a byte-order mark.

    Raises:
        ValueError: it is closed, or a line is not UTF-8.
    """
    if sys.stdin is None:
        raise ValueError("there is no sentence, and standard input is closed")
    content = sys.stdin.buffer.read().removeprefix(codecs.BOM_UTF8)
    lines = []
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), start=1):
        try:
            lines.append(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"standard input, line {number}: {error}") from None
    return lines if content else []


def require_characters(sentences: Sequence[str]) -> None:
    """Refuse arguments that Python could not decode: it hides bytes in half characters.

    Raises:
        ValueError: a sentence holds such a byte; its number and the encoding are named.
    """
    for number, sentence in enumerate(sentences, start=1):
        try:
            sentence.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"sentence {number} is not written in {sys.getfilesystemencoding()}, "
                "the encoding of this shell's settings (LC_ALL, LC_CTYPE, LANG)"
            ) from None


def say(notes: Sequence[str]) -> None:
    """Write notes to standard error, a line each."""
    if sys.stderr:
        sys.stderr.writelines(f"{note}\n" for note in notes)


def _forget_output() -> None:
    """Let the interpreter's last flush succeed: what is left goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
