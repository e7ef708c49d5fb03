"""Texts with a class each: ids, batches, and the stream of training steps."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_lib.data.batches import Ids, check_sequence, pad_batch
from transformer_lib.data.steps import BatchStream
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.model.checks import (
    check_integers,
    check_kind,
    check_tensors,
    check_texts,
)

LabelledRows = Sequence[tuple[Ids, int]]
BUCKET = 20  # batches among which texts are sorted by length


@dataclass(frozen=True)
class LabelledBatch:
    """Texts and the class of each.

    Attributes:
        src: (batch, src_len), ids, padded on the right.
        labels: (batch,), int64.
    """

    src: Tensor
    labels: Tensor

    @property
    def n_targets(self) -> int:
        """What the loss is the mean of: the number of texts."""
        return len(self.labels)

    def to(self, device: torch.device | str) -> "LabelledBatch":
        """Return the same batch on another device."""
        return LabelledBatch(self.src.to(device), self.labels.to(device))


def encode_texts(
    tokenizer: Tokenizer, texts: Sequence[str], max_len: int
) -> tuple[list[list[int]], list[int]]:
    """Turn texts into ids, from bos to eos, and truncate those that are too long.

    Args:
        tokenizer: text to ids; a word it does not know becomes unk_id.
        texts: none of them empty.
        max_len: most tokens, bos and eos counted; a longer text keeps its beginning,
            followed by eos.

    Returns:
        The ids, and the numbers, from 1, of the texts that were truncated.

    Raises:
        ValueError: a text is empty, its number is named; or max_len is below 3.
    """
    check_texts("texts", texts)
    check_integers(max_len=max_len)
    if max_len < 3:
        raise ValueError(f"max_len must be at least 3 (bos, a token, eos): {max_len}")
    rows, truncated = [], []
    for number, text in enumerate(texts, start=1):
        try:
            ids = tokenizer.encode(text, bos=True)
        except ValueError as error:
            raise ValueError(f"text {number}: {error}") from None
        if len(ids) > max_len:
            ids = [*ids[: max_len - 1], ids[-1]]
            truncated.append(number)
        rows.append(ids)
    return rows, truncated


def check_labels(labels: Tensor, logits: Tensor) -> None:
    """Refuse labels that don't belong to the logits of a batch.

    Args:
        labels: (batch,)
        logits: (batch, n_classes)

    Raises:
        ValueError: sizes differ, or a label has no class; which one.
    """
    check_tensors(labels=labels, logits=logits)
    if labels.dtype != torch.int64 or not logits.is_floating_point():
        raise TypeError(
            "labels must be torch.int64 and logits floating-point, not "
            f"{labels.dtype} and {logits.dtype}"
        )
    if logits.dim() != 2 or 0 in logits.shape:
        raise ValueError(
            f"logits must be (batch, n_classes), not {tuple(logits.shape)}"
        )
    if labels.shape != logits.shape[:1]:
        raise ValueError(
            f"labels of shape {tuple(labels.shape)} do not belong to logits of shape "
            f"{tuple(logits.shape)}"
        )
    if labels.device.type == "meta":
        return
    outside = (labels < 0) | (labels >= logits.size(1))
    if outside.any():
        raise ValueError(
            f"label {int(labels[outside][0])} is outside the {logits.size(1)} classes "
            f"0 to {logits.size(1) - 1}"
        )


def make_labelled_batch(rows: LabelledRows, pad_id: int) -> LabelledBatch:
    """Pad texts into a tensor.

    Args:
        rows: ids and label of each text.
        pad_id: what fills the rest of a row.

    Raises:
        ValueError: there is no text, or one is empty.
    """
    check_labelled(rows)
    src = pad_batch([ids for ids, _ in rows], pad_id)
    return LabelledBatch(src, torch.tensor([label for _, label in rows]))


def check_labelled(rows: LabelledRows) -> None:
    """Refuse what are no pairs of ids and a label.

    Raises:
        TypeError: rows are no list, or one of them is no such pair; which one.
    """
    check_kind(Sequence, rows=rows)
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Sequence) or len(row) != 2 or isinstance(row, str):
            raise TypeError(f"row {number} must be ids and a label, not {row!r:.80}")
        check_sequence(f"label of row {number}", [row[1]])


class TextSteps(BatchStream[LabelledBatch]):
    """Steps of one batch each; in an epoch, every text occurs once.

    Texts of similar lengths share a batch, in an order that follows from the seed and
    the epoch.

    Args:
        rows: ids and label of each text.
        batch_size: texts in a batch; the last one of an epoch may be smaller.
        seed: decides the order.
        pad_id: what fills the rest of a row.

    Attributes:
        per_epoch: number of steps in an epoch.

    Raises:
        ValueError: there is no text, or batch_size is below 1.
    """

    def __init__(
        self, rows: LabelledRows, batch_size: int, seed: int, *, pad_id: int
    ) -> None:
        check_integers(batch_size=batch_size, seed=seed, pad_id=pad_id)
        check_labelled(rows)
        if not rows or batch_size < 1:
            raise ValueError(
                f"{len(rows)} texts in batches of {batch_size}: at least 1"
            )
        self.per_epoch = -(-len(rows) // batch_size)
        lengths = [len(ids) for ids, _ in rows]
        super().__init__(
            lambda epoch: _plan(lengths, batch_size, seed, epoch),
            lambda batch: make_labelled_batch([rows[row] for row in batch], pad_id),
            n_batches=1,
        )


def _plan(
    lengths: Sequence[int], batch_size: int, seed: int, epoch: int
) -> list[list[int]]:
    """Return the row numbers of each batch of an epoch."""
    rng = random.Random(f"{seed} {epoch}")  # text seeds alike on every machine
    order = list(range(len(lengths)))
    rng.shuffle(order)
    plan: list[list[int]] = []
    for bucket in _chunks(order, BUCKET * batch_size):
        bucket.sort(key=lengths.__getitem__)
        plan += _chunks(bucket, batch_size)
    rng.shuffle(plan)
    return plan


def _chunks(rows: list[int], size: int) -> Iterator[list[int]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
