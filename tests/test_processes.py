"""Several processes take the steps of one, go on after each other, and end together.

All processes are forked from one that has imported everything and computed nothing:
this file, run as a program with the names of parts. It keeps the store through which
they find each other, as torchrun does, and prints what came of it in a line of JSON.
"""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from small_run import (
    read_log,
    small_model,
    small_pairs,
    small_recipe,
    small_steps,
)
from test_commands import CLASSIFIER, TINY, TRANSLATOR
from test_resume import bits

from transformer_lib.cli import main as command
from transformer_lib.data import corpora, make_batch
from transformer_lib.runs import fit, translation
from transformer_lib.runs import run as runs
from transformer_lib.runs.checkpoint import list_checkpoints, load_checkpoint
from transformer_lib.runs.run import run_folder
from transformer_lib.training import batch_loss, loop, train_step
from transformer_lib.training.processes import ALONE, Processes, processes

N_BATCHES = 5  # in a step: 2 processes take 3 and 2 of them
PLAIN = {"dropout": 0.0, "fast": False}
DROPPING = {"dropout": 0.1, "fast": False}


def in_processes(
    size: int, work: Callable[[], object], heard: Path | None = None
) -> list[int]:
    """Do some work in forked processes that can find each other; return exit codes.

    As torchrun does, it sends SIGTERM to all others when one has failed, and kills who
    is still there 30 seconds later.

    Args:
        size: number of processes.
        work: is done in each of them; each can find out which it is.
        heard: file for what all of them write.
    """
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)

    def child(rank: int) -> None:
        names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size,
                 "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": store.port,
                 "TORCHELASTIC_USE_AGENT_STORE": True}  # fmt: skip
        os.environ.update({name: str(value) for name, value in names.items()})
        if heard:
            descriptor = os.open(heard, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for stream in (1, 2):
                os.dup2(descriptor, stream)
        work()

    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=child, args=(rank,)) for rank in range(size)]
    for process in children:
        process.start()
    begun, failed = time.monotonic(), None
    while running := [process for process in children if process.is_alive()]:
        running[0].join(0.1)
        now = time.monotonic()
        if failed is None and any(process.exitcode for process in children):
            failed = now
            for process in running:
                process.terminate()
        if now - (failed or begun + 90) > 30:
            for process in running:
                process.kill()
    return [process.exitcode for process in children]


def train(folder: Path, dtype: torch.dtype = torch.float64, **training: Any) -> None:
    """Train or resume a translator for 8 steps, in however many processes these are."""
    recipe = small_recipe(
        **{"gradient_accumulation": N_BATCHES, "max_norm": 0.5, **DROPPING, **training}
    )
    model, pairs = small_model(recipe).to(dtype), small_pairs()
    parts = pairs[:3], pairs[3:14], pairs[14:20]
    valid = [make_batch(part, bos_id=1, pad_id=0) for part in parts]
    with processes() as group:
        fit(model, recipe, small_steps(recipe), valid, folder, processes=group)


def outcome(folder: Path) -> dict[str, Any]:
    """Return what a run wrote: the log without times, and its last state."""
    last = list_checkpoints(folder / runs.CHECKPOINTS)[-1]
    log = [{**line, "seconds": 0} for line in read_log(folder)]
    left = [path.name for path in folder.rglob("*.tmp")]
    return {"log": log, "state": load_checkpoint(last), "left": left}


def farthest(folder: Path, other: Path) -> dict[str, float]:
    """Return how far two runs have gone apart: losses, weights, biases of keys.

    Keys' biases have a gradient of zero, up to rounding, which Adam makes steps of.
    """
    one, two = outcome(folder), outcome(other)
    found = {"losses": 0.0, "weights": 0.0, "biases of keys": 0.0}
    for mine, theirs in zip(one["log"], two["log"], strict=True):
        assert mine.keys() == theirs.keys()
        apart = max(abs(mine[name] - theirs[name]) for name in mine)
        found["losses"] = max(found["losses"], apart)
    for name, mine in one["state"]["model"].items():
        kind = "biases of keys" if name.endswith("k_proj.bias") else "weights"
        apart = (mine - two["state"]["model"][name]).abs().max().item()
        found[kind] = max(found[kind], apart)
    return found


# --- one step, held against PyTorch's own way -----------------------------------------


