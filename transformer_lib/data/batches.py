"""Batches of sentence pairs: similar in length, bounded in tokens, repeatable.

Which sentences share a batch is planned first, as lists of row numbers; tensors are
made from the plan one batch at a time. A plan depends on its arguments alone, so an
interrupted run can continue: the same seed and epoch give the same plan.
"""

import operator
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from transformer_lib.model.checks import check_integers, check_kind, check_numbers

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
        ValueError: there is no sequence, or one of them is empty.
    """
    check_sequences(sequences)
    check_integers(pad_id=pad_id)
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
        ValueError: there is no pair, or a side is empty.
    """
    check_pairs(pairs)
    check_integers(bos_id=bos_id)
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
    check_order(order, lengths, max_tokens)
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
        ValueError: there is no pair, or one is longer than max_tokens alone.
    """
    check_lengths(lengths, max_tokens)
    check_epoch(seed, epoch)
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
    pairs: Sequence[tuple[Ids, Ids]],
    max_tokens: int,
    *,
    bos_id: int,
    pad_id: int,
    seed: int | None = None,
    epoch: int = 0,
) -> Iterator[Batch]:
    """Yield one epoch of batches: bucketed and shuffled, or in file order.

    Args:
        pairs: (source, target), both ending with <eos>.
        max_tokens: bound for rows times the longest side of a batch.
        bos_id: what the decoder reads first.
        pad_id: what fills the rest of a row.
        seed: the order of training; None keeps the order of the file.
        epoch: another order for every epoch under one seed.

    Raises:
        ValueError: there is no pair, a side is empty, or one exceeds max_tokens.
    """
    check_pairs(pairs)
    lengths = [(len(src), len(tgt)) for src, tgt in pairs]
    for rows in batch_plan(lengths, max_tokens, seed, epoch, bucket=seed is not None):
        yield make_batch([pairs[row] for row in rows], bos_id=bos_id, pad_id=pad_id)


def padding_share(
    plan: Sequence[Sequence[int]], lengths: Sequence[tuple[int, int]]
) -> float:
    """Return which share of all positions is padding, a fraction, both sides together.

    Args:
        plan: row numbers of each batch.
        lengths: source and target length of each pair.

    Raises:
        ValueError: there is no batch, one is empty or holds no token, or a row has no
            length.
    """
    check_kind(Sequence, plan=plan)
    if not plan:
        raise ValueError("a plan needs at least 1 batch, but got 0")
    for rows in plan:
        check_order(rows, lengths)
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
        max_len: most tokens of a side, <eos> counted.
        too_long: "refuse" raises and names the first; "skip" leaves such pairs out;
            "truncate" keeps the first max_len - 1 tokens and the last, <eos>.

    Returns:
        The pairs that fit, and the line numbers, from 1, of those that did not.

    Raises:
        ValueError: a pair is too long and none may be, nothing is left, max_len is
            below 2, or too_long is unknown.
    """
    check_limit(max_len, too_long)
    check_pairs(pairs)
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
            src, tgt = _truncated(src, max_len), _truncated(tgt, max_len)
        fitting.append((src, tgt))
    if not fitting:
        raise ValueError(f"none of {len(pairs)} pairs fits into max_len {max_len}")
    return fitting, lines


def _truncated(ids: list[int], max_len: int) -> list[int]:
    return ids if len(ids) <= max_len else [*ids[: max_len - 1], ids[-1]]


def check_sequences(sequences: Sequence[Ids]) -> None:
    """Refuse what makes no batch.

    Raises:
        ValueError: there is no sequence, or one of them is empty; which one.
    """
    if isinstance(sequences, str) or not isinstance(sequences, Collection):
        raise TypeError(f"sequences must be a list of lists of ids: {sequences!r:.80}")
    if len(sequences) == 0:
        raise ValueError("a batch needs at least 1 sequence, but got 0")
    for number, sequence in enumerate(sequences):
        check_sequence(f"sequence {number} of the batch", sequence)
        if len(sequence) == 0:
            raise ValueError(f"sequence {number} of the batch is empty")


