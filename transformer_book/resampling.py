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

SEED = 12345  # sacrebleu's own: the same sentences are drawn


def ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """Count every run of n words."""
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
    spaced = Tokenizer13a()  # puts spaces around punctuation
    ours, theirs = spaced(hypothesis).split(), spaced(reference).split()
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
    matches, totals = counts[..., :4], counts[..., 4:8]
    length, wanted = counts[..., 8], counts[..., 9]
    precisions = matches / np.maximum(totals, 1)
    penalty = np.minimum(1, np.exp(1 - wanted / np.maximum(length, 1)))
    return 100 * penalty * precisions.prod(axis=-1) ** (1 / 4)


def draw(n_sentences: int, n_draws: int = 1000, seed: int = SEED) -> NDArray[np.int64]:
    """Return (n_draws, n_sentences) sentence numbers, drawn with replacement."""
    size = n_draws, n_sentences
    return default_rng(seed).choice(n_sentences, size=size)


def bootstrap(counts: NDArray, n_draws: int = 1000, seed: int = SEED) -> NDArray:
    """Return (n_draws,) BLEU scores of sentences drawn with replacement.

    Args:
        counts: (n_sentences, 10), a row of `bleu_counts` for each sentence.
        n_draws: how often a test of the same size is drawn.
        seed: of the draws.
    """
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
    """
    ours = bootstrap(first, n_draws, seed)
    theirs = bootstrap(second, n_draws, seed)  # the same draws
    return ours - theirs


def interval(values: ArrayLike) -> tuple[float, float]:
    """Return the bounds that leave out 2.5 % of the values on either side."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