def step_of(group: Processes, folder: Path) -> None:
    """Take one step with rate 1, and put down by how much the weights have moved."""
    recipe = small_recipe(gradient_accumulation=3, **PLAIN)
    model = small_model(recipe).double()
    before = [weights.detach().clone() for weights in model.parameters()]
    batches = next(small_steps(recipe).starting_at(1, group.share))
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    loss = partial(batch_loss, smoothing=0.0)
    nats = train_step(model, optimizer, loss, batches, processes=group)
    pairs = zip(before, model.parameters(), strict=True)
    moved = [old - new.detach() for old, new in pairs]
    torch.save((nats, moved), folder / f"step-{group.size}-{group.rank}")


def step_of_pytorch(group: Processes, folder: Path) -> None:
    """Let PyTorch's DistributedDataParallel find a gradient, and undo its mean."""
    recipe = small_recipe(gradient_accumulation=3, **PLAIN)
    model = torch.nn.parallel.DistributedDataParallel(small_model(recipe).double())
    batches = next(small_steps(recipe).starting_at(1))
    nats = torch.zeros((), dtype=torch.float64)
    n_targets = sum(batch.n_targets for batch in batches)
    for batch in batches[group.rank :: group.size]:
        logits = model(batch.src, batch.tgt_in).flatten(0, 1)
        targets = batch.tgt_out.flatten()
        nats = nats + F.cross_entropy(logits, targets, ignore_index=0, reduction="sum")
    (nats * group.size / n_targets).backward()
    mean = [weights.grad for weights in model.parameters()]
    counts = [batch.n_targets for batch in batches]
    torch.save((counts, mean), folder / f"pytorch-{group.rank}")


def steps(folder: Path) -> list[int]:
    """Take a step in one process and in two, ours and PyTorch's; return exit codes."""

    def work() -> None:
        with processes() as group:
            step_of(group, folder)
            step_of_pytorch(group, folder)

    step_of(ALONE, folder)
    return in_processes(2, work)


# --- runs -----------------------------------------------------------------------------


def two_worlds(folder: Path) -> list[int]:
    """Train with dropout in one process and in two; return exit codes."""
    train(folder / "1")
    return in_processes(2, partial(train, folder / "2"))


def many_worlds(folder: Path) -> list[list[int]]:
    """Train without dropout, with it, and in float32 with faster layers."""
    codes = []
    for name, training in {"plain": PLAIN, "dropping": DROPPING, "float32": {}}.items():
        dtype = torch.float32 if name == "float32" else torch.float64
        for size in (1, 2, 4):
            work = partial(train, folder / f"{name}-{size}", dtype, **training)
            codes += in_processes(size, work)
    return codes


def stopped(folder: Path) -> dict[str, list[int]]:
    """Stop runs after some steps, and resume them in another number of processes."""
    codes = {}
    for first, then in ((2, 2), (2, 1), (1, 2)):
        run = folder / f"{first}-{then}"
        half = partial(killed_in, "train_step", 6, partial(train, run))
        codes[run.name] = in_processes(first, half) + in_processes(
            then, partial(train, run)
        )
    for size in (1, 2):
        codes[f"{size}"] = in_processes(size, partial(train, folder / f"{size}"))
    return codes


def killed_in(name: str, call: int, work: Callable[[], None]) -> None:
    """Do some work until a function of the loop is called for the nth time."""
    function, calls = getattr(loop, name), []

    def killing(*args: Any) -> Any:
        calls.append(name)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args)

    setattr(loop, name, killing)
    work()


# --- what is refused ------------------------------------------------------------------

RECIPE = TRANSLATOR.replace("warmup", "gradient_accumulation = 2\nwarmup")


def ask(*options: object, recipe: str = RECIPE, second: Callable = str) -> Callable:
    """Return the command as work for processes.

    Args:
        options: of the command.
        recipe: the same in all processes, in a file of each.
        second: changes something in the second process before it begins.
    """

    def work() -> None:
        small_corpora()
        rank = os.environ["RANK"]
        own = (second(recipe) or recipe) if rank == "1" else recipe
        Path(f"{rank}.toml").write_text(own)
        command(["train", "--config", f"{rank}.toml", *map(str, options)])

    return work