def check_sequence(name: str, sequence: Ids) -> None:
    """Refuse what is no list of ids, and ids that are no integers of 64 bits.

    Raises:
        TypeError: naming the sequence.
        ValueError: an id takes more than 64 bits.
    """
    try:
        ids = list(map(operator.index, sequence)) if len(sequence) else [0]
    except (TypeError, IndexError):
        raise TypeError(f"{name} must be a list of ids, not {sequence!r:.80}") from None
    if min(ids) < -(2**63) or max(ids) >= 2**63:
        raise ValueError(f"{name} holds an id that does not fit into 64 bits")


def check_pairs(pairs: Sequence[tuple[Ids, Ids]]) -> None:
    """Refuse what are no pairs of sequences; a generator could be read only once.

    Raises:
        TypeError: pairs are no list, or one of them is no pair; which one.
    """
    if isinstance(pairs, str) or not isinstance(pairs, Collection):
        raise TypeError(f"pairs must be a list of pairs, not {pairs!r:.80}")
    for number, pair in enumerate(pairs, start=1):
        sides = isinstance(pair, Collection) and len(pair) == 2
        if not sides or not all(isinstance(side, Sequence) for side in pair):
            raise TypeError(
                f"pair {number} must be two lists of ids, a source and a target, not "
                f"{pair!r:.80}"
            )


def check_order(
    order: Sequence[int], lengths: Sequence[tuple[int, int]], max_tokens: int = 1
) -> None:
    """Refuse row numbers of which no batch can be made.

    Raises:
        ValueError: there is no row, or one has no length, or only empty sides.
        TypeError: a number is no integer.
    """
    check_integers(max_tokens=max_tokens)
    check_sequence("order", order)
    if len(order) == 0:
        raise ValueError("a batch needs at least 1 row, but got 0")
    if not 0 <= min(order) <= max(order) < len(lengths):
        raise ValueError(
            f"rows go from {min(order)} to {max(order)}, but there are lengths of "
            f"{len(lengths)}"
        )
    for row in order:
        check_sides(row + 1, lengths[row])


def check_sides(number: int, sides: tuple[int, int]) -> None:
    """Refuse lengths that no pair has; number counts from 1."""
    check_sequence(f"lengths of pair {number}", sides)
    if len(sides) != 2 or min(sides) < 0 or max(sides) < 1:
        raise ValueError(
            f"pair {number} must have two lengths, at least 0 and not both of them: "
            f"{sides!r:.80}"
        )


def check_epoch(seed: int | None, epoch: int) -> None:
    """Refuse what does not tell one order from another."""
    check_integers(epoch=epoch)
    if seed is not None:
        check_numbers(seed=seed)


def check_lengths(lengths: Sequence[tuple[int, int]], max_tokens: int) -> None:
    """Refuse pairs of which no plan can be made.

    Raises:
        ValueError: there is no pair, or one is longer than max_tokens alone; the first.
    """
    check_integers(max_tokens=max_tokens)
    check_kind(Sequence, lengths=lengths)
    if not lengths:
        raise ValueError("a plan needs at least 1 pair, but got 0")
    for number, sides in enumerate(lengths, start=1):
        if max(sides) > max_tokens:
            raise ValueError(
                f"pair {number} has {max(sides)} tokens, more than max_tokens "
                f"{max_tokens}; limit_lengths skips or truncates them"
            )


def check_limit(max_len: int, too_long: TooLong) -> None:
    """Refuse a length that leaves no token beside <eos>, and an unknown treatment."""
    if not isinstance(too_long, str) or too_long not in get_args(TooLong):
        raise ValueError(f"too_long is one of {get_args(TooLong)}, not {too_long!r}")
    check_integers(max_len=max_len)
    if max_len < 2:
        raise ValueError(f"max_len must be at least 2, not {max_len}")
