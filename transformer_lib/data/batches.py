"""Batches of sentence pairs: similar in length, bounded in tokens, repeatable.

Which sentences share a batch is planned first, as lists of row numbers; tensors are
made from the plan one batch at a time. A plan depends on its arguments alone, so an
interrupted run can continue: the same seed and epoch give the same plan.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

Ids = Sequence[int]
TooLong = Literal["refuse", "skip", "truncate"]


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as the model reads them and as the loss scores them.

    Attributes:
        src: (batch, src_len), source ids with <eos>, padded on the right.
        tgt_in: (batch, tgt_len), <bos> and the target: what the decoder reads.
        tgt_out: (batch, tgt_len), the target and <eos>: what it must predict there.
        n_tokens: real tokens of tgt_out, padding not counted.
    """

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    n_tokens: int

    @property
    def n_targets(self) -> int:
        """What the loss is the mean of: the number of real target tokens."""
        return self.n_tokens

    def to(self, device: torch.device | str) -> "Batch":
        """Return the same batch on another device."""
        moved = (t.to(device) for t in (self.src, self.tgt_in, self.tgt_out))
        return Batch(*moved, self.n_tokens)


def pad_batch(sequences: Sequence[Ids], pad_id: int) -> Tensor:
    """Put sequences of different length into one tensor, padded on the right.

    Args:
        sequences: lists of ids, none of them empty.
        pad_id: what fills the rest of a row.

    Returns:
        (batch, longest), int64.

    Raises:
        ValueError: a sequence is empty: its row would be padding alone.
    """
    for number, ids in enumerate(sequences):
        if len(ids) == 0:
            raise ValueError(f"sequence {number} of the batch is empty")
    longest = max(len(ids) for ids in sequences)
    rows = [list(ids) + [pad_id] * (longest - len(ids)) for ids in sequences]
    return torch.tensor(rows)


def make_batch(pairs: Sequence[tuple[Ids, Ids]], *, bos_id: int, pad_id: int) -> Batch:
    """Pad pairs of ids into tensors and shift the targets by one.

    Args:
        pairs: (source, target), both ending with <eos>.
        bos_id: what the decoder reads first.
        pad_id: what fills the rest of a row.

    Raises:
        ValueError: a side is empty.
    """
    src = pad_batch([src for src, _ in pairs], pad_id)
    tgt_in = pad_batch([[bos_id, *tgt[:-1]] for _, tgt in pairs], pad_id)
    tgt_out = pad_batch([tgt for _, tgt in pairs], pad_id)
    n_tokens = sum(len(tgt) for _, tgt in pairs)
    return Batch(src, tgt_in, tgt_out, n_tokens)


def fill_batches(
    order: Sequence[int], lengths: Sequence[tuple[int, int]], max_tokens: int
) -> list[list[int]]:
    """Deal rows into batches, in their order; a full batch is followed by a new one.

    Args:
        order: row numbers, at least one.
        lengths: source and target length of each row, none above max_tokens.
        max_tokens: bound for rows times the longest side.

    Returns:
        Row numbers of each batch.
    """
    plan: list[list[int]] = [[]]
    longest = 0
    for row in order:
        longest = max(longest, *lengths[row])
        if (len(plan[-1]) + 1) * longest > max_tokens:
            plan.append([])
            longest = max(lengths[row])
        plan[-1].append(row)
    return plan


