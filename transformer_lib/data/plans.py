"""Plans of batches for millions of pairs: those of `batch_plan`, made on arrays."""

import random
from collections.abc import Callable, Iterator

import numpy as np

CHUNK = 1 << 16  # rows that are sorted at a time


class BatchPlan:
    """What `batch_plan` says of every epoch, in 8 bytes a pair instead of hundreds.

    Pairs are shuffled and then sorted by their lengths. So the lengths come in the same
    order in every epoch, and batches are cut at the same places: these are found once.

    Args:
        lengths: (n_pairs, 2), source and target length of each pair, in tokens.
        max_tokens: bound for rows times the longest side of a batch.
        seed: decides the order.

    Raises:
        ValueError: a pair is longer than max_tokens alone; the first.
    """

    def __init__(self, lengths: np.ndarray, max_tokens: int, seed: int) -> None:
        self._lengths, self._seed = lengths, seed
        longest = int(lengths.max(initial=0))
        if longest > max_tokens:
            row = int(np.argmax(lengths.max(axis=1) > max_tokens))
            raise ValueError(
                f"pair {row + 1} has {lengths[row].max()} tokens, more than max_tokens "
                f"{max_tokens}; limit_lengths skips or truncates them"
            )
        # For each length: how many pairs have it as their shorter, and longer, side.
        self._n_short = np.zeros(longest + 1, dtype=np.int64)
        self._n_long = np.zeros(longest + 1, dtype=np.int64)
        for first in range(0, len(lengths), CHUNK):
            some = lengths[first : first + CHUNK].T
            self._n_short += np.bincount(np.minimum(*some), minlength=longest + 1)
            self._n_long += np.bincount(np.maximum(*some), minlength=longest + 1)
        self._starts = cut(self._n_long.tolist(), max_tokens)
        self._epoch, self._made = -1, ()

    def __len__(self) -> int:
        return len(self._starts)

    def __call__(self, epoch: int) -> Iterator[list[int]]:
        """Yield the row numbers of each batch of an epoch, from 0."""
        if epoch != self._epoch:
            self._epoch, self._made = -1, ()  # makes room
            self._epoch, self._made = epoch, self._make(epoch)
        order, numbers = self._made
        ends = [*self._starts[1:], len(order)]
        for number in numbers:
            yield order[self._starts[number] : ends[number]].tolist()

    def _make(self, epoch: int) -> tuple[np.ndarray, list[int]]:
        """Return all rows, shuffled and then sorted, and the order of batches."""
        rng = random.Random(f"{self._seed} {epoch}")  # text seeds alike on any machine
        order = np.arange(len(self._lengths), dtype=np.int32)
        rng.shuffle(memoryview(order))
        order = sort_rows(order, self._lengths, np.minimum, self._n_short)
        order = sort_rows(order, self._lengths, np.maximum, self._n_long)
        numbers = list(range(len(self)))
        rng.shuffle(numbers)
        return order, numbers


def cut(n_long: list[int], max_tokens: int) -> list[int]:
    """Say where each batch begins among pairs sorted by their longer sides.

    It is where `fill_batches` begins one: before the pair that would not fit any more.

    Args:
        n_long: how many pairs have each length as their longer side.
        max_tokens: bound for rows times the longest side.
    """
    starts, passed = [0], 0
    for length, n in enumerate(n_long):
        end = passed + n
        # The first pair that has no place left, if it is as long as this.
        while n and (full := starts[-1] + max_tokens // max(length, 1)) < end:
            starts.append(max(full, passed))
        passed = end
    return starts


def sort_rows(
    order: np.ndarray, lengths: np.ndarray, side: Callable, counts: np.ndarray
) -> np.ndarray:
    """Sort rows by one of their lengths; those of equal length stay in their order.

    This is a counting sort. How many rows have each length says where they go, so that
    a chunk of rows can be put in place at a time, and nothing else is in memory.

    Args:
        order: (n_pairs,), row numbers.
        lengths: (n_pairs, 2), source and target length of each row.
        side: np.minimum to sort by the shorter side, np.maximum by the longer.
        counts: how many rows have each length.

    Returns:
        (n_pairs,), row numbers.
    """
    places = np.cumsum(counts) - counts  # of each length, where its next row goes
    result = np.empty_like(order)
    for first in range(0, len(order), CHUNK):
        rows = order[first : first + CHUNK]
        keys = side(*lengths[rows].T)
        by_length = np.argsort(keys, kind="stable")
        rows, keys = rows[by_length], keys[by_length]
        n_here = np.bincount(keys, minlength=len(counts))
        before = np.cumsum(n_here) - n_here  # shorter rows in this chunk
        result[places[keys] + np.arange(len(rows)) - before[keys]] = rows
        places += n_here
    return result
