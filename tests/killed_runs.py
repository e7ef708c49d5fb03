"""Kill a training run in many places and resume it: started by test_resume.

Every run is a process of its own, forked from this one, which has imported everything
and computed nothing. Prints one line of JSON for each run that was killed.
"""

import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import torch
from small_run import N_STEPS, SAVE_EVERY, small_fit

from transformer_lib.training import run as runs
from transformer_lib.training import translation
from transformer_lib.training.checkpoint import list_checkpoints, load_checkpoint
from transformer_lib.training.lightning_trainer import LightningTrainer

N_RANDOM = 25


def kill_in_call(owner: object, name: str, call: int) -> None:
    """Replace a function by one that kills its process when called the nth time."""
    function, calls = getattr(owner, name), []

    @wraps(function)
    def killing(*args: object, **kwargs: object) -> object:
        calls.append(name)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    setattr(owner, name, killing)


def start(work: Callable[[], object]) -> int:
    """Do some work in a forked process; return its id."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid


def end(pid: int) -> int:
    """Wait for a process and return its exit code, -9 if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def outcome(folder: Path) -> dict[str, object]:
    """Return the log without times, the last checkpoint, and unfinished files."""
    log = [{**line, "seconds": 0} for line in runs.read_log(folder)]
    last = list_checkpoints(folder / runs.CHECKPOINTS)[-1]
    left = [path.name for path in folder.rglob("*.tmp")]
    state = bits(load_checkpoint(last))
    return {"log": log, "step": last.name, "state": state, "left": left}


def bits(value: Any) -> Any:
    """Replace all tensors by their bytes, so that equal means equal bit for bit."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.numpy().tobytes()
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [bits(item) for item in value]
    return value


def killed_in(folder: Path, owner: object, name: str, call: int) -> int:
    """Run until a function is called the nth time."""

    def work() -> None:
        kill_in_call(owner, name, call)
        small_fit(folder)

    return end(start(work))


def killed_at(folder: Path, call: int) -> int:
    """Run until the interpreter makes its nth call, of whatever function."""

    def work() -> None:
        sys.setprofile(Counter(call))
        small_fit(folder)

    return end(start(work))


class Counter:
    """Counts calls and returns of functions, as a profiler is told of them.

    Args:
        last: at which to kill the process; 0 for none.
    """

    def __init__(self, last: int = 0) -> None:
        self.last, self.seen = last, 0

    def __call__(self, *event: object) -> None:
        self.seen += 1
        if self.seen == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def count_calls(folder: Path) -> int:
    """Return how many there are in a whole run."""

    def work() -> None:
        counter = Counter()
        sys.setprofile(counter)
        small_fit(folder)
        sys.setprofile(None)
        (folder / "calls").write_text(str(counter.seen))

    assert end(start(work)) == 0
    return int((folder / "calls").read_text())


def main(folder: Path) -> None:
    """Run once undisturbed, then once for each place and moment to be killed at."""
    assert end(start(lambda: small_fit(folder / "whole"))) == 0
    expected = outcome(folder / "whole")
    n_saves = N_STEPS // SAVE_EVERY
    assert len(expected["log"]) == N_STEPS + n_saves
    assert expected["left"] == []
    places = [
        *((LightningTrainer, "clip_gradient", n + 1) for n in range(N_STEPS)),
        *((translation, "nats_per_token", n + 1) for n in range(n_saves)),
        # the recipe, the checkpoints: before a file is whole, before it is renamed
        *((os, name, n) for name in ("fsync", "replace") for n in range(1, 4)),
        *((runs, "keep_last", n + 1) for n in range(n_saves)),
    ]
    tries = {
        f"{name}-{call}": partial(killed_in, owner=owner, name=name, call=call)
        for owner, name, call in places
    }
    n_calls = count_calls(folder / "counted")
    for call in random.Random(0).sample(range(1, n_calls), N_RANDOM):
        tries[f"moment-{call}"] = partial(killed_at, call=call)
    for name, kill in tries.items():
        run = folder / name
        code, done = kill(run), 0
        if (run / runs.LOG).exists():
            done = len(runs.read_log(run))
        codes = code, end(start(lambda run=run: small_fit(run)))
        same = outcome(run) == expected
        print(json.dumps({"place": name, "codes": codes, "lines": done, "same": same}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
