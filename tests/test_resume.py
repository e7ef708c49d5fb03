"""A run killed or interrupted anywhere and resumed equals the undisturbed one.

Every run is a process of its own, forked from one that has imported everything and
computed nothing: this file, run as a program. It prints a line of JSON for each.
"""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_run import read_log, small_classify, small_fit

from transformer_lib.runs import run as runs
from transformer_lib.runs import translation
from transformer_lib.runs.checkpoint import list_checkpoints, load_checkpoint
from transformer_lib.training import loop

KINDS = {"translator": small_fit, "classifier": small_classify}
# Where a run of 8 steps with 2 checkpoints is killed: in which call of what.
PLACES = [
    *((loop, "train_step", call) for call in (1, 4, 5, 8)),
    (translation, "nats_per_token", 2),
    *((os, name, call) for name in ("fsync", "replace") for call in (1, 2, 3)),
    *((runs, "keep_newest", call) for call in (1, 2)),
]
MOMENTS = (9, 9, signal.SIGTERM, signal.SIGINT)  # of each kind; 9 kills


@pytest.mark.slow
def test_stopped_runs_end_as_the_undisturbed_one(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, __file__, tmp_path],
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # the children are forked
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(PLACES) + 2 * len(MOMENTS)
    for run in found:
        stopped, ended = run["codes"]
        assert stopped != 0 and ended == 0 and run["same"], run


def in_a_process(work: Callable[[], object]) -> int:
    """Do some work in a forked process; return its exit code, -9 if it was killed."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    return process.exitcode


def to_the_end(kind: str, folder: Path) -> Callable[[], object]:
    """Train, or resume, and keep the weights in the end: a mean of checkpoints."""
    return lambda: torch.save(KINDS[kind](folder).state_dict(), folder / "weights.pt")


def killed_in(
    folder: Path, owner: object, name: str, call: int
) -> Callable[[], object]:
    """Train until a function is called for the nth time."""
    function, calls = getattr(owner, name), []

    def killing(*args: object, **kwargs: object) -> object:
        calls.append(name)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    def work() -> None:
        setattr(owner, name, killing)
        small_fit(folder)

    return work


def stopped_at(kind: str, folder: Path, number: int, last: int) -> Callable[[], object]:
    """Train, and send a signal at the nth call of whatever function; count them."""
    seen = 0

    def count(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == last:
            os.kill(os.getpid(), number)

    def work() -> None:
        sys.setprofile(count)
        KINDS[kind](folder)
        sys.setprofile(None)
        (folder / "calls").write_text(str(seen))

    return work


def outcome(folder: Path) -> dict[str, object]:
    """Return log without times, last checkpoint, final weights, unfinished files."""
    last = list_checkpoints(folder / runs.CHECKPOINTS)[-1]
    return {
        "log": [{**line, "seconds": 0} for line in read_log(folder)],
        "state": (last.name, bits(load_checkpoint(last))),
        "end": bits(torch.load(folder / "weights.pt")),
        "left": [path.name for path in folder.rglob("*.tmp")],
    }


def bits(value: Any) -> Any:
    """Replace all tensors by their bytes, so that equal means equal bit for bit."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.numpy().tobytes()
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    return [bits(item) for item in value] if isinstance(value, list) else value


def main(folder: Path) -> None:
    """Run once undisturbed, then once for each place and moment to be stopped at."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background
    rng, tries = random.Random(0), []
    for owner, name, call in PLACES:
        run = folder / f"{name}-{call}"
        tries.append(("translator", run, killed_in(run, owner, name, call)))
    expected = {}
    for kind in KINDS:
        assert in_a_process(to_the_end(kind, folder / kind)) == 0
        expected[kind] = outcome(folder / kind)
        assert expected[kind]["left"] == []
        counted = folder / f"{kind}-counted"
        assert in_a_process(stopped_at(kind, counted, signal.SIGKILL, 0)) == 0
        n_calls = int((counted / "calls").read_text())
        for index, number in enumerate(MOMENTS):
            run, call = folder / f"{kind}-{index}", rng.randrange(1, n_calls)
            tries.append((kind, run, stopped_at(kind, run, number, call)))
    for kind, run, stop in tries:
        codes = in_a_process(stop), in_a_process(to_the_end(kind, run))
        same = outcome(run) == expected[kind]
        print(json.dumps({"run": run.name, "codes": codes, "same": same}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
