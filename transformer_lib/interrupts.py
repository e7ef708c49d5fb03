"""Ctrl-C while a command is being loaded: it ends without a traceback.

PyTorch takes a second, before any code of a command can catch what Ctrl-C raises. So
the package imports this module first. Python loads a package whose command it will run
under the name "-m"; a package that others import keeps what they do about Ctrl-C.
"""

import signal
import sys


def end_quietly() -> None:
    """Let Ctrl-C end the process, unless somebody has decided otherwise."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, after `end_quietly`."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if sys.argv[:1] == ["-m"]:
    end_quietly()