def batch_plan(
    lengths: Sequence[tuple[int, int]],
    max_tokens: int,
    seed: int | None = None,
    epoch: int = 0,
    bucket: bool = True,
) -> list[list[int]]:
    """Say which pairs share a batch; every pair is in exactly one.

    Args:
        lengths: source and target length of each pair, in tokens.
        max_tokens: bound for rows times the longest side, padding counted: what a
            batch needs of memory.
        seed: shuffles pairs of equal length and the order of batches; None for none.
        epoch: another order for every epoch under one seed.
        bucket: put pairs of similar length together. Without it, pairs are taken as
            they come, and much of a batch is padding.

    Returns:
        Row numbers of each batch, none of them empty.

    Raises:
        ValueError: a pair is longer than max_tokens alone; the first.
    """
    for number, sides in enumerate(lengths, start=1):
        if max(sides) > max_tokens:
            raise ValueError(
                f"pair {number} has {max(sides)} tokens, more than max_tokens "
                f"{max_tokens}; limit_lengths skips or truncates them"
            )
    rng = random.Random(f"{seed} {epoch}")  # text seeds alike on every machine
    order = list(range(len(lengths)))
    if seed is not None:
        rng.shuffle(order)
    if bucket:  # a stable sort: pairs of equal length stay shuffled
        order.sort(key=lambda row: (max(lengths[row]), min(lengths[row])))
    plan = fill_batches(order, lengths, max_tokens)
    if seed is not None:
        rng.shuffle(plan)
    return plan


def token_batches(
    pairs: Sequence[tuple[Ids, Ids]], max_tokens: int, *, bos_id: int, pad_id: int
) -> Iterator[Batch]:
    """Yield batches in the order of the file, to measure on; `Steps` are to train on.

    Args:
        pairs: (source, target), both ending with <eos>.
        max_tokens: bound for rows times the longest side of a batch.
        bos_id: what the decoder reads first.
        pad_id: what fills the rest of a row.

    Raises:
        ValueError: a side is empty, or longer than max_tokens.
    """
    lengths = [(len(src), len(tgt)) for src, tgt in pairs]
    for rows in batch_plan(lengths, max_tokens, bucket=False):
        yield make_batch([pairs[row] for row in rows], bos_id=bos_id, pad_id=pad_id)


def padding_share(
    plan: Sequence[Sequence[int]], lengths: Sequence[tuple[int, int]]
) -> float:
    """Return which share of all positions is padding, a fraction, both sides together.

    Args:
        plan: row numbers of each batch.
        lengths: source and target length of each pair.
    """
    real = padded = 0
    for rows in plan:
        for side in (0, 1):
            sizes = [lengths[row][side] for row in rows]
            real += sum(sizes)
            padded += len(sizes) * max(sizes)
    return 1 - real / padded


def limit_lengths(
    pairs: Sequence[tuple[list[int], list[int]]],
    max_len: int,
    too_long: TooLong = "refuse",
) -> tuple[list[tuple[list[int], list[int]]], list[int]]:
    """Deal with sentences that are longer than the model allows.

    Args:
        pairs: (source, target), both ending with <eos>, in the order of the file.
        max_len: most tokens of a side, <eos> counted; at least 2.
        too_long: "refuse" raises and names the first; "skip" leaves such pairs out;
            "truncate" keeps the first max_len - 1 tokens and the last, <eos>.

    Returns:
        The pairs that fit, and the line numbers, from 1, of those that did not.

    Raises:
        ValueError: a pair is too long and none may be, nothing is left, or too_long
            is unknown.
    """
    if too_long not in get_args(TooLong):
        raise ValueError(f"too_long is one of {get_args(TooLong)}, not {too_long!r}")
    fitting, lines = [], []
    for line, (src, tgt) in enumerate(pairs, start=1):
        if max(len(src), len(tgt)) > max_len:
            if too_long == "refuse":
                name, ids = ("source", src) if len(src) > max_len else ("target", tgt)
                raise ValueError(
                    f"line {line}: the {name} has {len(ids)} tokens, more than max_len "
                    f"{max_len}; skip or truncate it"
                )
            lines.append(line)
            if too_long == "skip":
                continue
            src, tgt = truncate(src, max_len), truncate(tgt, max_len)
        fitting.append((src, tgt))
    if not fitting:
        raise ValueError(f"none of {len(pairs)} pairs fits into max_len {max_len}")
    return fitting, lines


def truncate(ids: list[int], max_len: int) -> list[int]:
    """Keep the first max_len - 1 tokens and the last, <eos>, of a longer sentence."""
    return ids if len(ids) <= max_len else [*ids[: max_len - 1], ids[-1]]
