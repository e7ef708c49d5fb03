"""The training loop on any device, in mixed precision, in several processes.

Lightning's Fabric does what depends on the machine. Nothing random is left over from
one step to the next: the sentences of a step follow from its number, and dropout is
drawn anew for every batch from the seed, the step and the batch's index in it. So
weights, optimizer and the number of the step are all there is to save, and a run that
was interrupted resumes as if nothing had been.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor

from transformer_lib.model.state_dict import check_fit
from transformer_lib.training.loop import Trainer, check_batches, check_gradient
from transformer_lib.training.recipe import Precision


@dataclass(kw_only=True)
class LightningTrainer(Trainer):
    """A trainer that works on the device, precision and processes of a Fabric.

    Attributes:
        fabric: what `make_fabric` returned; model and optimizer are set up with it.
        seed: of dropout.
    """

    fabric: Fabric
    seed: int

    def __post_init__(self) -> None:
        """Move the model to its device and wrap it for precision and processes."""
        self.model, self.optimizer = self.fabric.setup(self.model, self.optimizer)
        # In float16, a step whose scaled gradient overflows is skipped.
        self.scaler = getattr(self.fabric.strategy.precision, "scaler", None)
        self.skips_overflow = self.scaler is not None

    def step(self, batches: Sequence[Any]) -> float:
        """Take one step on this process's batches; see `loop.train_step`.

        Raises:
            ValueError: there is no batch, or the gradient is not finite.
        """
        check_batches(batches)
        n_targets = int(self.total(sum(batch.n_targets for batch in batches)))
        self.optimizer.zero_grad()
        nats = 0.0
        for index, batch in enumerate(batches):
            with self.turn(index, is_last=index == len(batches) - 1):
                share = self.loss(self.model, batch) / n_targets
                self.backward(share)
            nats += share.detach()
        nats = float(self.total(nats))
        norm = self.clip_gradient()
        if not self.skips_overflow:
            check_gradient(norm, nats, self.n_steps + 1)
        self.optimizer.step()
        self.n_steps += 1
        return nats

    @contextmanager
    def turn(self, index: int, is_last: bool) -> Iterator[None]:
        """Draw dropout from the batch's own seed, and leave the generators as found.

        The same batch drops the same units, whichever process it is given to. Processes
        exchange their gradients once a step, after their last batch.
        """
        fabric = self.fabric
        devices = [fabric.device] if fabric.device.type == "cuda" else []
        batch = fabric.global_rank + index * fabric.world_size  # its index in the step
        with (
            torch.random.fork_rng(devices),
            fabric.no_backward_sync(self.model, enabled=not is_last),
        ):
            step = self.n_steps + 1
            torch.manual_seed((self.seed * 1_000_003 + step) * 1_009 + batch)
            yield

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a loss; that of several processes is their sum."""
        # Processes average their gradients, but should add them.
        self.fabric.backward(loss * self.fabric.world_size)

    def clip_gradient(self) -> Tensor:
        """Clip the gradient to `max_norm`, and return its norm before."""
        return self.fabric.clip_gradients(
            self.model,
            self.optimizer,
            max_norm=self.max_norm,
            error_if_nonfinite=False,
        )

    def total(self, value: float | Tensor) -> Tensor:
        """Add up a number over all processes."""
        return self.fabric.all_reduce(value, reduce_op="sum")

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to resume after this step."""
        return {
            "step": self.n_steps,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict() if self.scaler else {},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned.

        Raises:
            ValueError: a tensor is missing, unknown, or of another shape.
        """
        check_fit(
            state["model"], self.model.state_dict(), "the checkpoint", "the model"
        )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scaler and state["scaler"]:
            self.scaler.load_state_dict(state["scaler"])
        self.n_steps = state["step"]


def make_fabric(precision: Precision = "auto") -> Fabric:
    """Find the device, and the other processes if `torchrun` started this one.

    Args:
        precision: see `choose_precision`.
    """
    n_processes = int(os.environ.get("WORLD_SIZE", "1"))
    n_local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # on this machine
    fabric = Fabric(
        accelerator="auto",
        devices=n_local,
        num_nodes=n_processes // n_local,
        strategy="ddp" if n_processes > 1 else "auto",
        precision=choose_precision(precision),
    )
    fabric.launch()
    return fabric


def choose_precision(wanted: Precision = "auto") -> str:
    """Return Lightning's name for the fastest precision that is safe on this device.

    Weights, their gradients and Adam's averages are in float32 in any case; mixed
    precision computes matrix products in 16 bits where the hardware supports it.

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
