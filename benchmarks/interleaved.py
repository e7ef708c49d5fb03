"""Contestants in processes of their own, measured in turns.

A machine that does other work slows down whoever is running at that moment. Taking
turns lets all of them suffer alike, so that ratios hold where seconds do not. Processes
of their own let each have its own settings of the C library.
"""

import multiprocessing
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from tqdm import tqdm

from transformer_fast.allocator import keep_freed_memory

CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Contestant:
    """Somebody who does the work.

    Attributes:
        make: called once, in the contestant's own process; returns the work, a function
            of what `Worker.turn` is given. It must be a function that a new process can
            import.
        arguments: for make.
        keeps_memory: whether the process keeps freed memory, see `allocator`.
    """

    make: Callable[..., Callable[[], Any]]
    arguments: Mapping[str, Any]
    keeps_memory: bool = True


class Worker:
    """A contestant in its process; use it in a with statement.

    Args:
        contestant: who.
        n_threads: of PyTorch.
    """

    def __init__(self, contestant: Contestant, n_threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, contestant, n_threads)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def turn(self, *arguments: Any) -> tuple[float, Any]:
        """Do the work once; return the seconds it took, and its result.

        Raises:
            RuntimeError: the contestant broke down.
        """
        try:
            self._pipe.send(arguments)
            return self._pipe.recv()
        except (EOFError, BrokenPipeError):
            raise RuntimeError("a contestant broke down; see above") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pipe.close()  # the process ends when it reads no more
        self._process.join()


def _serve(pipe: Connection, contestant: Contestant, n_threads: int) -> None:
    torch.set_num_threads(n_threads)
    if contestant.keeps_memory:
        keep_freed_memory()
    torch.manual_seed(0)
    work = contestant.make(**contestant.arguments)
    while True:
        try:
            arguments = pipe.recv()
        except EOFError:
            return
        begun = time.perf_counter()
        result = work(*arguments)
        pipe.send((time.perf_counter() - begun, result))


def medians(
    contestants: Mapping[str, Contestant],
    n_rounds: int,
    n_threads: int,
    n_warmup: int = 2,
) -> dict[str, float]:
    """Let all contestants do their work in turns.

    Args:
        contestants: by name.
        n_rounds: times that each is measured.
        n_threads: of PyTorch, for each.
        n_warmup: rounds before, not measured.

    Returns:
        The median of each one's seconds.
    """
    workers = {name: Worker(who, n_threads) for name, who in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in tqdm(range(n_warmup + n_rounds), unit="round"):
        for name, worker in workers.items():
            seconds, _ = worker.turn()
            if turn >= n_warmup:
                times[name].append(seconds)
    for worker in workers.values():
        worker.__exit__(None, None, None)
    return {name: statistics.median(found) for name, found in times.items()}


def describe_machine(n_threads: int) -> dict[str, Any]:
    """Say what was measured on: processor, threads, versions."""
    lines = CPUINFO.read_text().splitlines() if CPUINFO.is_file() else []
    names = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.machine(),
        "threads": n_threads,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
