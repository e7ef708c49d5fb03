"""Sampling: the next token is drawn from the model's probabilities, or sharper ones."""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_lib.generation.constraints import GenerationConfig, Hypothesis
from transformer_lib.generation.greedy import decode
from transformer_lib.generation.incremental import Decoding
from transformer_lib.model.transformer import Transformer


@dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """How logits become the probabilities that a token is drawn with.

    Attributes:
        temperature: what logits are divided by. Below 1, likely tokens get likelier;
            above, all get more alike.
        top_k: only so many of the likeliest tokens are left; all if None.
        top_p: only the likeliest tokens are left that together have at least this
            probability, the fewest of them (Holtzman et al. 2020).

    Raises:
        ValueError: a value with which nothing can be drawn.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what leaves nothing to draw, or everything unasked."""
        if not self.temperature > 0:
            raise ValueError(
                f"temperature must be above 0, not {self.temperature}: greedy search "
                "is what 0 would be"
            )
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")

    def probabilities(self, logits: Tensor) -> Tensor:
        """(n_rows, vocab_size) -> (n_rows, vocab_size): each row sums to 1.

        Temperature comes first, then top_k, then top_p, which counts what is left as 1.
        """
        logits = logits / self.temperature
        if self.top_k is not None and self.top_k < logits.size(1):
            logits = keep_top_k(logits, self.top_k)
        probabilities = logits.softmax(dim=1)
        if self.top_p < 1:
            probabilities = keep_top_p(probabilities, self.top_p)
        return probabilities


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Set all but the k highest logits to -inf: (n_rows, vocab_size)."""
    last = logits.topk(k).values[:, -1:]  # the lowest that stays
    return logits.masked_fill(logits < last, -torch.inf)


def keep_top_p(probabilities: Tensor, p: float) -> Tensor:
    """Keep the fewest tokens that have probability p together: (n_rows, vocab_size)."""
    sorted_, tokens = probabilities.sort(dim=1, descending=True)
    likelier = sorted_.cumsum(dim=1) - sorted_  # sum of all before each token
    kept = sorted_.masked_fill(likelier >= p, 0.0)
    probabilities = torch.zeros_like(kept).scatter(1, tokens, kept)
    return probabilities / probabilities.sum(dim=1, keepdim=True)


def sample(
    model: Transformer,
    src: Tensor,
    config: GenerationConfig,
    sampling: SamplingConfig,
    generator: torch.Generator,
    decoder: Decoding | None = None,
) -> list[Hypothesis]:
    """Sample one target for each sentence.

    Args:
        model: in either mode; it decodes without dropout.
        src: (batch, src_len), source ids, padded with pad_id on the right. A sentence
            that is repeated is translated as often, in different words.
        config: what the targets must keep to.
        sampling: the probabilities that tokens are drawn with.
        generator: the source of chance, on the device of the model; the same seed gives
            the same targets for the same batch.
        decoder: as for `greedy_decode`.

    Returns:
        One hypothesis for each sentence. Its log_prob is what the model itself gives
        it, however sharp the sampling.

    Raises:
        ValueError: as for `greedy_decode`.
    """

    def draw(log_probs: Tensor) -> Tensor:  # which are logits too, minus a constant
        probabilities = sampling.probabilities(log_probs)
        draws = torch.multinomial(probabilities, 1, generator=generator)
        return draws[:, 0]

    return decode(model, src, config, draw, decoder)
