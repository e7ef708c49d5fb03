"""Graders of the chapter on quality."""

import math
from collections import Counter

import numpy as np

from transformer_book.exercises.grading import grader


def _ngrams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


_PAIRS = [
    ("das das das das", "das Buch ist das beste", 1),
    ("der Hund sieht den Hund", "der Hund sieht den großen alten Hund", 2),
    ("ja ja ja ja", "ja ja ja", 2),
    ("die alte Frau singt", "die Frau", 3),
]


@grader(
    cases=lambda: [(mine.split(), theirs.split(), n) for mine, theirs, n in _PAIRS],
    right="Each n-gram counts at most as often as the reference has it.",
)
def check_clipped(hypothesis, reference, n):
    """The words of a translation and of a reference, n -> (clipped matches, total)."""
    mine, theirs = _ngrams(hypothesis, n), _ngrams(reference, n)
    return (mine & theirs).total(), mine.total()


def _not_clipped(hypothesis, reference, n):
    mine, theirs = _ngrams(hypothesis, n), _ngrams(reference, n)
    return sum(mine[ngram] for ngram in mine & theirs), mine.total()


def _count_sets(hypothesis, reference, n):
    mine, theirs = {*_ngrams(hypothesis, n)}, {*_ngrams(reference, n)}
    return len(mine & theirs), len(mine)


check_clipped.mistake(
    "not clipped: no n-gram counts more often than the reference has it.", _not_clipped
)
check_clipped.mistake("a set forgets how often; count every occurrence.", _count_sets)
check_clipped.mistake(
    "the total is that of the reference: this is recall, not precision.",
    lambda hypothesis, reference, n: check_clipped.solve(reference, hypothesis, n),
)


@grader(
    cases=lambda: [
        ([9, 7, 5, 3], [10, 9, 8, 7], 10, 10),
        ([9, 7, 5, 3], [16, 15, 14, 13], 16, 11),
        ([14, 11, 8, 6], [15, 13, 11, 9], 15, 17),
        ([5, 2, 0, 0], [8, 7, 6, 5], 8, 8),
    ],
    right="The geometric mean, and a penalty only for what is too short.",
)
def check_bleu(matches, totals, c, r):
    """BLEU from 0 to 100.

    matches and totals for n = 1 to 4, the lengths of all translations and of all
    references -> a number.
    """
    precisions = np.divide(matches, totals)
    penalty = min(1.0, math.exp(1 - r / c))
    return float(100 * penalty * np.prod(precisions) ** (1 / 4))


def _arithmetic_mean(matches, totals, c, r):
    penalty = min(1.0, math.exp(1 - r / c))
    return 100 * penalty * np.mean(np.divide(matches, totals))


def _product(matches, totals, c, r):
    penalty = min(1.0, math.exp(1 - r / c))
    return 100 * penalty * np.prod(np.divide(matches, totals))


def _reward_length(matches, totals, c, r):
    penalty = math.exp(1 - r / c)
    return 100 * penalty * np.prod(np.divide(matches, totals)) ** (1 / 4)


check_bleu.mistake(
    "take the geometric mean, the fourth root of the product.",
    _arithmetic_mean,
    _product,
)
check_bleu.mistake(
    "a factor of 100 is missing.", lambda *case: check_bleu.solve(*case) / 100
)
check_bleu.mistake(
    "there is no brevity penalty.",
    lambda matches, totals, c, r: check_bleu.solve(matches, totals, c, 0),
)
check_bleu.mistake(
    "the penalty is min(1, exp(1 - reference / translation)).",
    _reward_length,
    lambda matches, totals, c, r: check_bleu.solve(matches, totals, r, c),
)


def _draw_scores():
    rng = np.random.default_rng(1)
    hard = rng.normal(50, 20, size=40)  # what both find hard
    a, b = hard + rng.normal(1, 4, size=40), hard + rng.normal(0, 4, size=40)
    return [(a.round(), b.round(), rng.choice(40, size=(400, 40)))]


@grader(
    cases=_draw_scores,
    right="The same draws for both, so that hard sentences cancel out.",
)
def check_paired(a, b, draws):
    """The share of draws in which the first system has the higher mean.

    The sentence scores of two systems, an array of draws, one row of sentence numbers
    each -> a fraction.
    """
    return float((a[draws].mean(axis=1) > b[draws].mean(axis=1)).mean())


check_paired.mistake(
    "this is the share in which b is ahead.",
    lambda a, b, draws: check_paired.solve(b, a, draws),
)
check_paired.mistake(
    "each system got other draws: both must translate the same sentences.",
    lambda a, b, draws: (a[draws].mean(1) > b[draws[::-1]].mean(1)).mean(),
)
check_paired.mistake(
    "count draws, not sentences: in which share of the rows is a ahead?",
    lambda a, b, draws: (a > b).mean(),
)


_SCORES = [31.0, 74.5, 12.0, 55.5, 100.0, 48.0, 23.5, 67.0, 88.0, 5.5, 41.0]


@grader(
    cases=lambda: [(_SCORES[:], half_width) for half_width in (5.0, 2.0, 0.7)],
    right="Half the width takes four times as many sentences.",
)
def check_sample_size(values, half_width):
    """Sentence scores, half the width of the interval -> number of sentences."""
    deviation = np.std(values, ddof=1)
    return math.ceil((1.96 * deviation / half_width) ** 2)


check_sample_size.mistake(
    "the interval shrinks with the root of the number: square.",
    lambda values, half: math.ceil(1.96 * np.std(values, ddof=1) / half),
)
check_sample_size.mistake(
    "1.96 deviations of the mean, not one.",
    lambda values, half: math.ceil((np.std(values, ddof=1) / half) ** 2),
)
check_sample_size.mistake(
    "take the deviation of a sample, over n - 1.",
    lambda values, half: math.ceil((1.96 * np.std(values) / half) ** 2),
)
check_sample_size.mistake(
    "rounded down, the interval is still too wide.",
    lambda values, half: math.floor((1.96 * np.std(values, ddof=1) / half) ** 2),
)