def small_corpora() -> None:
    """Put corpora of a few sentences in the place of the whole ones."""
    whole = corpora.load("grammar")
    parts = {name: getattr(whole, name)[:60] for name in ("train", "valid", "test")}
    corpora.load = {"grammar": replace(whole, **parts)}.get
    corpora.load_labelled = {"tiny": TINY}.get


def another_corpus(_: str) -> None:
    whole = corpora.load("grammar")
    corpora.load = {"grammar": replace(whole, train=whole.train[::-1])}.get


def another_version(_: str) -> None:
    runs.version = lambda _: "0.0.1"


def other_weights(_: str) -> None:
    make_optimizer = translation.make_optimizer

    def change(model: torch.nn.Module) -> torch.optim.Optimizer:
        with torch.no_grad():
            model.lm_head.weight[0, 0] += 1e-6
        return make_optimizer(model)

    translation.make_optimizer = change


REFUSED = {  # name -> (what is tried in two processes, what is said once)
    "no --out": (ask(), "error: several processes need --out FOLDER"),
    "wrong option": (ask("--outt", "run"), "error: unrecognized arguments: --outt"),
    "too many": (
        ask("--out", "run", recipe=TRANSLATOR),
        "error: 2 processes can't share the batches of a step: by this recipe it has "
        "1; set gradient_accumulation in [training] to 2 or more",
    ),
    "a classifier": (
        ask("--out", "run", recipe=CLASSIFIER),
        "by this recipe it has 1; train it in one process",
    ),
    "another recipe": (
        ask("--out", "run", second=lambda text: text.replace("warmup = 4", "warmup=9")),
        "must agree, but warmup in [training] is '4' in process 0 and '9' in process 1",
    ),
    "another version": (
        ask("--out", "run", second=another_version),
        "but the version of transformer_lib is",
    ),
    "other data": (
        ask("--out", "run", second=another_corpus),
        "but the digest of the training data is",
    ),
    "other weights": (
        ask("--out", "weights", second=other_weights),
        "but the checksum of the weights is",
    ),
    "nothing to resume": (
        ask("--out", "run", "--resume"),
        "error: run holds no run to resume",
    ),
    "held": (ask("--out", "held"), "error: another process trains in held"),
}


def refusals(folder: Path) -> dict[str, Any]:
    """Return exit codes and what was heard, for each bad beginning."""
    os.chdir(folder)
    found = {}
    with run_folder(Path("held")):
        for name, (work, _) in REFUSED.items():
            heard = folder / f"{name}.txt"
            found[name] = in_processes(2, work, heard), heard.read_text()
    return {"heard": found, "begun": Path("run").exists()}


# --- killed at any moment -------------------------------------------------------------


AT_ONCE = -1  # before the other one finds it


def killed(folder: Path) -> list[dict[str, Any]]:
    """Kill one of two processes at a random call of a training; resume both."""
    os.chdir(folder)
    recipe = RECIPE.replace("steps = 4", "steps = 8\naverage = 2")
    in_processes(2, partial(killed_at, 0, 1, ask("--out", "whole", recipe=recipe)))
    n_calls, rng, found = int(Path("calls").read_text()), random.Random(0), []
    for number in range(6):
        run, heard = Path(f"{number}"), Path(f"{number}.txt")
        rank, call = rng.randrange(2), rng.randrange(1, n_calls)
        if number == 0:
            call = AT_ONCE
        begun = time.monotonic()
        work = partial(killed_at, call, rank, ask("--out", run, recipe=recipe))
        codes = in_processes(2, work, heard)
        seconds = time.monotonic() - begun
        resume = ["--resume"] if (run / "recipe.json").exists() else []
        again = in_processes(2, ask("--out", run, *resume, recipe=recipe))
        same = bits(outcome(run)) == bits(outcome(Path("whole")))
        found.append({"rank": rank, "call": call, "codes": codes, "seconds": seconds,
                      "heard": heard.read_text(), "again": again, "same": same,
                      "resumed": bool(resume)})  # fmt: skip
    return found


