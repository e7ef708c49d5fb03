"""The training step and the loop: all training in this library goes through them.

Translators and classifiers differ in their loss. A run in a folder uses the same loop
with a step of its own, `lightning_trainer.LightningTrainer.step`, which works on
any device, in mixed precision, and in several processes.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from transformer_lib.data.batches import Batch
from transformer_lib.model.checks import check_numbers
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
        """Take one step; see `train_step`."""
        nats = train_step(self.model, self.optimizer, self.loss, batches, self.max_norm)
        self.n_steps += 1
        return nats


def train_step(
    model: nn.Module,
    optimizer: Optimizer,
    loss: Loss,
    batches: Sequence[Any],
    max_norm: float = math.inf,
) -> float:
    """Take one step on several batches as if they were one.

    This is gradient accumulation: each batch's gradient is added to the last one's,
    so that only one batch has to fit into memory. All are divided by the number of
    targets of all: a mean of the batches' means would give the words of a small batch
    more weight.

    Args:
        model: its weights change in place.
        optimizer: of the model's parameters.
        loss: given the model and a batch, adds up the loss of the batch's targets.
        batches: what to learn from in this step, at least one.
        max_norm: a longer gradient is clipped to this norm.

    Returns:
        The loss before the step, in nats per target.

    Raises:
        ValueError: there is no batch, max_norm is not above 0, or the loss or its
            gradient is not finite.
    """
    check_batches(batches)
    check_max_norm(max_norm)
    n_targets = sum(batch.n_targets for batch in batches)
    optimizer.zero_grad()
    nats = 0.0
    for batch in batches:
        share = loss(model, batch) / n_targets
        share.backward()  # adds to the gradient that is there
        nats += share.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    check_gradient(norm, nats, next_step(optimizer))
    optimizer.step()
    return nats


def check_batches(batches: Sequence[Any]) -> None:
    """Refuse a step without batches."""
    if not batches:
        raise ValueError("a step needs at least 1 batch, but got 0")


def check_max_norm(max_norm: float) -> None:
    """Refuse a norm that would turn the gradient around, or leave nothing of it."""
    check_numbers(max_norm=max_norm)
    if not max_norm > 0:
        raise ValueError(f"max_norm must be above 0, not {max_norm}")


def check_gradient(norm: Tensor, nats: float, step: int) -> None:
    """Refuse a gradient that is not finite: a step of it would spoil all weights.

    The loss itself may be NaN where the gradient is not: in a part without weights.
    """
    if not torch.isfinite(norm) or not math.isfinite(nats):
        raise ValueError(
            f"step {step}: the gradient's norm is {norm.item()} at a loss of {nats}; "
            "training diverged"
        )


def next_step(optimizer: Optimizer) -> int:
    """Return the number of the step that comes; 1 if the optimizer does not count."""
    counts = (int(state.get("step", 0)) for state in optimizer.state.values())
    return 1 + max(counts, default=0)


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
