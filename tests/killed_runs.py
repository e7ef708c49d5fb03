"""Kill or interrupt a training run in many places and resume it: for test_resume.

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
from small_run import N_STEPS, SAVE_EVERY, small_classify, small_fit

from transformer_lib.training import run as runs
from transformer_lib.training import translation
from transformer_lib.training.checkpoint import list_checkpoints, load_checkpoint
from transformer_lib.training.interruption import Interrupted, stopped_at_once
from transformer_lib.training.lightning_trainer import LightningTrainer

KINDS = {"translator": small_fit, "classifier": small_classify}
N_RANDOM = {signal.SIGKILL: 10, signal.SIGTERM: 5, signal.SIGINT: 5}  # of each kind


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
            with stopped_at_once():
                work()
            code = 0
        except Interrupted as interrupted:
            code = interrupted.exit_code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid


def end(pid: int) -> int:
    """Wait for a process and return its exit code, -9 if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run_to_the_end(kind: str, folder: Path) -> None:
    """Train, or resume, and keep the weights in the end: a mean of checkpoints."""
    torch.save(KINDS[kind](folder).state_dict(), folder / "weights.pt")


def outcome(folder: Path) -> dict[str, object]:
    """Return log without times, last checkpoint, final weights, unfinished files."""
    log = [{**line, "seconds": 0} for line in runs.read_log(folder)]
    last = list_checkpoints(folder / runs.CHECKPOINTS)[-1]
    left = [path.name for path in folder.rglob("*.tmp")]
    state = bits(load_checkpoint(last))
    weights = bits(torch.load(folder / "weights.pt"))
    return {"log": log, "step": last.name, "state": state, "left": left, "end": weights}


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


def stopped_at(folder: Path, kind: str, number: int, call: int) -> int:
    """Send a signal when the interpreter makes its nth call, of whatever function."""

    def work() -> None:
        sys.setprofile(Counter(call, number))
        KINDS[kind](folder)

    return end(start(work))


class Counter:
    """Counts calls and returns of functions, as a profiler is told of them.

    Args:
        last: at which to send the process a signal; 0 for none.
        number: of the signal.
    """

    def __init__(self, last: int = 0, number: int = signal.SIGKILL) -> None:
        self.last, self.number, self.seen = last, number, 0

    def __call__(self, *event: object) -> None:
        self.seen += 1
        if self.seen == self.last:
            os.kill(os.getpid(), self.number)


def count_calls(folder: Path, kind: str) -> int:
    """Return how many there are in a whole run."""

    def work() -> None:
        counter = Counter()
        sys.setprofile(counter)
        KINDS[kind](folder)
        sys.setprofile(None)
        (folder / "calls").write_text(str(counter.seen))

    assert end(start(work)) == 0
    return int((folder / "calls").read_text())


def main(folder: Path) -> None:
    """Run once undisturbed, then once for each place and moment to be stopped at."""
    expected = {}
    for kind in KINDS:
        assert end(start(partial(run_to_the_end, kind, folder / kind))) == 0
        expected[kind] = outcome(folder / kind)
        assert expected[kind]["left"] == []
    n_saves = N_STEPS // SAVE_EVERY
    assert len(expected["translator"]["log"]) == N_STEPS + n_saves
    places = [
        *((LightningTrainer, "clip_gradient", n + 1) for n in range(N_STEPS)),
        *((translation, "nats_per_token", n + 1) for n in range(n_saves)),
        # the recipe, the checkpoints: before a file is whole, before it is renamed
        *((os, name, n) for name in ("fsync", "replace") for n in range(1, 4)),
        *((runs, "keep_only", n + 1) for n in range(n_saves)),
    ]
    tries = {
        ("translator", f"{name}-{call}"): partial(
            killed_in, owner=owner, name=name, call=call
        )
        for owner, name, call in places
    }
    rng = random.Random(0)
    for kind in KINDS:
        n_calls = count_calls(folder / f"{kind}-counted", kind)
        for number, n in N_RANDOM.items():
            for call in rng.sample(range(1, n_calls), n):
                tries[kind, f"{number.name}-{call}"] = partial(
                    stopped_at, kind=kind, number=number, call=call
                )
    for (kind, name), stop in tries.items():
        run = folder / f"{kind}-{name}"
        code, done = stop(run), 0
        if (run / runs.LOG).exists():
            done = len(runs.read_log(run))
        codes = code, end(start(partial(run_to_the_end, kind, run)))
        same = outcome(run) == expected[kind]
        result = {"kind": kind, "place": name, "codes": codes, "lines": done}
        print(json.dumps({**result, "same": same}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
