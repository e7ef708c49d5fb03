"""Ctrl-C while a command is being loaded: it ends without a traceback.

PyTorch takes a second, before any code of a command can catch what Ctrl-C raises. So
the package imports this module first. Programs that import the package keep what they
do about Ctrl-C.
"""

import signal
import sys
from itertools import pairwise
from typing import Any


def is_loading_a_command() -> bool:
    """Say whether this is `python -m transformer_lib`, before its `__main__`."""
    # Until Python has found that file, it calls the program "-m".
    of_ours = ("-m", "transformer_lib") in pairwise(sys.orig_argv)
    return of_ours and sys.argv[:1] == ["-m"]


def end_quietly() -> None:
    """Let Ctrl-C end the process, unless somebody has decided otherwise."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, after `end_quietly`."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Terminated(BaseException):
    """SIGTERM has come; what is being written is put away on the way out."""


def raise_terminated() -> None:
    """Let SIGTERM raise `Terminated` from now on, once."""

    def stop(*_: Any) -> None:
        ignore_sigterm()
        raise Terminated

    signal.signal(signal.SIGTERM, stop)


def ignore_sigterm() -> None:
    """Let this process end by itself."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


if is_loading_a_command():
    end_quietly()
