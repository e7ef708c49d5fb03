"""Several processes that take the same steps together, on one machine or on many.

Each computes the loss and the gradient of its share of a step's batches. Shares are
added up, so that all processes hold the gradient of the whole step, take the same step,
and keep the same weights, which are never sent. `torchrun` starts the processes and
tells each its number in the environment; without it there is one, `ALONE`.
"""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn

Number = TypeVar("Number", int, float)

# While one of them prepares a corpus of millions, the others wait. That a process has
# died is told by its connection, which closes at once.
_PATIENCE = timedelta(days=1)


@dataclass(frozen=True)
class Processes:
    """The processes of a run, as one of them sees them.

    What its methods do together returns when all processes have called it.

    Attributes:
        rank: number of this process, from 0.
        size: number of processes.
        local_rank: number of this process on its machine, from 0.

    Raises:
        ConnectionError: by all methods: another process has ended.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def is_first(self) -> bool:
        """Say whether this is the process that writes, logs and shows the bar."""
        return self.rank == 0

    @property
    def share(self) -> slice:
        """Which of a list of batches are this process's."""
        return slice(self.rank, None, self.size)

    @property
    def device(self) -> torch.device:
        """The fastest device; of several GPUs, this process's own."""
        if torch.cuda.is_available():
            return torch.device("cuda", self.local_rank if self.size > 1 else None)
        if torch.backends.mps.is_available() and self.size == 1:
            return torch.device("mps")
        return torch.device("cpu")

    def sum(self, value: Number) -> Number:
        """Add up a number over all processes."""
        if self.size == 1:
            return value
        dtype = torch.float64 if isinstance(value, float) else torch.int64
        total = torch.tensor(value, dtype=dtype, device=self.device)
        _together(dist.all_reduce, total)
        return total.item()

    def add_gradients(self, model: nn.Module, nats: float) -> float:
        """Add up the gradients over all processes, and the loss with them.

        Everything travels in one row of numbers: many small ones would each wait.

        Args:
            model: its gradients are this process's share; they become the sums. What
                has no gradient counts as zero.
            nats: this process's share of the loss.

        Returns:
            The sum of the losses.
        """
        if self.size == 1:
            return nats
        learned = [each for each in model.parameters() if each.requires_grad]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in learned]
        row = torch.cat(
            [part.flatten() for part in parts] + [parts[0].new_tensor([nats])]
        )
        _together(dist.all_reduce, row)
        sums = row[:-1].split([part.numel() for part in parts])
        for parameter, total in zip(learned, sums, strict=True):
            parameter.grad = total.view_as(parameter)
        return row[-1].item()

    def wait(self) -> None:
        """Wait until all processes are here."""
        self.sum(0)

    def require_same(self, what: dict[str, str]) -> None:
        """Refuse to go on together if a text differs between the processes.

        Args:
            what: name -> text, of this process.

        Raises:
            ValueError: in all of them; the first name that differs, and both texts.
        """
        if self.size == 1:
            return
        found: list[Any] = [None] * self.size
        _together(dist.all_gather_object, found, what)
        first, *others = found
        for rank, other in enumerate(others, start=1):
            for name in {**first, **other}:
                mine, theirs = first.get(name), other.get(name)
                if mine != theirs:
                    raise ValueError(
                        f"the processes of a run must agree, but {name} is {mine!r} in "
                        f"process 0 and {theirs!r} in process {rank}"
                    )


ALONE = Processes()


@contextmanager
def processes() -> Iterator[Processes]:
    """Join the processes that `torchrun` has started; without it, be alone.

    GPUs talk by NCCL, one process each, and processors by Gloo.

    Raises:
        ConnectionError: the processes don't reach each other.
        ValueError: a machine has fewer GPUs than processes.
    """
    if not are_several():
        yield ALONE
        return
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    group = Processes(*(int(os.environ.get(name, 0)) for name in names))
    _connect(group)
    yield group
    # After an error nothing is closed, until it has been said: the end of one process
    # is the next error of all others.
    dist.destroy_process_group()


def are_several() -> bool:
    """Say whether `torchrun` has started this process together with others."""
    return "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", 1)) > 1


def may_speak() -> bool:
    """Say whether none of several processes has asked this before.

    An error ends all of them; whoever is first knows why.
    """
    try:
        store, *_ = next(dist.rendezvous("env://", timeout=timedelta(seconds=5)))
        return store.add("transformer_lib speaks", 1) == 1
    except RuntimeError:  # it was kept by a process that has ended
        return True


def _connect(group: Processes) -> None:
    """Open the connections between all processes."""
    backend = "gloo"
    if group.device.type == "cuda":
        backend = "nccl"
        if group.local_rank >= torch.cuda.device_count():
            raise ValueError(
                f"this machine has {torch.cuda.device_count()} GPUs, too few for a "
                "process each: start as many processes as there are GPUs, or set "
                "CUDA_VISIBLE_DEVICES to nothing to train on processors"
            )
        torch.cuda.set_device(group.device)
    on_one_machine = os.environ.get("LOCAL_WORLD_SIZE") == str(group.size)
    if on_one_machine and "GLOO_SOCKET_IFNAME" not in os.environ:
        # Gloo asks for the machine's address in the network, which may have none.
        for _, name in socket.if_nameindex():
            if name.startswith("lo"):
                os.environ["GLOO_SOCKET_IFNAME"] = name
    try:
        dist.init_process_group(backend, timeout=_PATIENCE)
    except RuntimeError as error:
        raise ConnectionError(
            f"the processes don't reach each other ({_reason(error)}): "
            "GLOO_SOCKET_IFNAME names the network interface that they talk over"
        ) from None


def _together(collective: Callable[..., Any], *given: Any) -> None:
    """Do what all processes do together."""
    try:
        collective(*given)
    except RuntimeError as error:
        why = _reason(error).partition(". ")[0]
        raise ConnectionError(
            f"another process of this run has ended ({why}): what was saved is whole, "
            "and --resume goes on from there"
        ) from None


def _reason(error: RuntimeError) -> str:
    """Return the first line of an error, without the place in PyTorch's sources."""
    line = str(error).partition("\n")[0].rpartition("] ")[2]
    return line.strip(" .") or type(error).__name__
