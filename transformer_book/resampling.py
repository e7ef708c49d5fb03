"""Scores as counts that add up, and how far they move when other sentences are drawn.

BLEU's counts of a sentence are ten whole numbers; those of a corpus are their sum. So
the score of any draw of sentences costs one addition, and a thousand draws take a
second. `draw_scores` does the same for any score of sacrebleu.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import comb

import numpy as np
from numpy.random import default_rng
from numpy.typing import ArrayLike, NDArray
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

SEED = 12345  # sacrebleu's own: the same sentences are drawn
FEWEST = 6  # values: the whole range of fewer holds the median in less than 95 %


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


def draw_scores(
    metric: BLEU | CHRF,
    translations: Sequence[str],
    references: Sequence[str],
    groups: Iterable[Sequence[int]] | None = None,
    n_draws: int = 1000,
    seed: int = SEED,
) -> NDArray:
    """Return (n_draws,) scores of sentences, or of whole groups of them, drawn anew.

    Two systems that translated the same sentences get the same draws, so that their
    scores can be subtracted.

    Args:
        metric: one of sacrebleu's.
        translations: of one system, as plain text.
        references: what a person wrote, one for each.
        groups: numbers of the sentences of each group; None draws single sentences.
        n_draws: how often a test of as many sentences, or groups, is drawn.
        seed: of the draws.
    """
    rows = metric._extract_corpus_statistics([*translations], [[*references]])
    counts = np.array(rows)
    if groups is not None:
        counts = np.array([counts[list(group)].sum(axis=0) for group in groups])
    sums = counts[draw(len(counts), n_draws, seed)].sum(axis=1)
    return np.array([metric._compute_score_from_stats([*row]).score for row in sums])


def interval(values: ArrayLike) -> tuple[float, float]:
    """Return the bounds that leave out 2.5 % of the values on either side."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def median_interval(values: ArrayLike) -> tuple[float, float, float]:
    """Return the median of measured values, and the ends of its 95 % interval.

    The ends are values themselves: between them lies the median of very many
    measurements, by the binomial distribution of how many of these are below it.

    Args:
        values: (n,), each measured by itself.

    Raises:
        ValueError: fewer than FEWEST values.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    n = len(ordered)
    if n < FEWEST:
        raise ValueError(
            f"an interval of the median needs {FEWEST} values at least, not {n}"
        )
    below, cut = 1 / 2**n, 0
    while below + comb(n, cut + 1) / 2**n <= 0.025:
        cut += 1
        below += comb(n, cut) / 2**n
    return float(np.median(ordered)), float(ordered[cut]), float(ordered[n - 1 - cut])
