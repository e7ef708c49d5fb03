"""Graders of the chapter on quality."""

import math
from collections import Counter

import numpy as np

from transformer_book.exercises.grading import Grader


def _ngrams(words, n):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def _clipped(hypothesis, reference, n):
    mine, theirs = Counter(_ngrams(hypothesis, n)), Counter(_ngrams(reference, n))
    return (mine & theirs).total(), mine.total()


_PAIRS = [
    ("das das das das", "das Buch ist das beste", 1),
    ("der Hund sieht den Hund", "der Hund sieht den großen alten Hund", 2),
    ("ja ja ja ja", "ja ja ja", 2),
    ("die alte Frau singt", "die Frau", 3),
    ("ja", "ja doch", 2),
]

check_clipped = Grader(
    "the words of a translation and of a reference, n -> (clipped matches, total)",
    cases=lambda: [(h.split(), r.split(), n) for h, r, n in _PAIRS],
    solution=_clipped,
    right="Each n-gram counts at most as often as the reference has it.",
    mistakes={
        "not clipped: no n-gram counts more often than the reference has it.": (
            lambda h, r, n: (
                sum(gram in _ngrams(r, n) for gram in _ngrams(h, n)),
                len(_ngrams(h, n)),
            )
        ),
        "a set forgets how often; count every occurrence.":
            lambda h, r, n: (
                (len({*_ngrams(h, n)} & {*_ngrams(r, n)}), len({*_ngrams(h, n)}))),
        "the total is that of the reference: this is recall, not precision.":
            lambda h, r, n: (_clipped(h, r, n)[0], len(_ngrams(r, n))),
        "matches come first, then the total.": lambda h, r, n: _clipped(h, r, n)[::-1],
        "the total counts words; only len(words) - n + 1 runs of n words fit.":
            lambda h, r, n: (_clipped(h, r, n)[0], len(h)),
    },
)  # fmt: skip


def _bleu(
    matches,
    totals,
    c,
    r,
    mean=lambda ratios: math.prod(ratios) ** (1 / 4),
    penalty=lambda c, r: min(1.0, math.exp(1 - r / c)),
    factor=100,
):
    ratios = [m / t for m, t in zip(matches, totals, strict=True)]
    return factor * penalty(c, r) * mean(ratios)


check_bleu = Grader(
    "matches and totals for n = 1 to 4, the lengths of all translations and of all "
    "references -> BLEU from 0 to 100",
    cases=lambda: [
        ([9, 7, 5, 3], [10, 9, 8, 7], 10, 10),
        ([9, 7, 5, 3], [16, 15, 14, 13], 16, 11),
        ([14, 11, 8, 6], [15, 13, 11, 9], 15, 17),
        ([5, 2, 0, 0], [8, 7, 6, 5], 8, 8),
    ],
    solution=_bleu,
    right="The geometric mean, and a penalty only for what is too short.",
    mistakes={
        "the mean of the four precisions is geometric, not arithmetic.":
            {"mean": lambda ratios: sum(ratios) / 4},
        "a factor of 100 is missing.": {"factor": 1},
        "there is no brevity penalty.": {"penalty": lambda c, r: 1},
        "longer translations are punished already; the penalty is at most 1.":
            {"penalty": lambda c, r: math.exp(1 - r / c)},
        "the lengths are swapped: it is 1 - reference / translation.":
            {"penalty": lambda c, r: min(1, math.exp(1 - c / r))},
        "the penalty is an exponential, not the ratio itself.":
            {"penalty": lambda c, r: min(1, c / r)},
        "take the fourth root of the product.": {"mean": math.prod},
        "no match at one length makes BLEU 0; the logarithm of 0 isn't finite.":
            lambda matches, *given: (
                _bleu(matches, *given) if all(matches) else math.nan),
    },
)  # fmt: skip


def _draw_scores():
    rng = np.random.default_rng(1)
    hard = rng.normal(50, 20, size=40)  # what both find hard
    a, b = hard + rng.normal(1, 4, size=40), hard + rng.normal(0, 4, size=40)
    return [(a.round(), b.round(), rng.choice(40, size=(400, 40)))]


def _ahead(a, b, draws):
    return float((a[draws].mean(axis=1) > b[draws].mean(axis=1)).mean())


check_paired = Grader(
    "the sentence scores of two systems, an array of draws, one row of sentence "
    "numbers each -> the share of draws in which the first has the higher mean",
    cases=_draw_scores,
    solution=_ahead,
    right="The same draws for both, so that hard sentences cancel out.",
    mistakes={
        "this is the share in which b is ahead.":
            lambda a, b, draws: _ahead(b, a, draws),
        "a draw in which both are equal counts for nobody.":
            lambda a, b, draws: float((a[draws].mean(1) >= b[draws].mean(1)).mean()),
        "each system got other draws: both must translate the same sentences.":
            lambda a, b, draws: (
                float((a[draws].mean(1) > b[draws[::-1]].mean(1)).mean())),
        "the system that is ahead on all sentences was asked for every draw.":
            lambda a, b, draws: float(a.mean() > b.mean()),
        "this is the share of sentences, not of draws.":
            lambda a, b, draws: (a > b).mean(),
        "this is the mean difference; count the draws.":
            lambda a, b, draws: (a[draws] - b[draws]).mean(),
        "this is percent; return a fraction.": lambda *given: 100 * _ahead(*given),
        "this is the number of draws; divide by how many there are.":
            lambda a, b, draws: len(draws) * _ahead(a, b, draws),
    },
)  # fmt: skip


def _needed(values, half_width, size=lambda x: x**2, spread=np.std, round_=math.ceil):
    return round_(size(1.96 * spread(values, ddof=1) / half_width))


_VALUES = [31.0, 74.5, 12.0, 55.5, 100.0, 48.0, 23.5, 67.0, 88.0, 5.5, 41.0]

check_sample_size = Grader(
    "sentence scores, half the width of the interval wanted -> number of sentences",
    cases=lambda: [(_VALUES[:], half_width) for half_width in (5.0, 2.0, 0.7)],
    solution=_needed,
    right="Half the width takes four times as many sentences.",
    mistakes={
        "the interval shrinks with the root of the number: square.": {"size": float},
        "half_width goes to either side; it is not the whole width.":
            {"size": lambda ratio: (2 * ratio) ** 2},
        "1.96 deviations of the mean, not one.": {"size": lambda x: (x / 1.96) ** 2},
        "the deviation, not the variance.": {"spread": np.var},
        "divide by n - 1: it is a sample.":
            {"spread": lambda values, ddof: np.std(values)},
        "rounded down, the interval is still too wide.": {"round_": math.floor},
    },
)  # fmt: skip