def killed_at(last: int, rank: int, work: Callable[[], object]) -> None:
    """Do some work; while it trains, one process counts calls, and dies at the last."""
    seen, train_model = 0, translation.train

    def count(*_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(*given: Any) -> Any:
        sys.setprofile(count)
        try:
            return train_model(*given)
        finally:
            sys.setprofile(None)

    if os.environ["RANK"] == str(rank):
        if last == AT_ONCE:
            time.sleep(3)  # until the other one waits
            os.kill(os.getpid(), signal.SIGKILL)
        translation.train = counted
    work()
    if seen and not last:
        Path("calls").write_text(str(seen))


# --- the program and what it found ----------------------------------------------------


def found_by(folder: Path, *parts: Callable[[Path], Any]) -> list[Any]:
    """Run parts of this file in a program of its own."""
    done = subprocess.run(
        [sys.executable, __file__, folder, *(part.__name__ for part in parts)],
        env={**os.environ, "OMP_NUM_THREADS": "1",  # processes are forked
             "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of what takes seconds, and what came of it."""
    folder = tmp_path_factory.mktemp("quick")
    parts = (steps, two_worlds, refusals)
    return folder, dict(zip(parts, found_by(folder, *parts), strict=True))


def test_two_processes_take_the_step_of_one_as_pytorch_would(quick):
    folder, found = quick
    assert found[steps] == [0, 0]
    nats, moved = torch.load(folder / "step-1-0")
    counts, expected = torch.load(folder / "pytorch-0")
    assert len({*counts}) > 1  # a mean over processes would be another gradient
    for file in "step-2-0", "step-2-1":
        theirs, shares = torch.load(folder / file)
        assert theirs == pytest.approx(nats, rel=1e-12)
        for alone, shared, gradient in zip(moved, shares, expected, strict=True):
            torch.testing.assert_close(shared, alone, rtol=0, atol=1e-12)
            torch.testing.assert_close(shared, gradient, rtol=0, atol=1e-12)


def test_a_run_in_two_processes_is_the_run_in_one(quick):
    folder, found = quick
    assert found[two_worlds] == [0, 0]
    apart = farthest(folder / "1", folder / "2")
    assert apart["losses"] < 1e-12 and apart["weights"] < 1e-12
    assert apart["biases of keys"] < 1e-6
    assert outcome(folder / "2")["left"] == []


def test_what_several_processes_can_not_do_is_said_once(quick):
    found = quick[1][refusals]
    assert not found["begun"]  # nothing was written
    for name, (codes, heard) in found["heard"].items():
        code = 2 if name == "wrong option" else 1
        assert code in codes and {*codes} <= {code, 143}, (name, codes, heard)
        assert heard.count(REFUSED[name][1]) == heard.count("error") == 1, heard


@pytest.mark.slow
def test_one_two_and_four_processes_end_alike(tmp_path):
    assert found_by(tmp_path, many_worlds) == [[0] * 3 * (1 + 2 + 4)]
    bounds = {"plain": 1e-12, "dropping": 1e-12, "float32": 1e-4}
    for name, bound in bounds.items():
        for size in (2, 4):
            apart = farthest(tmp_path / f"{name}-1", tmp_path / f"{name}-{size}")
            assert max(apart["losses"], apart["weights"]) < bound, (name, size, apart)
    other = farthest(tmp_path / "plain-1", tmp_path / "dropping-1")
    assert other["losses"] > 1e-3  # dropout does something


@pytest.mark.slow
def test_a_run_goes_on_in_another_number_of_processes(tmp_path):
    [codes] = found_by(tmp_path, stopped)
    assert {code for all_ended in codes.values() for code in all_ended} <= {0, 1, -9}
    assert bits(outcome(tmp_path / "2-2")) == bits(outcome(tmp_path / "2"))
    for run in "2-1", "1-2":
        apart = farthest(tmp_path / "1", tmp_path / run)
        assert max(apart["losses"], apart["weights"]) < 1e-12, run


@pytest.mark.slow
def test_whichever_process_is_killed_nothing_is_lost(tmp_path):
    [found] = found_by(tmp_path, killed)
    for run in found:
        assert run["codes"][run["rank"]] == -signal.SIGKILL and run["seconds"] < 60, run
        other = run["codes"][1 - run["rank"]]
        assert other in (0, 1, 143), run  # 0: it had done its part
        assert run["heard"].count("error: ") == (other != 0), run
        assert run["again"] == [0, 0] and run["same"], run
    assert any(run["resumed"] for run in found)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import_module("torch._dynamo")  # which optimizers import: once, not in each process
    place, *names = sys.argv[1:]
    print(json.dumps([globals()[name](Path(place)) for name in names]))
