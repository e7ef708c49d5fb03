"""The life of a training run in a folder, of a translator or a classifier.

recipe.json         what decides the run; another recipe can't resume it
sentences.json      checksums of its sentences; with others, it is not resumed or scored
pairs.ids           two files of one's own as ids, for all processes; see `pairs_file`
metrics.jsonl       one line per step, and one per look at the validation data
checkpoints/        the newest states; see `checkpoint`
.lock               held by the process that works on the run

A run that was stopped, however that came, resumes after its last checkpoint. On a CPU,
with as many threads and processes, it ends with the same weights, bit for bit, as a run
that was left alone; with another number of processes, up to rounding.

Several processes take each step together, and all see the folder. The first of them
holds the lock, writes, and shows the bar; all read the checkpoint they go on from.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn
from tqdm.auto import tqdm

from transformer_lib.data.steps import BatchStream
from transformer_lib.fast import fast_training
from transformer_lib.files import RECIPE, naming, remove_leftovers, write_text
from transformer_lib.runs.checkpoint import (
    keep_newest,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from transformer_lib.runs.recipe import (
    ClassifierTraining,
    Precision,
    Recipe,
    difference,
    read_stored_recipe,
    recipe_text,
)
from transformer_lib.runs.sentences import note_sentences, require_sentences
from transformer_lib.training.loop import Trainer
from transformer_lib.training.processes import ALONE, Processes
from transformer_lib.weights import average_tensors

LOG = "metrics.jsonl"
CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a run has to do: all in which translators and classifiers differ.

    Attributes:
        recipe: the run's.
        trainer: of the model, which is trained in place, from its first step on; the
            model ends with the mean of the last checkpoints' weights.
        steps: the batches of each step; other pairs can't resume the run.
        measure: given the model, returns what is logged before each checkpoint.
        n_steps: number of steps.
        save_every: steps between two checkpoints; divides n_steps.
        average: last checkpoints whose weights are averaged in the end.
        sentences: checksums of the corpus; other sentences can't resume the run.
    """

    recipe: Recipe
    trainer: Trainer
    steps: BatchStream
    measure: Callable[[Any], dict[str, float]]
    n_steps: int
    save_every: int
    average: int = 1
    sentences: dict[str, str] | None = None


def run_job(job: Job, folder: str | Path, progress: bool = False) -> None:
    """Train a model, resuming the run in the folder if there is one.

    Args:
        job: what is to be done. Of several processes, only the first one's model ends
            with the mean of the last checkpoints' weights.
        folder: of the run; made if it is missing.
        progress: show a progress bar.

    Raises:
        ValueError: the folder holds a run with another recipe or other data, or a
            damaged one, or the training diverged; or what `require_agreement` refuses.
        BlockingIOError: another process works on the run.
        ConnectionError: another process of this run has ended.
        OSError: the disk is full, for example. What was saved before is still there.
    """
    folder, processes = Path(folder), job.trainer.processes
    digest = job.steps.digest
    require_agreement(job.recipe, processes)
    processes.require_same({"the digest of the training data": digest})
    with run_folder(folder, processes):
        if processes.is_first:
            _claim(folder, job)
        processes.wait()
        _train(job, folder, digest, progress)
        if not processes.is_first:
            return
        last = list_checkpoints(folder / CHECKPOINTS)[-job.average :]
        states = [load_checkpoint(path)["model"] for path in last]
    job.trainer.model.cpu().load_state_dict(average_tensors(states))


def require_agreement(recipe: Recipe, processes: Processes) -> None:
    """Refuse processes that would do different things, or nothing.

    Raises:
        ValueError: another recipe or version in one of them, or a step has fewer
            batches than there are processes.
    """
    if processes.size == 1:
        return
    what = {
        "the version of transformer_lib": version("transformer-lib"),
        "the version of PyTorch": torch.__version__,
    }
    for table, values in asdict(recipe).items():
        for key, value in values.items():
            what[f"{key} in [{table}]"] = str(value)
    processes.require_same(what)
    n_batches = getattr(recipe.training, "gradient_accumulation", 1)
    if processes.size > n_batches:
        advice = (
            "train it in one process"
            if isinstance(recipe.training, ClassifierTraining)
            else f"set gradient_accumulation in [training] to {processes.size} or "
            "more, and batch_tokens to fewer"
        )
        raise ValueError(
            f"{processes.size} processes can't share the batches of a step: by this "
            f"recipe it has {n_batches}; {advice}"
        )


def require_recipe(folder: Path, recipe: Recipe) -> None:
    """Refuse to go on with the run in a folder, if there is one, by another recipe.

    Raises:
        ValueError: it was started with another one.
    """
    if not (folder / RECIPE).exists():
        return
    if what := difference(read_stored_recipe(folder), recipe):
        raise ValueError(f"the run in {folder} was started with another recipe: {what}")


@contextmanager
def run_folder(folder: Path, processes: Processes = ALONE) -> Iterator[None]:
    """Keep other runs out of a folder, which is made if it is missing.

    Who holds it may take it again. A new folder that nothing was written into is
    removed in the end.

    Raises:
        BlockingIOError: another process works on the run in this folder.
    """
    with _locked(folder) if processes.is_first else nullcontext():
        processes.wait()
        yield


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".lock"
    lock = FileLock(path.resolve(), timeout=0, is_singleton=True)
    try:
        lock.acquire()
    except Timeout:
        raise BlockingIOError(
            f"another process trains in {folder}; wait for it, or choose another folder"
        ) from None
    try:
        yield
    finally:
        if is_new and [*folder.iterdir()] == [path]:  # nothing has come of it
            path.unlink()
            folder.rmdir()
        lock.release()


