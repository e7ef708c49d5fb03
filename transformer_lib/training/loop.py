"""The training step and the loop: all training in this library goes through them.

Translators and classifiers differ in their loss. Nothing random is left over from one
step to the next: with a seed, dropout follows from it and the number of the batch. So
weights, optimizer and the number of the step are all that a run has to save. Nothing
depends on the process that computes a batch: several of them take the steps of one.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from transformer_lib.data.batches import Batch
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.loss import batch_loss
from transformer_lib.training.processes import ALONE, Processes
from transformer_lib.training.schedule import (
    learning_rate,
    make_optimizer,
    set_learning_rate,
)

# A batch is whatever the loss understands, with the number of its targets, `n_targets`.
Loss = Callable[[Any, Any], Tensor]  # (model, batch) -> sum over its targets, in nats


def train_step(
    model: nn.Module,
    optimizer: Optimizer,
    loss: Loss,
    batches: Sequence[Any],
    max_norm: float = math.inf,
    processes: Processes | None = None,
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
        batches: what to learn from in this step.
        max_norm: a longer gradient is clipped to this norm.
        processes: that take the step together, each with its share of the batches.

    Returns:
        The loss before the step, in nats per target, of all processes.

    Raises:
        ValueError: max_norm is not above 0, or the loss or the gradient is not finite:
            such a step would spoil all weights.
    """
    if not max_norm > 0:
        raise ValueError(f"max_norm must be above 0, not {max_norm}")
    n_targets = sum(batch.n_targets for batch in batches)
    if processes is not None:
        n_targets = processes.sum(n_targets)
    optimizer.zero_grad()
    nats = 0.0
    for batch in batches:
        share = loss(model, batch) / n_targets
        share.backward()  # adds to the gradient that is there
        nats += share.item()
    if processes is not None:
        nats = processes.add_gradients(model, nats)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm).item()
    if not math.isfinite(nats + norm):
        raise ValueError(f"training diverged: loss {nats}, gradient {norm}")
    optimizer.step()
    return nats


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
        seed: of dropout; None draws from PyTorch's generators as they are.
        n_steps: steps taken so far.
        n_batches: batches in a step, of all processes together. Dropout follows from
            the number of a batch in the run.
        processes: that take each step together; the model and the rest are the same in
            all of them.
    """

    model: nn.Module
    optimizer: Optimizer
    loss: Loss
    rate: Callable[[int], float] | None = None
    max_norm: float = math.inf
    seed: int | None = None
    n_steps: int = 0
    n_batches: int = 1
    processes: Processes = ALONE

    def run(self, steps: Iterable[Sequence[Any]]) -> Iterator[float]:
        """Train, one step each time a loss is asked for.

        Args:
            steps: the batches of every step; of several processes, this one's share.

        Yields:
            The loss of each step, in nats per target.

        Raises:
            ValueError: a step has more or fewer batches than n_batches says, so that
                dropout would repeat itself.
        """
        self.model.train()
        processes = self.processes
        for batches in steps:
            mine = range(self.n_batches)[processes.share]
            if self.seed is not None and len(batches) != len(mine):
                raise ValueError(
                    f"a step has {len(batches)} batches here, but {len(mine)} of the "
                    f"{self.n_batches} of a step are this process's"
                )
            if self.rate is not None:
                set_learning_rate(self.optimizer, self.rate(self.n_steps + 1))
            first = self.n_steps * self.n_batches + processes.rank + 1
            loss = partial(self._seeded_loss, count(first, processes.size))
            nats = train_step(
                self.model, self.optimizer, loss, batches, self.max_norm, processes
            )
            self.n_steps += 1
            yield nats

    def _seeded_loss(self, numbers: Iterator[int], model: Any, batch: Any) -> Tensor:
        """Return the loss of the batch that has the next number."""
        with self._seeded(next(numbers)):
            return self.loss(model, batch)

    @contextmanager
    def _seeded(self, number: int) -> Iterator[None]:
        """Draw dropout from a batch's own seed, and leave the generators as found."""
        if self.seed is None:
            yield
            return
        device = next(self.model.parameters()).device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(random.Random(f"{self.seed} {number}").getrandbits(63))
            yield


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
