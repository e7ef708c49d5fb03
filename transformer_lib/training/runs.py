"""A training run in a folder: its log, its checkpoints, and how it is gone on with.

metrics.jsonl            one line a step, and one for each look at validation
checkpoints/step-…       the newest ones, see `checkpoints`
"""

import json
import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, TQDMProgressBar
from torch import Tensor
from torch.utils.data import DataLoader

from transformer_lib.data.batches import Batch
from transformer_lib.data.steps import Steps
from transformer_lib.files import write_text
from transformer_lib.model.state_dict import average_tensors
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.checkpoint import (
    keep_last,
    list_checkpoints,
    load_checkpoint,
)
from transformer_lib.training.recipe import Precision, Recipe
from transformer_lib.training.trainer import (
    SafeCheckpoints,
    StepLoader,
    TranslationModule,
)

LOG = "metrics.jsonl"
CHECKPOINTS = "checkpoints"


def fit(
    model: Transformer,
    recipe: Recipe,
    steps: Steps,
    valid: list[Batch],
    folder: str | Path,
    progress: bool = False,
) -> None:
    """Train a model as its recipe says, going on where the folder's run was cut off.

    Started by `torchrun`, the processes share the work of every step.

    Args:
        model: trained in place; ends with the mean of the last checkpoints' weights.
        recipe: how.
        steps: what each step learns from.
        valid: what is looked at before each checkpoint.
        folder: of the run; made if it is missing.
        progress: show a progress bar.

    Raises:
        ValueError: the folder holds a run with another recipe or vocabulary, or the
            training diverged.
        OSError: the disk is full, say. What was saved before is still there.
    """
    folder = Path(folder)
    n_processes = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    settings = recipe.training
    saved = list_checkpoints(folder / CHECKPOINTS)
    if rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
        _cut_log(folder / LOG, after=_step_of(saved[-1]) if saved else 0)
    callbacks: list[Callback] = [RunRecorder(folder, keep=settings.average)]
    if progress:
        callbacks.append(TQDMProgressBar(refresh_rate=10))
    with _quiet():
        trainer = L.Trainer(
            accelerator="auto",
            devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
            num_nodes=n_processes // int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
            strategy="ddp" if n_processes > 1 else "auto",
            precision=choose_precision(settings.precision),
            max_steps=settings.steps,
            max_epochs=-1,
            val_check_interval=settings.save_every,
            check_val_every_n_epoch=None,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,  # the steps are divided already
            plugins=[SafeCheckpoints()],
            callbacks=callbacks,
            logger=False,
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=progress,
        )
        trainer.fit(
            TranslationModule(model, recipe),
            StepLoader(steps, settings.steps, rank, n_processes),
            DataLoader(valid, batch_size=None),  # batches as they are
            ckpt_path=saved[-1] if saved else None,
        )
    last = list_checkpoints(folder / CHECKPOINTS)[-settings.average :]
    model.load_state_dict(average_tensors([_model_state(path) for path in last]))


class RunRecorder(Callback):
    """Writes the log, and a checkpoint after each look at the validation sentences.

    Args:
        folder: of the run.
        keep: number of checkpoints to keep.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder, self.keep = folder, keep
        self.begun = time.perf_counter()

    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: dict[str, Any],
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Note the step's loss, in nats per token, and its learning rate."""
        self._write(trainer, outputs)

    def on_validation_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule
    ) -> None:
        """Note the validation loss, then save: a run resumed here has its line."""
        valid_nats = trainer.callback_metrics["valid_nats"].item()
        self._write(trainer, {"valid_nats": valid_nats})
        folder = self.folder / CHECKPOINTS
        trainer.save_checkpoint(folder / f"step-{trainer.global_step:08d}")
        if trainer.is_global_zero:
            keep_last(folder, self.keep)

    def _write(self, trainer: L.Trainer, values: dict[str, Any]) -> None:
        if not trainer.is_global_zero:
            return
        seconds = round(time.perf_counter() - self.begun, 3)
        line = {"step": trainer.global_step, **values, "seconds": seconds}
        with (self.folder / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")


def read_log(folder: str | Path) -> list[dict[str, float]]:
    """Return the lines of a run's log; a last line that was cut off is left out."""
    text = (Path(folder) / LOG).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines(True) if line.endswith("\n")]


def choose_precision(wanted: Precision = "auto") -> str:
    """Return Lightning's name for the fastest precision that is safe on this device.

    Weights, their gradients and Adam's averages are in float32 in any case; mixed
    precision computes matrix products in 16 bits where the hardware does so at once.

    Args:
        wanted: "float32" for no mixing.
    """
    if wanted == "float32":
        return "32-true"
    if torch.cuda.is_available():
        # Compute capability 8.0 (Ampere) is the first with bfloat16.
        modern = torch.cuda.get_device_capability() >= (8, 0)
        return "bf16-mixed" if modern else "16-mixed"
    return "bf16-mixed" if _cpu_has_bfloat16() else "32-true"


def _cpu_has_bfloat16() -> bool:
    """Tell whether this processor multiplies matrices in bfloat16."""
    try:
        able = torch.cpu.get_capabilities()
    except AttributeError:  # a PyTorch that cannot tell
        return False
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))


def _cut_log(log: Path, after: int) -> None:
    """Drop what was noted after the step that the run is gone on from."""
    if log.is_file():
        lines = [line for line in read_log(log.parent) if line["step"] <= after]
        write_text(log, "".join(json.dumps(line) + "\n" for line in lines))


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))


def _model_state(checkpoint: Path) -> dict[str, Tensor]:
    """Return the model's part of what Lightning saved."""
    state = load_checkpoint(checkpoint)["state_dict"]
    return {name.removeprefix("model."): tensor for name, tensor in state.items()}


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back Lightning's remarks on the machine and on its own insides."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*does not have many workers.*")
        warnings.filterwarnings("ignore", ".*treespec, LeafSpec.*")
        yield
    logger.setLevel(level)
