"""The endless stream of training steps: the same every time, and from any start."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import Any

import numpy as np

from transformer_lib.data.batches import Ids, make_batch
from transformer_lib.data.pairs_file import MappedPairs
from transformer_lib.data.plans import BatchPlan

Rows = list[int]


class BatchStream:
    """Epoch after epoch of batches, divided into steps of equally many.

    A step depends on its number and on the arguments alone: a run can resume at any.

    Args:
        pairs: what an epoch goes through: sources with targets, or texts with labels.
        plan: given an epoch, from 0, returns the row numbers of each batch.
        make: given pairs, makes the batch.
        n_batches: batches in a step.
        per_epoch: batches in an epoch, in each as many.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[Ids, Any]],
        plan: Callable[[int], Iterable[Rows]],
        make: Callable[[Sequence[tuple[Ids, Any]]], Any],
        n_batches: int,
        per_epoch: int,
    ) -> None:
        self.pairs, self.plan, self.make = pairs, plan, make
        self.n_batches, self.per_epoch = n_batches, per_epoch

    @property
    def digest(self) -> str:
        """Tells these pairs from others: what a checkpoint is bound to."""
        if isinstance(self.pairs, MappedPairs):
            return self.pairs.digest
        return hashlib.sha256(json.dumps(self.pairs).encode()).hexdigest()

    def starting_at(
        self, first: int, share: slice = slice(None)
    ) -> Iterator[list[Any]]:
        """Yield the batches of each step, from number `first` on, without end.

        Args:
            first: number of the first step, from 1.
            share: which of a step's batches are made, if not all: those of one process
                among several.
        """
        epoch, n_passed = divmod((first - 1) * self.n_batches, self.per_epoch)
        rows = (batch for number in count(epoch) for batch in self.plan(number))
        rows = islice(rows, n_passed, None)
        while True:
            batches = list(islice(rows, self.n_batches))[share]
            yield [self.make([self.pairs[row] for row in batch]) for batch in batches]


class Steps(BatchStream):
    """Steps of sentence pairs, batched by length.

    Args:
        pairs: (source, target) ids, both ending with eos; a list, or a mapped file.
        max_tokens: bound for rows times the longest side of a batch.
        n_batches: batches in a step.
        seed: decides the order.
        bos_id: what the decoder reads first.
        pad_id: what fills the rest of a row.

    Raises:
        ValueError: a pair is longer than max_tokens.
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
        if isinstance(pairs, MappedPairs):
            lengths = pairs.lengths
        else:
            sides = [(len(src), len(tgt)) for src, tgt in pairs]
            lengths = np.array(sides, dtype=np.int32).reshape(-1, 2)
        plan = BatchPlan(lengths, max_tokens, seed)
        make = partial(make_batch, bos_id=bos_id, pad_id=pad_id)
        super().__init__(pairs, plan, make, n_batches, len(plan))
