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
MOST_BYTES = 100_000  # of a line: no sentence, and a tokenizer would take minutes


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
    except KeyboardInterrupt as interrupted:
        if str(interrupted):
            sys.stderr.write(f"{interrupted}\n")
        sys.exit(getattr(interrupted, "exit_code", 130))


def read_lines() -> list[str]:
    """Return the lines of standard input, without a byte-order mark.

    Raises:
        ValueError: it is closed, or a line is too long or not UTF-8; which one.
    """
    if sys.stdin is None:
        raise ValueError("there is no sentence, and standard input is closed")
    lines = []
    while line := sys.stdin.buffer.readline(MOST_BYTES + 1):
        where = f"standard input, line {len(lines) + 1}"
        if len(line) > MOST_BYTES:
            raise ValueError(f"{where}: more than {MOST_BYTES:,} bytes")
        try:
            text = line.decode("utf-8" if lines else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{where}: no UTF-8: {error}") from None
        lines.append(text.rstrip("\r\n"))
    return lines


def _forget_output() -> None:
    """Let the interpreter's last flush succeed: what is left goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
