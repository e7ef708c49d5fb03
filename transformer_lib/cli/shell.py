"""What a shell expects of a command: streams that close or fill up, exit codes."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_CODES = (
    "exit codes: 0 done; 1 refused or failed, one line on standard error says why; "
    "2 wrong options; 130 stopped by Ctrl-C, 143 by SIGTERM; 141 whoever read the "
    "output has stopped reading"
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


def read_lines() -> list[str]:
    """Return the lines of standard input, in UTF-8, without a byte-order mark.

    Raises:
        ValueError: it is closed, or not UTF-8.
    """
    if sys.stdin is None:
        raise ValueError("there is no sentence, and standard input is closed")
    sys.stdin.reconfigure(encoding="utf-8-sig")
    try:
        return [line.rstrip("\n") for line in sys.stdin]
    except UnicodeDecodeError as error:
        raise ValueError(f"standard input: {error}") from None


def _forget_output() -> None:
    """Let the interpreter's last flush succeed: what is left goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
