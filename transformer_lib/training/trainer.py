"""The loop of `training`, run by Lightning: any device, several processes, resumed.

Nothing random is left over from one step to the next. The sentences of a step follow
from its number, and dropout is drawn anew for every batch from the seed, the step and
the batch's place in it. So weights, the optimizer's averages and the step's number are
all there is to save, and a run that was cut off goes on as if nothing had been.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.plugins.io import CheckpointIO
from torch import nn
from torch.optim import Optimizer

from transformer_lib.data.batches import Batch
from transformer_lib.data.steps import Step, Steps
from transformer_lib.model.state_dict import check_fit
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.checkpoint import load_checkpoint, save_checkpoint
from transformer_lib.training.loop import (
    batch_loss,
    learning_rate,
    make_optimizer,
    set_learning_rate,
)
from transformer_lib.training.recipe import Recipe, difference, make_recipe


class TranslationModule(L.LightningModule):
    """A Transformer with its loss and its schedule.

    Args:
        model: to be trained in place.
        recipe: how.
    """

    def __init__(self, model: Transformer, recipe: Recipe) -> None:
        super().__init__()
        self.model = model
        self.recipe = recipe
        # Lightning would average the means of accumulated batches; a token must count
        # the same in every batch.
        self.automatic_optimization = False

    def configure_optimizers(self) -> Optimizer:
        """Return Adam; its rate is set before every step."""
        return make_optimizer(self.model)

    def training_step(self, step: Step) -> dict[str, float]:
        """Take one step, as `training.train_step` does."""
        settings, d_model = self.recipe.training, self.model.config.d_model
        rate = learning_rate(step.number, d_model, settings.warmup, settings.rate_scale)
        optimizer = self.optimizers()
        set_learning_rate(optimizer.optimizer, rate)
        optimizer.zero_grad()
        total = torch.zeros((), device=self.device)
        for place, batch in step.batches:
            is_last = place == step.batches[-1][0]
            with self.own_dropout(step.number, place), self._exchange(is_last):
                loss = batch_loss(self.model, batch, settings.smoothing)
                # Gradients of several processes are averaged, but should be added.
                loss = loss / step.n_tokens * self.trainer.world_size
                self.manual_backward(loss)
            total += loss.detach()
        optimizer.step()
        total = self.trainer.strategy.reduce(total, reduce_op="mean").item()
        return {"train_nats": total, "rate": rate}

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Cut a long gradient; Lightning has taken fp16's scale off it by now."""
        max_norm = self.recipe.training.max_norm
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), max_norm)
        in_fp16 = self.trainer.precision == "16-mixed"  # which skips such a step itself
        if not in_fp16 and not torch.isfinite(norm):
            raise ValueError(f"the gradient's norm is {norm.item()}: training diverged")

    def validation_step(self, batch: Batch) -> None:
        """Measure the loss without smoothing, in nats per token."""
        loss = batch_loss(self.model, batch, smoothing=0.0) / batch.n_tokens
        self.log("valid_nats", loss, batch_size=batch.n_tokens)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Note the recipe beside the weights."""
        checkpoint["recipe"] = asdict(self.recipe)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse the checkpoint of another run.

        Raises:
            ValueError: naming what differs.
        """
        if "recipe" not in checkpoint:
            raise ValueError("this checkpoint is not of a run of this library")
        what = difference(make_recipe(checkpoint["recipe"]), self.recipe)
        if what:
            raise ValueError(f"the run was begun with another recipe: {what}")
        state = checkpoint["state_dict"]
        check_fit(state, self.state_dict(), "the checkpoint", "the model")

    @contextmanager
    def own_dropout(self, number: int, place: int) -> Iterator[None]:
        """Draw dropout from this batch's own seed, and leave the generators as found.

        The same batch drops the same units, whichever process it is given to.
        """
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            seed = self.recipe.training.seed
            torch.manual_seed((seed * 1_000_003 + number) * 1_009 + place)
            yield

    def _exchange(self, is_last: bool) -> Any:
        """Let processes add up their gradients once a step, after their last batch."""
        if is_last or self.trainer.world_size == 1:
            return nullcontext()
        return self.trainer.model.no_sync()


class StepLoader:
    """Gives Lightning the steps of a run, and knows where it was cut off.

    Args:
        steps: the endless stream.
        n_steps: length of the run.
        rank: number of this process.
        n_processes: how many there are.
    """

    def __init__(
        self, steps: Steps, n_steps: int, rank: int = 0, n_processes: int = 1
    ) -> None:
        self.steps, self.n_steps = steps, n_steps
        self.rank, self.n_processes = rank, n_processes
        self.done = 0

    def __len__(self) -> int:
        return self.n_steps

    def __iter__(self) -> Iterator[Step]:
        first = self.done + 1
        for step in self.steps.starting_at(first, self.rank, self.n_processes):
            if step.number > self.n_steps:
                return
            self.done = step.number
            yield step

    def state_dict(self) -> dict[str, int]:
        """Say how many steps were given out."""
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on where another loader stopped."""
        self.done = state["done"]


class SafeCheckpoints(CheckpointIO):
    """Makes Lightning write our checkpoints, not pickles."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None
    ) -> None:
        """Write what Lightning gives, whole or not at all."""
        save_checkpoint(path, checkpoint)

    def load_checkpoint(
        self, path: str | Path, map_location: Any = None, weights_only: Any = None
    ) -> dict[str, Any]:
        """Read it back; Lightning moves the tensors to their device."""
        return load_checkpoint(path)

    def remove_checkpoint(self, path: str | Path) -> None:
        """Do nothing: `checkpoints.keep_last` removes old ones."""
