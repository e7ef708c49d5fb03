"""Learning to classify texts: ids, batches, loss, accuracy, the loop."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim import AdamW, Optimizer

from transformer_lib.data.batches import pad_batch
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.evaluation.accuracy import Accuracy
from transformer_lib.generation.greedy import without_dropout
from transformer_lib.model.classifier import EncoderClassifier
from transformer_lib.training.recipe import ClassifierTraining

Ids = Sequence[int]
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


def encode_texts(
    tokenizer: Tokenizer, texts: Sequence[str], max_len: int
) -> tuple[list[list[int]], list[int]]:
    """Turn texts into ids, from bos to eos, and cut those that are too long.

    Args:
        tokenizer: text to ids; a word it does not know becomes unk_id.
        texts: none of them empty.
        max_len: most tokens, bos and eos counted; of a longer text the beginning is
            kept, and eos put behind it.

    Returns:
        The ids, and the numbers, from 1, of the texts that were cut.

    Raises:
        ValueError: a text is empty, its number is named; or max_len is below 3.
    """
    if max_len < 3:
        raise ValueError(f"max_len must be at least 3 (bos, a token, eos): {max_len}")
    rows, cut = [], []
    for number, text in enumerate(texts, start=1):
        try:
            ids = tokenizer.encode(text, bos=True)
        except ValueError as error:
            raise ValueError(f"text {number}: {error}") from None
        if len(ids) > max_len:
            ids = [*ids[: max_len - 1], ids[-1]]
            cut.append(number)
        rows.append(ids)
    return rows, cut


def label_batches(
    rows: Sequence[tuple[Ids, int]],
    batch_size: int,
    pad_id: int,
    seed: int | None = None,
    epoch: int = 0,
) -> Iterator[LabelledBatch]:
    """Yield one epoch: every text once, texts of like length together.

    Args:
        rows: ids and label of each text.
        batch_size: texts in a batch; the last one may be smaller.
        pad_id: what fills the rest of a row.
        seed: the order of training; None keeps the order of the rows.
        epoch: another order for every epoch under one seed.

    Raises:
        ValueError: there is no text, one is empty, or batch_size is below 1.
    """
    if not rows or batch_size < 1:
        raise ValueError(f"{len(rows)} texts in batches of {batch_size}: at least 1")
    order = list(range(len(rows)))
    plan = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    if seed is not None:
        rng = random.Random(f"{seed} {epoch}")  # text seeds alike on every machine
        rng.shuffle(order)
        plan = []
        for start in range(0, len(order), BUCKET * batch_size):
            bucket = order[start : start + BUCKET * batch_size]
            bucket.sort(key=lambda row: len(rows[row][0]))
            plan += [
                bucket[i : i + batch_size] for i in range(0, len(bucket), batch_size)
            ]
        rng.shuffle(plan)
    for batch in plan:
        src = pad_batch([rows[row][0] for row in batch], pad_id)
        yield LabelledBatch(src, torch.tensor([rows[row][1] for row in batch]))


def label_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy of the right classes, a scalar, in nats.

    Args:
        logits: (batch, n_classes)
        labels: (batch,), from 0 to n_classes - 1.

    Raises:
        ValueError: sizes differ, or a label has no class; which one.
    """
    if labels.shape != logits.shape[:1]:
        raise ValueError(
            f"labels of shape {tuple(labels.shape)} do not belong to logits of shape "
            f"{tuple(logits.shape)}"
        )
    outside = (labels < 0) | (labels >= logits.size(1))
    if outside.any():
        raise ValueError(
            f"label {int(labels[outside][0])} is outside the {logits.size(1)} classes "
            f"0 to {logits.size(1) - 1}"
        )
    return F.cross_entropy(logits, labels)


@torch.no_grad()
def accuracy(
    model: EncoderClassifier, rows: Sequence[tuple[Ids, int]], batch_size: int = 256
) -> Accuracy:
    """Count the texts whose likeliest class is the right one, without dropout.

    Raises:
        ValueError: there is no text, or a label has no class.
    """
    device = model.head.weight.device
    n_right, nats = 0, 0.0
    with without_dropout(model):
        for batch in label_batches(rows, batch_size, model.config.pad_id):
            logits, labels = model(batch.src.to(device)), batch.labels.to(device)
            nats += label_loss(logits, labels).item() * len(labels)
            n_right += int((logits.argmax(dim=1) == labels).sum())
    return Accuracy(n_right, len(rows), nats / len(rows))


def make_optimizer(model: EncoderClassifier, training: ClassifierTraining) -> AdamW:
    """Return AdamW with a constant rate, as in the lecture's notebook."""
    return AdamW(
        model.parameters(), lr=training.rate, weight_decay=training.weight_decay
    )


def train_epoch(
    model: EncoderClassifier,
    optimizer: Optimizer,
    rows: Sequence[tuple[Ids, int]],
    training: ClassifierTraining,
    epoch: int,
) -> float:
    """Learn from every text once; return the mean loss, in nats per text.

    Order and dropout follow from the seed and the number of the epoch alone, and the
    random generators are left as they were found.
    """
    device = model.head.weight.device
    batches = label_batches(
        rows, training.batch_size, model.config.pad_id, training.seed, epoch
    )
    total = 0.0
    model.train()
    with torch.random.fork_rng():
        torch.manual_seed(training.seed * 1_000_003 + epoch)
        for batch in batches:
            optimizer.zero_grad()
            loss = label_loss(model(batch.src.to(device)), batch.labels.to(device))
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch.labels)
    return total / len(rows)


def train(
    model: EncoderClassifier,
    rows: Sequence[tuple[Ids, int]],
    training: ClassifierTraining,
) -> Iterator[float]:
    """Train a model in place, one epoch each time a loss is asked for.

    Yields:
        The mean loss of each epoch, in nats per text.
    """
    optimizer = make_optimizer(model, training)
    for epoch in range(training.epochs):
        yield train_epoch(model, optimizer, rows, training, epoch)
