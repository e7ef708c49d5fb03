"""Kill a training run everywhere and go on with it: started by test_resume.

Every run is a process of its own, forked from this one, which has imported everything
and computed nothing. Prints one line of JSON for each place where a run was killed.
"""

import functools
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from small_run import N_STEPS, SAVE_EVERY, small_fit

from transformer_lib.training import checkpoint as checkpoints
from transformer_lib.training import runs
from transformer_lib.training.trainer import TranslationModule


def kill_in_call(owner: object, name: str, call: int) -> None:
    """Replace a function by one that kills its process when called the nth time."""
    function, calls = getattr(owner, name), []

    @functools.wraps(function)  # Lightning looks at its arguments
    def killing(*args: object, **kwargs: object) -> object:
        calls.append(name)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    setattr(owner, name, killing)


def in_child(work: Callable[[], object]) -> int:
    """Do some work in a forked process and return how that ended."""
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
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def outcome(folder: Path) -> dict[str, object]:
    """Return the log without times, and what the last checkpoint's tensors hash to."""
    log = [{**line, "seconds": 0} for line in runs.read_log(folder)]
    last = checkpoints.list_checkpoints(folder / runs.CHECKPOINTS)[-1]
    index = json.loads((last / checkpoints.INDEX).read_text())
    return {"log": log, "step": last.name, "sha256": index["sha256"]}


def main(folder: Path) -> None:
    """Run once undisturbed, then once for each place to be killed at."""
    assert in_child(lambda: small_fit(folder / "whole")) == 0
    places = [(TranslationModule, "on_before_optimizer_step", n + 1)
              for n in range(N_STEPS)]  # fmt: skip
    n_saves = N_STEPS // SAVE_EVERY
    places += [(TranslationModule, "validation_step", n + 1) for n in range(n_saves)]
    places += [(checkpoints, "_rename", n + 1) for n in range(2 * n_saves)]
    places += [(runs, "keep_last", n + 1) for n in range(n_saves)]
    expected = outcome(folder / "whole")
    assert len(expected["log"]) == N_STEPS + n_saves
    for owner, name, call in places:
        run = folder / f"{name}-{call}"

        def killed(owner=owner, name=name, call=call, run=run) -> None:
            kill_in_call(owner, name, call)
            small_fit(run)

        codes = in_child(killed), in_child(lambda run=run: small_fit(run))
        same = outcome(run) == expected
        print(json.dumps({"place": f"{name} {call}", "codes": codes, "same": same}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
