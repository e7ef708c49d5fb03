"""Sampling: the next token is drawn from the model's probabilities, or sharper ones."""

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_lib.generation.constraints import GenerationConfig, Hypothesis
from transformer_lib.generation.greedy import decode
from transformer_lib.model.checks import (
    check_integers,
    check_kind,
    check_numbers,
    check_tensors,
)
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
        """Refuse what leaves nothing to draw."""
        check_sampling(self)

    def probabilities(self, logits: Tensor) -> Tensor:
        """(n_rows, vocab_size) -> (n_rows, vocab_size): each row sums to 1.

        Temperature comes first, then top_k, then top_p, which counts what is left as 1.
        """
        check_scores(logits)
        logits = logits / self.temperature
        if self.top_k is not None and self.top_k < logits.size(1):
            logits = keep_top_k(logits, self.top_k)
        probabilities = logits.softmax(dim=1)
        if self.top_p < 1:
            probabilities = keep_top_p(probabilities, self.top_p)
        return probabilities


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Set all but the k highest logits to -inf: (n_rows, vocab_size)."""
    check_rows(logits=logits)
    check_top(k, logits.size(1))
    last = logits.topk(k).values[:, -1:]  # the lowest that stays
    return logits.masked_fill(logits < last, -torch.inf)


def keep_top_p(probabilities: Tensor, p: float) -> Tensor:
    """Keep the fewest tokens that have probability p together: (n_rows, vocab_size)."""
    check_rows(probabilities=probabilities)
    check_share(p)
    sorted_, tokens = probabilities.sort(dim=1, descending=True)
    likelier = sorted_.cumsum(dim=1) - sorted_  # sum of all before each token
    kept = sorted_.masked_fill(likelier >= p, 0.0)
    probabilities = torch.zeros_like(kept).scatter(1, tokens, kept)
    return probabilities / probabilities.sum(dim=1, keepdim=True)


def check_sampling(config: SamplingConfig) -> None:
    """Refuse values with which nothing can be drawn."""
    check_numbers(temperature=config.temperature, top_p=config.top_p)
    if config.top_k is not None:
        check_integers(top_k=config.top_k)
    if not 0 < config.temperature < 1e18:  # beyond, nothing is left of any logit
        raise ValueError(
            f"temperature must be above 0 and finite, not {config.temperature}; "
            "greedy_decode is what temperature 0 would be"
        )
    if config.top_k is not None and config.top_k < 1:
        raise ValueError(f"top_k must be at least 1, not {config.top_k}")
    if not 0 < config.top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, not {config.top_p}")


def check_scores(logits: Tensor) -> None:
    """Refuse scores that make no probabilities: the best of a row must be a number.

    Raises:
        ValueError: they are not (n_rows, vocab_size), or a row holds NaN or infinity,
            or nothing that may be drawn.
        TypeError: they are no floating-point numbers.
    """
    check_rows(logits=logits)
    if logits.device.type != "meta" and not logits.amax(dim=1).isfinite().all():
        raise ValueError("a row of logits has no largest number: NaN or infinite")


def check_rows(**scores: Tensor) -> None:
    """Refuse what is no table of numbers, a row for each target."""
    check_tensors(**scores)
    for name, table in scores.items():
        if not table.is_floating_point():
            raise TypeError(f"{name} must be floating-point numbers, not {table.dtype}")
        if table.dim() != 2 or 0 in table.shape:
            raise ValueError(
                f"{name} must be (n_rows, vocab_size), not {tuple(table.shape)}"
            )


def check_share(p: float) -> None:
    """Refuse a probability that no token has, or more than all have together."""
    check_numbers(p=p)
    if not 0 < p <= 1:
        raise ValueError(f"p must be above 0 and at most 1, not {p}")


def check_top(k: int, n_tokens: int) -> None:
    """Refuse to keep no token, or more than there are."""
    check_integers(k=k)
    if not 1 <= k <= n_tokens:
        raise ValueError(f"k must be from 1 to {n_tokens}, not {k}")


def sample(
    model: Transformer,
    src: Tensor,
    config: GenerationConfig,
    sampling: SamplingConfig,
    generator: torch.Generator,
) -> list[Hypothesis]:
    """Sample one target for each sentence.

    Args:
        model: in either mode; it decodes without dropout.
        src: (batch, src_len), source ids, padded with the config's pad_id. A sentence
            that is repeated is translated as often, in different words.
        config: what the targets must keep to.
        sampling: the probabilities that tokens are drawn with.
        generator: the source of chance, on the device of the model; the same seed gives
            the same targets for the same batch.

    Returns:
        One hypothesis for each sentence. Its log_prob is what the model itself gives
        it, however sharp the sampling.

    Raises:
        ValueError: as for `greedy_decode`.
        TypeError: a config or the generator is of another kind.
    """
    check_kind(SamplingConfig, sampling=sampling)
    check_kind(torch.Generator, generator=generator)

    def draw(log_probs: Tensor) -> Tensor:  # which are logits too, minus a constant
        probabilities = sampling.probabilities(log_probs)
        draws = torch.multinomial(probabilities, 1, generator=generator)
        return draws[:, 0]

    return decode(model, src, config, draw)
