"""What happens to a run from outside: a signal stops it, a second one starts."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from filelock import FileLock, Timeout

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A signal asked a run to stop, and its state is saved.

    Attributes:
        exit_code: what a shell expects of a process that this signal has ended.
        step: the last step.
    """

    def __init__(self, number: int, step: int, folder: Path) -> None:
        self.exit_code, self.step = 128 + number, step
        super().__init__(
            f"interrupted by {signal.Signals(number).name} after step {step}: the "
            f"state is saved in {folder}; the same command with --resume continues "
            "from there"
        )


@contextmanager
def noted_signals() -> Iterator[list[int]]:
    """Inside the block, note the first signal instead of obeying it at once.

    A step is whole when its state can be saved, so a run looks at the list in between.
    From the first signal on, they act as they did before: the second one stops the
    process wherever it is. Other threads than the main one are never interrupted.

    Yields:
        A list, empty until a signal's number is put into it.
    """
    noted: list[int] = []
    before: dict[int, object] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)
        restore()

    if threading.current_thread() is threading.main_thread():
        before.update({number: signal.signal(number, note) for number in SIGNALS})
    try:
        yield noted
    finally:
        restore()


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes out of a run's folder until the block ends.

    The operating system frees the lock of a process that dies.

    Raises:
        BlockingIOError: another process works in the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield
    except Timeout:
        raise BlockingIOError(
            f"another process works on the run in {folder}; wait for it, or stop it"
        ) from None
