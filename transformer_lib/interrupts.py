"""Ctrl-C while a command is being loaded: it ends without a traceback.

PyTorch takes a second, before any code of a command can catch what Ctrl-C raises. So
the package imports this module first. Programs that import the package keep what they
do about Ctrl-C.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

_PATIENCE = 5.0  # seconds; torchrun's own is 30


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


def raise_terminated(last_words: Callable[[], None]) -> None:
    """Let SIGTERM raise `Terminated` from now on, once.

    Python raises nothing while PyTorch waits for another process. So a thread ends this
    process if it is still there some seconds after SIGTERM or Ctrl-C.

    Args:
        last_words: is called before that, after SIGTERM.
    """

    def stop(*_: Any) -> None:
        ignore_sigterm()
        raise Terminated

    def watch() -> None:
        [number] = os.read(told, 1)
        time.sleep(_PATIENCE)
        if number == signal.SIGTERM:
            last_words()
        os._exit(128 + number)

    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)  # Python writes the number of each signal there at once
    signal.signal(signal.SIGTERM, stop)
    threading.Thread(target=watch, daemon=True).start()


def ignore_sigterm() -> None:
    """Let this process end by itself."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


if is_loading_a_command():
    end_quietly()
