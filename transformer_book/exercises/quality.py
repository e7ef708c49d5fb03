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
    lambda: [(h.split(), r.split(), n) for h, r, n in _PAIRS],
    "Each n-gram counts at most as often as the reference has it.",
    ("not clipped: no n-gram counts more often than the reference has it.",
     {"clip": lambda mine, theirs: Counter({w: mine[w] for w in mine & theirs})}),
    ("a set forgets how often; count every occurrence.",
     {"count": lambda words, n: Counter({*_ngrams(words, n)})}),
    ("the total is that of the reference: this is recall, not precision.",
     lambda h, r, n: check_clipped.solve(r, h, n)),
)  # fmt: skip
def check_clipped(hypothesis, reference, n, count=_ngrams, clip=Counter.__and__):
    """The words of a translation and of a reference, n -> (clipped matches, total)."""
    mine, theirs = count(hypothesis, n), count(reference, n)
    return clip(mine, theirs).total(), mine.total()


@grader(
    lambda: [
        ([9, 7, 5, 3], [10, 9, 8, 7], 10, 10),
        ([9, 7, 5, 3], [16, 15, 14, 13], 16, 11),
        ([14, 11, 8, 6], [15, 13, 11, 9], 15, 17),
        ([5, 2, 0, 0], [8, 7, 6, 5], 8, 8),
    ],
    "The geometric mean, and a penalty only for what is too short.",
    ("take the geometric mean, the fourth root of the product.",
     {"mean": np.mean}, {"mean": np.prod}),
    ("a factor of 100 is missing.", lambda *given: check_bleu.solve(*given) / 100),
    ("there is no brevity penalty.",
     lambda matches, totals, c, r: check_bleu.solve(matches, totals, c, 0)),
    ("the penalty is min(1, exp(1 - reference / translation)).",
     {"most": math.inf},
     lambda matches, totals, c, r: check_bleu.solve(matches, totals, r, c)),
)  # fmt: skip
def check_bleu(matches, totals, c, r, mean=lambda x: np.prod(x) ** (1 / 4), most=1.0):
    """BLEU from 0 to 100.

    matches and totals for n = 1 to 4, the lengths of all translations and of all
    references -> a number.
    """
    penalty = min(most, math.exp(1 - r / c))
    return float(100 * penalty * mean(np.divide(matches, totals)))


def _draw_scores():
    rng = np.random.default_rng(1)
    hard = rng.normal(50, 20, size=40)  # what both find hard
    a, b = hard + rng.normal(1, 4, size=40), hard + rng.normal(0, 4, size=40)
    return [(a.round(), b.round(), rng.choice(40, size=(400, 40)))]


@grader(
    _draw_scores,
    "The same draws for both, so that hard sentences cancel out.",
    ("this is the share in which b is ahead.",
     lambda a, b, draws: check_paired.solve(b, a, draws)),
    ("each system got other draws: both must translate the same sentences.",
     lambda a, b, draws: (a[draws].mean(1) > b[draws[::-1]].mean(1)).mean()),
    ("count draws, not sentences: in which share of the rows is a ahead?",
     lambda a, b, draws: (a > b).mean()),
)  # fmt: skip
def check_paired(a, b, draws):
    """The share of draws in which the first system has the higher mean.

    The sentence scores of two systems, an array of draws, one row of sentence numbers
    each -> a fraction.
    """
    return float((a[draws].mean(axis=1) > b[draws].mean(axis=1)).mean())


_VALUES = [31.0, 74.5, 12.0, 55.5, 100.0, 48.0, 23.5, 67.0, 88.0, 5.5, 41.0]


@grader(
    lambda: [(_VALUES[:], half_width) for half_width in (5.0, 2.0, 0.7)],
    "Half the width takes four times as many sentences.",
    ("the interval shrinks with the root of the number: square.", {"power": 1}),
    ("1.96 deviations of the mean, not one.", {"z": 1}),
    ("take the deviation of a sample, over n - 1.", {"ddof": 0}),
    ("rounded down, the interval is still too wide.", {"whole": math.floor}),
)  # fmt: skip
def check_sample_size(values, half_width, power=2, z=1.96, ddof=1, whole=math.ceil):
    """Sentence scores, half the width of the interval -> number of sentences."""
    return whole((z * np.std(values, ddof=ddof) / half_width) ** power)