def _claim(folder: Path, job: Job) -> None:
    """Note recipe and sentences in a new folder; refuse others in an old folder."""
    remove_leftovers(folder)
    if (folder / RECIPE).exists():
        require_recipe(folder, job.recipe)
        if job.sentences:
            require_sentences(folder, job.sentences)
        return
    if list_checkpoints(folder / CHECKPOINTS):
        raise ValueError(
            f"{folder} holds checkpoints, but no {RECIPE}, which says of what: put it "
            "back, or choose another folder"
        )
    if job.sentences:  # first: what has a recipe has these
        note_sentences(folder, job.sentences)
    write_text(folder / RECIPE, recipe_text(job.recipe))


def _train(job: Job, folder: Path, digest: str, progress: bool) -> None:
    """Take the steps that are missing."""
    processes = job.trainer.processes
    device, dtype = choose_device(job.recipe.training.precision, processes)
    model = job.trainer.model.to(device)

    def loss(model: nn.Module, batch: Any) -> Tensor:
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            return job.trainer.loss(model, batch.to(device))

    trainer = replace(job.trainer, model=model, loss=loss)
    checkpoints, log, begun = folder / CHECKPOINTS, folder / LOG, time.perf_counter()
    if saved := list_checkpoints(checkpoints):
        _resume(trainer, saved[-1], digest)
    processes.require_same(
        {
            "the number of the last step": str(trainer.n_steps),
            "how matrices are multiplied": f"{device.type}, {dtype}",
        }
    )
    _require_same_weights(model, processes)
    if processes.is_first and log.exists():
        # What was noted after the checkpoint will be noted again.
        n_lines = trainer.n_steps + trainer.n_steps // job.save_every
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        write_text(log, "".join(lines[:n_lines]))

    def note(**values: float) -> None:
        if not processes.is_first:
            return
        seconds = round(time.perf_counter() - begun, 3)
        line = json.dumps({"step": trainer.n_steps, **values, "seconds": seconds})
        with naming(log), log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    steps = job.steps.starting_at(trainer.n_steps + 1, processes.share)
    losses = tqdm(
        trainer.run(islice(steps, job.n_steps - trainer.n_steps)),
        initial=trainer.n_steps,
        total=job.n_steps,
        disable=not (progress and processes.is_first),
    )
    fast = job.recipe.training.fast
    with fast_training(model, dtype) if fast else nullcontext():
        for nats in losses:
            step = trainer.n_steps
            note(train_nats=nats, rate=trainer.rate(step))
            if step % job.save_every == 0:
                # The line comes first: a run that resumes here has it.
                note(**job.measure(model))
                _require_same_weights(model, processes)
                if processes.is_first:
                    _save(trainer, checkpoints, digest, job.average)


def _save(trainer: Trainer, folder: Path, digest: str, n: int) -> None:
    """Write a checkpoint, and keep the newest n."""
    state = {
        "step": trainer.n_steps,
        "data": digest,
        "model": trainer.model.state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
    }
    save_checkpoint(folder / f"step-{trainer.n_steps:08d}.pt", state)
    keep_newest(folder, n)


def _require_same_weights(model: nn.Module, processes: Processes) -> None:
    """Refuse to go on if the weights of two processes differ in one bit."""
    if processes.size == 1:
        return
    checksum = hashlib.sha256()
    for weights in model.state_dict().values():
        checksum.update(weights.cpu().contiguous().flatten().view(torch.uint8).numpy())
    processes.require_same({"the checksum of the weights": checksum.hexdigest()})


def _resume(trainer: Trainer, path: Path, digest: str) -> None:
    """Let a trainer continue from a checkpoint of the same data."""
    state = load_checkpoint(path)
    try:
        if state["data"] != digest:
            raise ValueError("the run was started with other training data")
        trainer.model.load_state_dict(state["model"])
        trainer.optimizer.load_state_dict(state["optimizer"])
        trainer.n_steps = state["step"]
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        why = " ".join(str(error).split())
        raise ValueError(f"{path} does not fit this run: {why}") from None


def choose_device(
    wanted: Precision, processes: Processes = ALONE
) -> tuple[torch.device, torch.dtype]:
    """Return the fastest device, and the type in which it multiplies matrices.

    Weights, their gradients and Adam's averages are in float32 in any case; mixed
    precision computes matrix products in bfloat16 where the hardware is made for it.

    Args:
        wanted: "float32" for no mixing.
        processes: that train together, each on a device of its own.
    """
    device = processes.device
    if device.type == "cuda":
        able = torch.cuda.get_device_capability(device) >= (8, 0)
    elif device.type == "mps":
        able = False
    else:
        # A PyTorch that cannot tell has no such function.
        features = getattr(torch.cpu, "get_capabilities", dict)()
        able = any(features.get(each) for each in ("avx512_bf16", "amx_bf16"))
    mixed = able and wanted == "auto"
    return device, torch.bfloat16 if mixed else torch.float32
