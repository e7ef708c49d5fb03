"""Contestants in processes of their own, measured in turns.

A machine that does other work slows down whoever is running at that moment. Taking
turns lets all of them suffer alike, so that ratios hold where seconds do not. Processes
of their own let each have its own settings of the C library.
"""

import json
import multiprocessing
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from transformer_book.resampling import FEWEST, median_interval
from transformer_lib.files import write_text

RESULTS = Path(__file__).parents[1] / "transformer_book/experiments/results"
CPUINFO = Path("/proc/cpuinfo")
Turn = Callable[..., tuple[float, Any]]


@contextmanager
def working(
    contestants: Mapping[Any, Callable[[], Callable[..., Any]]], n_threads: int
) -> Iterator[dict[Any, Turn]]:
    """Let each contestant work in a process of its own, inside the block.

    Args:
        contestants: by name, a function that is called once in the new process, which
            can import it, and returns the work: a function of anything.
        n_threads: of PyTorch, for each.

    Yields:
        For each a function that does the work once, with the arguments it is given, and
        returns the seconds it took and its result. An EOFError says that the process
        broke down.
    """
    context = multiprocessing.get_context("spawn")
    pipes, processes = {}, []
    for name, make in contestants.items():
        pipes[name], theirs = context.Pipe()
        serving = context.Process(target=_serve, args=(theirs, make, n_threads))
        serving.daemon = True
        serving.start()
        processes.append(serving)
        theirs.close()
    yield {name: partial(_turn, pipe) for name, pipe in pipes.items()}
    for pipe, process in zip(pipes.values(), processes, strict=True):
        pipe.close()  # the process ends when it reads no more
        process.join()


def _turn(pipe: Connection, *arguments: Any) -> tuple[float, Any]:
    pipe.send(arguments)
    return pipe.recv()


def _serve(pipe: Connection, make: Callable, n_threads: int) -> None:
    torch.set_num_threads(n_threads)
    torch.manual_seed(0)
    work = make()
    while True:
        try:
            arguments = pipe.recv()
        except EOFError:
            return
        begun = time.perf_counter()
        result = work(*arguments)
        pipe.send((time.perf_counter() - begun, result))


def take_turns(
    turns: Mapping[Any, Turn],
    n_rounds: int,
    *work: Any,
    seconds: float = float("inf"),
) -> dict[Any, list[float]]:
    """Let all do the same work in turns.

    Args:
        turns: by name.
        n_rounds: times that each is measured, at most.
        work: arguments of the work.
        seconds: after which no other round begins, once there are FEWEST.

    Returns:
        The seconds that each took in every round.
    """
    rounds, begun = [], time.perf_counter()
    while len(rounds) < n_rounds and (
        len(rounds) < FEWEST or time.perf_counter() - begun < seconds
    ):
        rounds.append([turn(*work)[0] for turn in turns.values()])
    return dict(zip(turns, map(list, zip(*rounds, strict=True)), strict=True))


def compare(theirs: list[float], ours: list[float]) -> str:
    """Say how many times as long as we they take: the median of all rounds.

    Only times of the same round suffered from the same disturbances.

    Returns:
        The median of the rounds' ratios, with its 95 % interval if there are FEWEST.
    """
    ratios = [one / other for one, other in zip(theirs, ours, strict=True)]
    if len(ratios) < FEWEST:
        return f"{statistics.median(ratios):.2f} x (of {len(ratios)})"
    return "{:.2f} x ({:.2f} to {:.2f})".format(*median_interval(ratios))


def processor() -> str:
    """Name what is measured on."""
    lines = CPUINFO.read_text().splitlines() if CPUINFO.is_file() else []
    names = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def store(name: str, n_threads: int, result: dict[str, Any]) -> None:
    """Write what was measured, and on what, to the folder of results."""
    machine = {
        "processor": processor(),
        "threads": n_threads,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    text = json.dumps({"machine": machine, **result}, indent=1)
    write_text(RESULTS / name, text + "\n")
