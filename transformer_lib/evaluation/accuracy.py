"""The share of right answers, and how sure a test of so many texts makes us of it."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from transformer_lib.data.texts import LabelledRows, make_labelled_batch
from transformer_lib.generation.greedy import without_dropout
from transformer_lib.model.classifier import EncoderClassifier

Z_95 = 1.959964  # standard deviations on either side that hold 95 % of a normal curve


@dataclass(frozen=True)
class Accuracy:
    """How many texts were classified correctly, and how sure that makes us.

    Attributes:
        n_right, n_texts: counts.
        nats: mean loss, in nats per text.
    """

    n_right: int
    n_texts: int
    nats: float = math.nan

    @property
    def value(self) -> float:
        """The share of right answers, a fraction."""
        return self.n_right / self.n_texts

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of `wilson_interval`."""
        return wilson_interval(self.n_right, self.n_texts)

    def __str__(self) -> str:
        low, high = (f"{100 * bound:.1f}" for bound in self.interval)
        return (
            f"{100 * self.value:.1f} % of {self.n_texts:,} right "
            f"(95 % interval {low} to {high})"
        )


def wilson_interval(n_right: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """Return the shares of right answers that this result is compatible with.

    All true shares p from which the one found is at most z standard deviations
    sqrt(p (1 - p) / n) away (Wilson 1927). Unlike the usual plus and minus, it stays
    between 0 and 1 and is honest near both ends.

    Args:
        n_right: right answers.
        n: all answers, at least 1.
        z: standard deviations; 1.96 for 95 %.
    """
    share = n_right / n
    center = share + z**2 / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = ((center + sign * half) / (1 + z**2 / n) for sign in (-1, 1))
    # Both ends are exact: rounding must not exclude the share that was found.
    return low if n_right else 0.0, high if n_right < n else 1.0


@torch.no_grad()
def accuracy(
    model: EncoderClassifier, rows: LabelledRows, batch_size: int = 256
) -> Accuracy:
    """Count the texts whose likeliest class is the right one, without dropout.

    Args:
        model: the classifier.
        rows: ids and label of each text.
        batch_size: texts in a batch.

    Raises:
        ValueError: a text is empty.
    """
    device = model.head.weight.device
    n_right, nats = 0, 0.0
    with without_dropout(model):
        for start in range(0, len(rows), batch_size):
            some = rows[start : start + batch_size]
            batch = make_labelled_batch(some, model.config.pad_id)
            logits, labels = model(batch.src.to(device)), batch.labels.to(device)
            nats += F.cross_entropy(logits, labels, reduction="sum").item()
            n_right += int((logits.argmax(dim=1) == labels).sum())
    return Accuracy(n_right, len(rows), nats / len(rows))
