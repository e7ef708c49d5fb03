"""What happens to a run from outside: a signal stops it, a second one starts."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Self

from filelock import FileLock, Timeout

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LOCK = ".lock"  # in the folder of a run; the operating system frees a dead one's


class Interrupted(KeyboardInterrupt):
    """A signal asked a run to stop.

    Attributes:
        number: of the signal.
        step: last step whose state is saved; None if no step is.
    """

    def __init__(self, number: int, step: int | None = None) -> None:
        self.number, self.step = number, step
        super().__init__(f"interrupted by {signal.Signals(number).name}")

    @property
    def exit_code(self) -> int:
        """What a shell expects of a process that this signal has ended."""
        return 128 + self.number


class Interruption:
    """Inside its block, the first signal is noted; the second one raises `Interrupted`.

    A step is whole when its state can be saved, so a run looks at `asked` in between.
    Other threads than the main one are never interrupted: there it does nothing.

    Attributes:
        asked: number of the signal that was noted; 0 for none.
    """

    def __init__(self) -> None:
        self.asked = 0
        self._before: dict = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {each: signal.signal(each, self._note) for each in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise Interrupted(number)
        self.asked = number


@contextmanager
def stopped_at_once() -> Iterator[None]:
    """Let both signals raise `Interrupted` inside the block, wherever it is."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    main = threading.current_thread() is threading.main_thread()
    before = {each: signal.signal(each, stop) for each in SIGNALS if main}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes out of a run's folder until the block ends.

    Raises:
        BlockingIOError: another process works in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / LOCK, timeout=0):
            yield
    except Timeout:
        raise BlockingIOError(
            f"another process works on the run in {folder}; wait for it, or stop it"
        ) from None
