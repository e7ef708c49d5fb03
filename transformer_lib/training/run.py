"""The life of a training run in a folder, of a translator or a classifier.

recipe.json         what decides the run; another recipe can't resume it
tokenizer.json      learned from the training data; nor can other data
metrics.jsonl       one line per step, and one per look at the validation data
checkpoints/        the newest states; see `checkpoint`
.lock               held by the process that works on the run

A run that was killed resumes after its last checkpoint; one that Ctrl-C or SIGTERM
stopped saves its state first, and resumes from there. On a CPU, with as many
threads, it ends with the same weights, bit for bit, as a run that was left alone.
"""

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from tqdm.auto import tqdm

from transformer_lib.acceleration import for_training
from transformer_lib.data.steps import BatchStream
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.files import read_text, remove_leftovers, write_text
from transformer_lib.model.state_dict import average_tensors
from transformer_lib.pretrained.translator import TOKENIZER
from transformer_lib.training.checkpoint import (
    checkpoint_name,
    checkpoint_step,
    keep_only,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from transformer_lib.training.interruption import Interrupted, Interruption
from transformer_lib.training.loop import Loss
from transformer_lib.training.recipe import (
    RECIPE,
    Recipe,
    difference,
    read_stored_recipe,
    recipe_text,
)

LOG = "metrics.jsonl"
CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a run has to do: all in which translators and classifiers differ.

    Attributes:
        recipe: the run's.
        model: trained in place; ends with the mean of the last checkpoints' weights.
        make_optimizer: given the model, returns its optimizer.
        loss: given the model and a batch, adds up the loss of the batch's targets.
        rate: the learning rate of each step, counted from 1.
        measure: given the model, returns what is logged before each checkpoint.
        steps: the batches of each step.
        n_steps: number of steps.
        save_every: steps between two checkpoints; divides n_steps.
        average: last checkpoints whose weights are averaged in the end.
        max_norm: a longer gradient is clipped to this norm.
    """

    recipe: Recipe
    model: nn.Module
    make_optimizer: Callable[[nn.Module], Optimizer]
    loss: Loss
    rate: Callable[[int], float]
    measure: Callable[[nn.Module], dict[str, float]]
    steps: BatchStream
    n_steps: int
    save_every: int
    average: int = 1
    max_norm: float = math.inf


def run_job(job: Job, folder: str | Path, progress: bool = False) -> None:
    """Train a model, resuming the run in the folder if there is one.

    Started by `torchrun`, the processes share the batches of every step.

    Args:
        job: what is to be done.
        folder: of the run; made if it is missing.
        progress: show a progress bar.

    Raises:
        ValueError: the folder holds a run with another recipe or vocabulary, the
            batches cannot be divided among the processes, or the training diverged.
        OSError: the disk is full, for example. What was saved before is still there.
        Interrupted: Ctrl-C or SIGTERM stopped the run; the state is saved.
    """
    # Imported here: Lightning takes seconds, and only a run needs it.
    from transformer_lib.training.lightning_trainer import LightningTrainer, make_fabric

    folder, training = Path(folder), job.recipe.training
    if is_first_process():
        claim(folder, job.recipe, resume=True)
    saved = list_checkpoints(folder / CHECKPOINTS)
    state = load_checkpoint(saved[-1]) if saved else {"step": 0}
    rank = int(os.environ.get("RANK", "0"))
    n_processes = int(os.environ.get("WORLD_SIZE", "1"))
    steps = job.steps.starting_at(state["step"] + 1, rank, n_processes)
    steps = islice(steps, job.n_steps - state["step"])

    fabric = make_fabric(training.precision)
    in_bfloat16 = fabric.strategy.precision.precision == "bf16-mixed"
    dtype = torch.bfloat16 if in_bfloat16 else torch.float32
    model = for_training(job.model.to(fabric.device), dtype)
    trainer = LightningTrainer(
        model,
        job.make_optimizer(model),
        job.loss,
        job.rate,
        job.max_norm,
        fabric=fabric,
        seed=training.seed,
    )
    if saved:
        trainer.load_state_dict(state)
    log = Log(folder, trainer.n_steps)
    on_device = ([batch.to(fabric.device) for batch in batches] for batches in steps)
    losses = tqdm(
        trainer.run(on_device),
        initial=trainer.n_steps,
        total=job.n_steps,
        disable=not progress,
    )
    with Interruption() as interruption:
        for loss in losses:
            step = trainer.n_steps
            log.write(step, train_nats=loss, rate=job.rate(step))
            if step % job.save_every == 0:
                # The line comes first: a run that is resumed here has it.
                log.write(step, **job.measure(trainer.model))
                _save(folder, trainer.state_dict(), job)
            if interruption.asked:
                if step % job.save_every != 0:
                    _save(folder, trainer.state_dict(), job)
                raise Interrupted(interruption.asked, step)
    fabric.barrier()  # the others wait for what the first process writes
    last = planned(list_checkpoints(folder / CHECKPOINTS), job)[-job.average :]
    states = [load_checkpoint(path)["model"] for path in last]
    model.load_state_dict(average_tensors(states))


def claim(
    folder: Path, recipe: Recipe, tokenizer: Tokenizer | None = None, *, resume: bool
) -> None:
    """Make sure that a folder is new, or that it holds the run to be resumed.

    Args:
        folder: for the run.
        recipe: the run's; noted in a new folder.
        tokenizer: the same; None if the caller keeps it.
        resume: whether the folder may hold a run already.

    Raises:
        FileExistsError: the folder holds a run, and it is not to be resumed.
        ValueError: it is to be resumed, but with another recipe or other data.
    """
    recipe_file, tokenizer_file = folder / RECIPE, folder / TOKENIZER
    if not resume and (recipe_file.exists() or tokenizer_file.exists()):
        raise FileExistsError(f"{folder} holds a run already; --resume resumes it")
    theirs = read_stored_recipe(folder) if recipe_file.exists() else recipe
    if what := difference(theirs, recipe):
        raise ValueError(f"the run in {folder} was started with another recipe: {what}")
    if tokenizer is not None and tokenizer_file.exists():
        theirs = Tokenizer.load(tokenizer_file)
        if theirs.to_json() != tokenizer.to_json():
            raise ValueError(
                f"the run in {folder} was started with other data: its tokenizer has "
                f"{len(theirs)} tokens, this one {len(tokenizer)}"
            )
    elif tokenizer is not None:
        tokenizer.save(tokenizer_file)
    remove_leftovers(folder)
    if not recipe_file.exists():
        write_text(recipe_file, recipe_text(recipe))


class Log:
    """The lines of `metrics.jsonl`, written by the first process.

    Args:
        folder: of the run.
        after: the step that the run resumes from; later lines are dropped.
    """

    def __init__(self, folder: Path, after: int) -> None:
        self.path, self.begun = folder / LOG, time.perf_counter()
        if is_first_process() and self.path.exists():
            kept = [
                each for each in read_log(folder) if each.get("step", math.inf) <= after
            ]
            write_text(self.path, "".join(json.dumps(each) + "\n" for each in kept))

    def write(self, step: int, **values: float) -> None:
        """Add a line with the number of the step and the seconds since the start."""
        if is_first_process():
            seconds = round(time.perf_counter() - self.begun, 3)
            line = json.dumps({"step": step, **values, "seconds": seconds})
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def read_log(folder: str | Path) -> list[dict[str, float]]:
    """Return the lines of a run's log, without a last line that was not finished."""
    text = read_text(Path(folder) / LOG)
    return [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]


def is_first_process() -> bool:
    """Say whether this is the process that writes files, of those of `torchrun`."""
    return os.environ.get("RANK", "0") == "0"


def planned(checkpoints: Sequence[Path], job: Job) -> list[Path]:
    """Return those that a run saves anyway, without those of an interruption."""
    return [path for path in checkpoints if checkpoint_step(path) % job.save_every == 0]


def _save(folder: Path, state: dict[str, Any], job: Job) -> None:
    """Save a state; a planned one takes the place of older ones."""
    if not is_first_process():
        return
    checkpoints = folder / CHECKPOINTS
    save_checkpoint(checkpoints / checkpoint_name(state["step"]), state)
    if state["step"] % job.save_every == 0:
        known = list_checkpoints(checkpoints)
        keep_only(checkpoints, planned(known, job)[-job.average :])
