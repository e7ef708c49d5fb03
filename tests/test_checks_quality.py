"""The graders of the chapter on quality: right answers pass, wrong ones are named."""

import math
from collections import Counter

import numpy as np
import pytest

from transformer_lib.exercises.quality import (
    check_bleu,
    check_clipped,
    check_paired,
    check_sample_size,
)


def grams(words, n):
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def clipped(h, r, n):
    mine, theirs = Counter(grams(h, n)), Counter(grams(r, n))
    return (mine & theirs).total(), mine.total()


def bleu(matches, totals, c, r):
    ratios = [m / t for m, t in zip(matches, totals, strict=True)]
    return 100 * min(1.0, math.exp(1 - r / c)) * math.prod(ratios) ** 0.25


def ahead(a, b, draws):
    return np.mean([a[d].mean() > b[d].mean() for d in draws])


def needed(values, half_width):
    return math.ceil((1.96 * np.std(values, ddof=1) / half_width) ** 2)


GRADERS = [check_clipped, check_bleu, check_paired, check_sample_size]
ANSWERS = [clipped, bleu, ahead, needed]


@pytest.mark.parametrize(("grader", "answer"), list(zip(GRADERS, ANSWERS, strict=True)))
def test_the_right_answer_passes(grader, answer) -> None:
    assert grader(answer).passed


def unclipped(h, r, n):
    return sum(g in grams(r, n) for g in grams(h, n)), len(grams(h, n))


def with_one_more(h, r, n):
    return clipped(h, r, n)[0], len(h)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (unclipped, "not clipped"),
        (
            lambda h, r, n: (
                len(set(grams(h, n)) & set(grams(r, n))),
                len(set(grams(h, n))),
            ),
            "a set forgets",
        ),
        (lambda h, r, n: (clipped(h, r, n)[0], len(grams(r, n))), "this is recall"),
        (lambda h, r, n: clipped(h, r, n)[::-1], "matches come first"),
        (with_one_more, "runs of 2 words fit"),
        (lambda h, r, n: (0, clipped(h, r, n)[1]), "expected (2, 4), but got (0, 4)"),
        (lambda h, r, n: clipped(h, r, n)[0], "expected (matches, total)"),
    ],
)
def test_wrong_counts_are_named(answer, named) -> None:
    feedback = check_clipped(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def with_penalty(penalty):
    """BLEU with another brevity penalty, a function of both lengths."""
    return lambda m, t, c, r: bleu(m, t, 1, 1) * penalty(c, r)


def arithmetic(matches, totals, c, r):
    ratios = [m / t for m, t in zip(matches, totals, strict=True)]
    return 100 * min(1.0, math.exp(1 - r / c)) * sum(ratios) / 4


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (arithmetic, "geometric"),
        (lambda *given: bleu(*given) / 100, "factor of 100"),
        (with_penalty(lambda c, r: 1), "no brevity penalty"),
        (with_penalty(lambda c, r: math.exp(1 - r / c)), "at most 1"),
        (with_penalty(lambda c, r: min(1, math.exp(1 - c / r))), "exchanged"),
        (with_penalty(lambda c, r: min(1, c / r)), "not the ratio itself"),
        (lambda *given: math.nan if 0 in given[0] else bleu(*given), "not finite"),
        (lambda m, t, c, r: 100 * (bleu(m, t, c, r) / 100) ** 4, "fourth root"),
        (lambda m, t, c, r: [bleu(m, t, c, r)], "expected a number"),
        (lambda *given: bleu(*given) + 1, "but got"),
    ],
)
def test_wrong_scores_are_named(answer, named) -> None:
    feedback = check_bleu(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda a, b, d: ahead(b, a, d), "b is ahead"),
        (
            lambda a, b, d: np.mean(a[d].mean(1) > b[d[::-1]].mean(1)),
            "the same sentences",
        ),
        (lambda a, b, d: float(a.mean() > b.mean()), "for every draw"),
        (lambda a, b, d: np.mean(a > b), "not of draws"),
        (lambda a, b, d: np.mean(a[d] - b[d]), "mean difference"),
        (lambda a, b, d: 100 * ahead(a, b, d), "not percent"),
        (lambda a, b, d: len(d) * ahead(a, b, d), "divide by how many"),
        (lambda a, b, d: 0.123, "but got 0.123"),
        (lambda a, b, d: a > b, "expected a number"),
        (
            lambda a, b, d: np.mean([a[i].mean() >= b[i].mean() for i in d]),
            "counts for nobody",
        ),
    ],
)
def test_wrong_comparisons_are_named(answer, named) -> None:
    feedback = check_paired(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def with_ratio(change, rounded=math.ceil):
    return lambda v, half: rounded(change(1.96 * np.std(v, ddof=1) / half))


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (with_ratio(lambda x: x), "square"),
        (with_ratio(lambda x: (2 * x) ** 2), "either side; it is not"),
        (with_ratio(lambda x: (x / 1.96) ** 2), "not one"),
        (with_ratio(lambda x: x**2, math.floor), "rounded down"),
        (
            lambda v, half: math.ceil((1.96 * np.var(v, ddof=1) / half) ** 2),
            "not the variance",
        ),
        (
            lambda v, half: math.ceil((1.96 * np.std(v) / half) ** 2),
            "divide by n - 1",
        ),
        (with_ratio(lambda x: x**2, float), "expected a whole number"),
        (lambda v, half: 7, "but got 7"),
    ],
)
def test_wrong_sizes_are_named(answer, named) -> None:
    feedback = check_sample_size(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message
