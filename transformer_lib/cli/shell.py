"""What a shell expects of a command: streams that close or fill up, exit codes."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_CODES = (
    "exit codes: 0 done; 1 refused or failed, one line on standard error says why; "
    "2 wrong options; 130 stopped by Ctrl-C, 143 by SIGTERM; 141 whoever read the "
    "output has stopped reading"
)


@contextmanager
def good_manners() -> Iterator[None]:
    """End a command as a shell expects it, without a traceback.

    A command handles its own errors; what is left are those of standard output.
    """
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
        _forget_output()
        sys.exit(f"error: standard output: {error.strerror or error}")
    except KeyboardInterrupt as interrupted:
        sys.exit(getattr(interrupted, "exit_code", 130))


def read_lines() -> list[str]:
    """Return the lines of standard input.

    Raises:
        ValueError: it is closed, or a line is not UTF-8; which one.
    """
    if sys.stdin is None:
        raise ValueError("there is no sentence, and standard input is closed")
    lines = []
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            lines.append(line.decode("utf-8").rstrip("\r\n"))
        except UnicodeDecodeError as error:
            raise ValueError(
                f"standard input, line {number}: no UTF-8: {error}"
            ) from None
    return lines


def _forget_output() -> None:
    """Let the interpreter's last flush succeed: what is left goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
