"""Texts with a class each: ids, batches, and the stream of training steps."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from transformer_lib.data.batches import Ids, pad_batch, truncate
from transformer_lib.data.examples import require_texts
from transformer_lib.data.steps import BatchStream
from transformer_lib.data.tokenizer import Tokenizer

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
        max_len: most tokens, bos and eos counted, at least 3; a longer text keeps its
            beginning, followed by eos.

    Returns:
        The ids, and the numbers, from 1, of the texts that were truncated.

    Raises:
        TypeError: texts is a single text.
        ValueError: a text is empty; its number is named.
    """
    require_texts("texts", texts)
    rows, truncated = [], []
    for number, text in enumerate(texts, start=1):
        try:
            ids = tokenizer.encode(text, bos=True)
        except ValueError as error:
            raise ValueError(f"text {number}: {error}") from None
        if len(ids) > max_len:
            truncated.append(number)
        rows.append(truncate(ids, max_len))
    return rows, truncated


def make_labelled_batch(rows: LabelledRows, pad_id: int) -> LabelledBatch:
    """Pad texts into a tensor.

    Args:
        rows: ids and label of each text.
        pad_id: what fills the rest of a row.

    Raises:
        ValueError: a text is empty.
    """
    src = pad_batch([ids for ids, _ in rows], pad_id)
    return LabelledBatch(src, torch.tensor([label for _, label in rows]))


class TextSteps(BatchStream):
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
    """

    def __init__(
        self, rows: LabelledRows, batch_size: int, seed: int, *, pad_id: int
    ) -> None:
        per_epoch = -(-len(rows) // batch_size)
        lengths = [len(ids) for ids, _ in rows]
        plan = partial(_plan, lengths, batch_size, seed)
        make = partial(make_labelled_batch, pad_id=pad_id)
        super().__init__(rows, plan, make, n_batches=1, per_epoch=per_epoch)


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
