"""The training step and the loop: all training in this library goes through them.

Translators and classifiers differ in their loss. A run in a folder uses the subclass
`lightning_trainer.LightningTrainer`, which takes the same steps on any device, in mixed
precision, and in several processes.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from transformer_lib.data.batches import Batch
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.loss import batch_loss
from transformer_lib.training.schedule import (
    learning_rate,
    make_optimizer,
    set_learning_rate,
)

# A batch is whatever the loss understands, with the number of its targets, `n_targets`.
Loss = Callable[[Any, Any], Tensor]  # (model, batch) -> sum over its targets, in nats


@dataclass
class Trainer:
    """A model and how it learns.

    Attributes:
        model: its weights change in place.
        optimizer: of the model's parameters.
        loss: given the model and a batch, adds up the loss of the batch's targets.
        rate: the learning rate of each step, counted from 1; None leaves the
            optimizer's own.
        max_norm: a longer gradient is clipped to this norm.
        n_steps: steps taken so far.
    """

    model: nn.Module
    optimizer: Optimizer
    loss: Loss
    rate: Callable[[int], float] | None = None
    max_norm: float = math.inf
    n_steps: int = field(default=0, init=False)

    def run(self, steps: Iterable[Sequence[Any]]) -> Iterator[float]:
        """Train, one step each time a loss is asked for.

        Args:
            steps: the batches of every step.

        Yields:
            The loss of each step, in nats per target.
        """
        self.model.train()
        for batches in steps:
            if self.rate is not None:
                set_learning_rate(self.optimizer, self.rate(self.n_steps + 1))
            yield self.step(batches)

    def step(self, batches: Sequence[Any]) -> float:
        """Take one step on several batches as if they were one.

        This is gradient accumulation: each batch's gradient is added to the last one's,
        so that only one batch has to fit into memory. All are divided by the number of
        targets of all: a mean of the batches' means would give the words of a small
        batch more weight.

        Args:
            batches: what to learn from in this step, at least one.

        Returns:
            The loss before the step, in nats per target.

        Raises:
            ValueError: there is no batch, or the gradient is not finite.
        """
        if not batches:
            raise ValueError("a step needs at least 1 batch, but got 0")
        n_targets = int(self.total(sum(batch.n_targets for batch in batches)))
        self.optimizer.zero_grad()
        nats = 0.0
        for index, batch in enumerate(batches):
            with self.turn(index, is_last=index == len(batches) - 1):
                loss = self.loss(self.model, batch) / n_targets
                self.backward(loss)  # adds to the gradient that is there
            nats += loss.detach()
        nats = float(self.total(nats))
        norm = self.clip_gradient()
        if not torch.isfinite(norm) and not self.skips_overflow:
            raise ValueError(
                f"step {self.n_steps + 1}: the gradient's norm is {norm.item()} at a "
                f"loss of {nats}; training diverged"
            )
        self.optimizer.step()
        self.n_steps += 1
        return nats

    # What follows is the part of a step that other devices do differently.

    skips_overflow = False  # whether the optimizer skips a step that is not finite

    def turn(self, index: int, is_last: bool) -> AbstractContextManager:
        """Return the context in which one of a step's batches is learned from."""
        return nullcontext()

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a loss to that of the parameters."""
        loss.backward()

    def clip_gradient(self) -> Tensor:
        """Clip the gradient to `max_norm`, and return its norm before."""
        return nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)

    def total(self, value: float | Tensor) -> float | Tensor:
        """Add up a number over all processes."""
        return value


def train_step(
    model: Transformer,
    optimizer: Optimizer,
    batches: Sequence[Batch],
    smoothing: float = 0.1,
    max_norm: float = math.inf,
) -> float:
    """Take one step of a translator, in training mode; see `Trainer`.

    Returns:
        The loss before the step, in nats per target token.

    Raises:
        ValueError: there is no batch, or the gradient is not finite.
    """
    loss = partial(batch_loss, smoothing=smoothing)
    return Trainer(model, optimizer, loss, max_norm=max_norm).step(batches)


def train(
    model: Transformer,
    steps: Iterable[Sequence[Batch]],
    warmup: int,
    rate_scale: float = 1.0,
    smoothing: float = 0.1,
) -> Iterator[float]:
    """Train a translator, one step each time a loss is asked for.

    Args:
        model: its weights change in place.
        steps: the batches of every step.
        warmup: steps until the learning rate peaks.
        rate_scale: factor on the paper's learning rate.
        smoothing: of the labels.

    Yields:
        The loss of each step, in nats per target token.
    """

    def rate(step: int) -> float:
        return learning_rate(step, model.config.d_model, warmup, rate_scale)

    loss = partial(batch_loss, smoothing=smoothing)
    return Trainer(model, make_optimizer(model), loss, rate).run(steps)
