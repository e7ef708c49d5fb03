"""The endless stream of training steps: the same every time, and from any start."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import Generic, TypeVar

from transformer_lib.data.batches import Batch, Ids, batch_plan, make_batch

AnyBatch = TypeVar("AnyBatch")
Rows = list[int]


class BatchStream(Generic[AnyBatch]):
    """Epoch after epoch of batches, divided into steps of equally many.

    A step depends on its number and on the arguments alone: a run can resume at any.

    Args:
        plan: given an epoch, from 0, returns the row numbers of each batch.
        make: given row numbers, makes the batch.
        n_batches: batches in a step.
    """

    def __init__(
        self,
        plan: Callable[[int], Sequence[Rows]],
        make: Callable[[Rows], AnyBatch],
        n_batches: int,
    ) -> None:
        self.plan, self.make, self.n_batches = plan, make, n_batches

    def starting_at(self, first: int) -> Iterator[list[AnyBatch]]:
        """Yield the batches of each step, from number `first` on, without end."""
        rows = (batch for epoch in count() for batch in self.plan(epoch))
        rows = islice(rows, (first - 1) * self.n_batches, None)
        while True:
            yield [self.make(batch) for batch in islice(rows, self.n_batches)]


class Steps(BatchStream[Batch]):
    """Steps of sentence pairs, batched by length.

    Args:
        pairs: (source, target) ids, both ending with eos.
        max_tokens: bound for rows times the longest side of a batch.
        n_batches: batches in a step.
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
