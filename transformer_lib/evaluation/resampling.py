"""BLEU as counts that add up, and how far it moves when other sentences are drawn.

The counts of a sentence are ten whole numbers; those of a corpus are their sum. So the
score of any draw of sentences costs one addition, and a thousand draws take a second.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.random import default_rng
from numpy.typing import ArrayLike, NDArray
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from transformer_lib.model.checks import (
    check_integers,
    check_kind,
    check_sizes,
    check_texts,
)

SEED = 12345  # sacrebleu's own: the same sentences are drawn


def ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """Count every run of n words."""
    check_words(words, n)
    starts = range(len(words) - n + 1)
    return Counter(tuple(words[i : i + n]) for i in starts)


def bleu_counts(hypothesis: str, reference: str) -> NDArray[np.int64]:
    """Count what BLEU needs to know of one sentence.

    Args:
        hypothesis: a translation, as plain text.
        reference: what a person wrote.

    Returns:
        (10,): clipped matches for n = 1 to 4, n-grams of the hypothesis likewise, and
        both lengths in words.
    """
    check_kind(str, hypothesis=hypothesis, reference=reference)
    split = Tokenizer13a()  # puts spaces around punctuation
    ours, theirs = split(hypothesis).split(), split(reference).split()
    matches, totals = [], []
    for n in 1, 2, 3, 4:
        found = ngrams(ours, n)
        matches.append((found & ngrams(theirs, n)).total())
        totals.append(found.total())
    return np.array([*matches, *totals, len(ours), len(theirs)])


def bleu_from_counts(counts: NDArray) -> NDArray | float:
    """Return BLEU, from 0 to 100 and without smoothing, of summed counts.

    Args:
        counts: (..., 10), sums of what `bleu_counts` returns.
    """
    check_counts(counts)
    matches, totals = counts[..., :4], counts[..., 4:8]
    length, wanted = counts[..., 8], counts[..., 9]
    precisions = matches / np.maximum(totals, 1)
    penalty = np.minimum(1, np.exp(1 - wanted / np.maximum(length, 1)))
    return 100 * penalty * precisions.prod(axis=-1) ** (1 / 4)


def draw(n_sentences: int, n_draws: int = 1000, seed: int = SEED) -> NDArray[np.int64]:
    """Return (n_draws, n_sentences) sentence numbers, drawn with replacement."""
    check_sizes(n_draws=n_draws, n_sentences=n_sentences)
    check_integers(seed=seed)
    size = n_draws, n_sentences
    return default_rng(seed).choice(n_sentences, size=size)


def bootstrap(counts: NDArray, n_draws: int = 1000, seed: int = SEED) -> NDArray:
    """Return (n_draws,) BLEU scores of sentences drawn with replacement.

    Args:
        counts: (n_sentences, 10), a row of `bleu_counts` for each sentence.
        n_draws: how often a test of the same size is drawn.
        seed: of the draws.
    """
    check_counts(counts)
    draws = draw(len(counts), n_draws, seed)
    return bleu_from_counts(counts[draws].sum(axis=1))


def paired_bootstrap(
    first: NDArray, second: NDArray, n_draws: int = 1000, seed: int = SEED
) -> NDArray:
    """Return (n_draws,) differences in BLEU, both systems scored on the same draws.

    Args:
        first: (n_sentences, 10), the counts of one system.
        second: (n_sentences, 10), those of another on the same sentences.
        n_draws: how often a test of the same size is drawn.
        seed: of the draws.

    Raises:
        ValueError: the systems have translated different numbers of sentences.
    """
    check_same_sentences(first, second)
    ours = bootstrap(first, n_draws, seed)
    theirs = bootstrap(second, n_draws, seed)  # the same draws
    return ours - theirs


def interval(values: ArrayLike) -> tuple[float, float]:
    """Return the bounds that leave out 2.5 % of the values on either side.

    Raises:
        ValueError: there is no value, or one is not finite.
    """
    check_values("values", values)
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def check_words(words: Sequence[str], n: int) -> None:
    """Refuse runs of no word, and a text that was not split."""
    check_texts("words", words)
    check_sizes(n=n)


def check_counts(counts: NDArray) -> None:
    """Refuse what `bleu_counts` does not return, nor sums of it.

    Raises:
        TypeError: it is no array of numbers.
        ValueError: it is not (..., 10), or a count is negative or no number.
    """
    check_kind(np.ndarray, counts=counts)
    if counts.dtype.kind not in "biuf":
        raise TypeError(f"counts must be numbers, not {counts.dtype}")
    if counts.shape[-1:] != (10,) or not counts.size:
        raise ValueError(f"counts must be (..., 10), not {counts.shape}")
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise ValueError("a count is negative, infinite or NaN")


def check_values(name: str, values: ArrayLike) -> None:
    """Refuse no values, and values that can't be put in order.

    Raises:
        TypeError: they are no list of numbers.
        ValueError: there is none, or one is not finite.
    """
    if getattr(values, "requires_grad", False):
        raise TypeError(f"{name} carry a gradient: give their detach()")
    array = np.asarray(values)
    if not array.size:
        raise ValueError(f"{name} must be at least 1 number, but got 0")
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a list of numbers, not {values!r:.80}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: number {np.isfinite(array).argmin()} is not finite")


def check_same_sentences(first: NDArray, second: NDArray) -> None:
    """Refuse counts that can't belong to the same sentences.

    Raises:
        ValueError: there are more of one than of the other.
    """
    check_counts(first)
    check_counts(second)
    if len(first) != len(second):
        raise ValueError(
            f"counts of {len(first)} and of {len(second)} sentences: a paired test "
            "needs two translations of the same ones"
        )
