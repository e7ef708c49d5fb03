"""Losses: what the decoder reads, what it must predict, and how wrong it is.

A loss is a sum over all targets of a batch, its real tokens or its texts, in nats. The
training step divides it by their number, so that batches of any size can be added up.
"""

import math

import torch.nn.functional as F
from torch import Tensor

from transformer_lib.data.batches import Batch
from transformer_lib.data.texts import LabelledBatch
from transformer_lib.model.classifier import EncoderClassifier
from transformer_lib.model.transformer import Transformer
from transformer_lib.precision import at_least_float32


def split_target(target: Tensor) -> tuple[Tensor, Tensor]:
    """Split a target into what the decoder reads and what it must predict.

    Position i of the first is the token before position i of the second.

    Args:
        target: (batch, tgt_len + 1), rows of bos, words, eos, then padding.

    Returns:
        tgt_in: (batch, tgt_len), all but the last column. A row that ends early keeps
            its eos here; what the decoder predicts after it is padding, which the loss
            ignores.
        tgt_out: (batch, tgt_len), all but the first column.
    """
    return target[:, :-1], target[:, 1:]


def shift_right(tgt_out: Tensor, bos_id: int) -> Tensor:
    """Make the decoder's input from what it must predict, as the paper puts it.

    The same as `split_target` by another route, for targets stored without bos: every
    row moves one position to the right, its last token falls off, bos comes in.

    Args:
        tgt_out: (batch, tgt_len), rows of words, eos, then padding.
        bos_id: the token that starts every sentence. Fairseq puts its eos here.

    Returns:
        tgt_in: (batch, tgt_len)
    """
    tgt_in = tgt_out.roll(1, dims=1)  # the last column comes round to the front
    tgt_in[:, 0] = bos_id
    return tgt_in


def label_smoothed_loss(
    logits: Tensor, tgt_out: Tensor, pad_id: int, smoothing: float = 0.1
) -> Tensor:
    """Add up the cross-entropy of all real target tokens (section 5.4 of the paper).

    The model is asked for the right token with probability 1 - smoothing, and for any
    token at all, the right one included, with the rest in equal shares. It is a sum, so
    that the losses of several batches add up; divided by the number of real tokens it
    is `F.cross_entropy(..., ignore_index=pad_id, label_smoothing=smoothing)`.

    Args:
        logits: (..., tgt_vocab_size)
        tgt_out: (...), the ids to be predicted.
        pad_id: the id that the loss ignores, also one that no token has, like -100.
        smoothing: share of probability given away, at least 0 and below 1.

    Returns:
        A scalar, in nats.

    Raises:
        ValueError: shapes do not fit; `gather` would read a part of the logits.
    """
    if logits.shape[:-1] != tgt_out.shape:
        raise ValueError(
            f"logits {tuple(logits.shape)} do not fit tgt_out {tuple(tgt_out.shape)}"
        )
    real = tgt_out != pad_id
    log_probs = at_least_float32(logits).log_softmax(dim=-1)
    index = tgt_out.where(real, 0).unsqueeze(-1)  # (..., 1)
    right = log_probs.gather(-1, index).squeeze(-1)  # (...)
    nats = -(1 - smoothing) * right
    if smoothing:
        nats = nats - smoothing * log_probs.mean(dim=-1)
    return nats.where(real, 0.0).sum()


def smoothing_floor(vocab_size: int, smoothing: float) -> float:
    """Return the lowest loss a perfect model can have, in nats per token.

    It is the entropy of the smoothed target: a model that gives exactly these
    probabilities still pays for their uncertainty.

    Args:
        vocab_size: number of target tokens.
        smoothing: share of probability given away, at least 0 and below 1.
    """
    other = smoothing / vocab_size
    right = 1 - smoothing + other
    floor = -right * math.log(right)
    return floor - (vocab_size - 1) * other * math.log(other) if other else floor


def batch_loss(model: Transformer, batch: Batch, smoothing: float = 0.1) -> Tensor:
    """Add up the loss of a batch of sentence pairs, in nats.

    At every position the model reads the reference before it, not its own words, which
    is called teacher forcing. Padding adds nothing.

    Args:
        model: returns logits (batch, tgt_len, tgt_vocab_size).
        batch: sentence pairs.
        smoothing: of the labels.
    """
    pad_id = model.config.pad_id
    real = batch.tgt_out != pad_id
    logits = model(batch.src, batch.tgt_in)[real]  # (n_tokens, tgt_vocab_size)
    return label_smoothed_loss(logits, batch.tgt_out[real], pad_id, smoothing)


def label_loss(logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    """Return the cross-entropy of the right classes, a scalar, in nats.

    Args:
        logits: (batch, n_classes)
        labels: (batch,), from 0 to n_classes - 1.
        reduction: "mean" or "sum" over the batch.

    Raises:
        ValueError: a label is negative; PyTorch would pass over one that is -100.
    """
    if (labels < 0).any():
        n_classes = logits.size(-1)
        raise ValueError(
            f"label {int(labels.min())} is outside the {n_classes} classes 0 to "
            f"{n_classes - 1}"
        )
    return F.cross_entropy(logits, labels, reduction=reduction)


def text_loss(model: EncoderClassifier, batch: LabelledBatch) -> Tensor:
    """Add up the loss of a batch of labelled texts, in nats."""
    return label_loss(model(batch.src), batch.labels, reduction="sum")
