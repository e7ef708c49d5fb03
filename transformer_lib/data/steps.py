"""The endless stream of training steps: the same every time, and from any start."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import Generic, TypeVar

from transformer_lib.data.batches import Batch, Ids, batch_plan, make_batch

AnyBatch = TypeVar("AnyBatch")
Rows = list[int]


class BatchStream(Generic[AnyBatch]):
    """Epoch after epoch of batches, divided into steps of equally many.

    A step depends on its number and on the arguments alone. So a run can resume at any
    step, and processes that share the work agree without a word.

    Args:
        plan: given an epoch, from 0, returns the row numbers of each batch.
        make: given row numbers, makes the batch.
        n_batches: batches in a step, in all processes together.
    """

    def __init__(
        self,
        plan: Callable[[int], Sequence[Rows]],
        make: Callable[[Rows], AnyBatch],
        n_batches: int,
    ) -> None:
        self.plan, self.make, self.n_batches = plan, make, n_batches

    def starting_at(
        self, first: int, rank: int = 0, n_processes: int = 1
    ) -> Iterator[list[AnyBatch]]:
        """Return the batches of each step from a certain one on, without end.

        Args:
            first: number of the first step, from 1.
            rank: which process asks, from 0. It gets the batches rank,
                rank + n_processes, ... of each step.
            n_processes: among how many each step's batches are divided.

        Raises:
            ValueError: the batches cannot be divided equally.
        """
        if self.n_batches % n_processes != 0:
            raise ValueError(
                f"{self.n_batches} batches per step cannot be divided equally among "
                f"{n_processes} processes; gradient_accumulation must be a multiple of "
                "their number"
            )
        return self._steps(first, rank, n_processes)

    def _steps(
        self, first: int, rank: int, n_processes: int
    ) -> Iterator[list[AnyBatch]]:
        rows = (batch for epoch in count() for batch in self.plan(epoch))
        rows = islice(rows, (first - 1) * self.n_batches, None)
        while True:
            step = list(islice(rows, self.n_batches))
            yield [self.make(batch) for batch in step[rank::n_processes]]


class Steps(BatchStream[Batch]):
    """Steps of sentence pairs, batched by length.

    Args:
        pairs: (source, target) ids, both ending with eos.
        max_tokens: bound for rows times the longest side of a batch.
        n_batches: batches in a step, in all processes together.
        seed: decides the order.
        bos_id: what the decoder reads first.
        pad_id: what fills the rest of a row.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[Ids, Ids]],
        max_tokens: int,
        n_batches: int,
        seed: int,
        *,
        bos_id: int,
        pad_id: int,
    ) -> None:
        self.pairs, self.max_tokens, self.seed = pairs, max_tokens, seed
        lengths = [(len(src), len(tgt)) for src, tgt in pairs]
        super().__init__(
            lambda epoch: batch_plan(lengths, max_tokens, seed, epoch),
            lambda rows: make_batch(
                [pairs[row] for row in rows], bos_id=bos_id, pad_id=pad_id
            ),
            n_batches,
        )
