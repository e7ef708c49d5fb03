"""The endless stream of training steps, the same every time and for any start."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice

import torch

from transformer_lib.data.batches import Batch, Ids, batch_plan, make_batch


@dataclass(frozen=True)
class Step:
    """What one process has to do in one step.

    Attributes:
        number: of the step, from 1.
        batches: of this process, with their numbers within the step, from 0.
        n_tokens: real target tokens of the whole step, all processes together.
    """

    number: int
    batches: tuple[tuple[int, Batch], ...]
    n_tokens: int

    def to(self, device: torch.device | str) -> "Step":
        """Return the same step on another device."""
        moved = tuple((place, batch.to(device)) for place, batch in self.batches)
        return Step(self.number, moved, self.n_tokens)


class Steps:
    """Epoch after epoch of batches, taken together in steps of equally many.

    A step depends on its number and on the arguments alone. So a run can go on at any
    step, and processes that share the work agree without a word.

    Args:
        pairs: (source, target) ids, both ending with eos.
        max_tokens: bound for rows times the longest side of a batch.
        n_batches: batches in a step, in all processes together.
        seed: decides the order.
        bos_id: what the decoder reads first.
        pad_id: what fills the rest of a row.

    Raises:
        ValueError: n_batches is below 1, or `batch_plan` refuses the pairs.
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
        if n_batches < 1:
            raise ValueError(f"a step needs at least 1 batch, not {n_batches}")
        self.pairs, self.seed = pairs, seed
        self.max_tokens, self.n_batches = max_tokens, n_batches
        self.bos_id, self.pad_id = bos_id, pad_id
        self._lengths = [(len(src), len(tgt)) for src, tgt in pairs]

    def starting_at(
        self, first: int, rank: int = 0, n_processes: int = 1
    ) -> Iterator[Step]:
        """Yield the steps from a certain one on, for ever.

        Args:
            first: number of the first step, from 1.
            rank: which process asks, from 0.
            n_processes: among how many each step's batches are divided.

        Raises:
            ValueError: first is below 1, or the batches cannot be divided equally.
        """
        if first < 1:
            raise ValueError(f"steps are counted from 1, not from {first}")
        if self.n_batches % n_processes != 0:
            raise ValueError(
                f"{self.n_batches} batches a step cannot be divided equally among "
                f"{n_processes} processes"
            )
        rows = islice(self._rows(), (first - 1) * self.n_batches, None)
        for number in count(first):
            step = list(islice(rows, self.n_batches))
            n_tokens = sum(self._lengths[row][1] for batch in step for row in batch)
            mine = range(rank, self.n_batches, n_processes)
            batches = tuple((place, self._batch(step[place])) for place in mine)
            yield Step(number, batches, n_tokens)

    def _rows(self) -> Iterator[list[int]]:
        """Yield the row numbers of each batch of each epoch."""
        for epoch in count():
            yield from batch_plan(self._lengths, self.max_tokens, self.seed, epoch)

    def _batch(self, rows: list[int]) -> Batch:
        pairs = [self.pairs[row] for row in rows]
        return make_batch(pairs, bos_id=self.bos_id, pad_id=self.pad_id)
