"""Graders of the chapter on quality."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from transformer_lib.exercises.feedback import (
    Feedback,
    call,
    check_integer,
    right,
    unanswered,
    wrong,
)

Words = list[str]


def check_clipped(answer: Callable[[Words, Words, int], tuple[int, int]]) -> Feedback:
    """Grade the clipped matches of one sentence.

    Args:
        answer: takes translation, reference and n; returns (matches, total).
    """
    cases = [
        ("das das das das", "das Buch ist das beste", 1),
        ("der Hund sieht den Hund", "der Hund sieht den großen alten Hund", 2),
        ("ja ja ja ja", "ja ja ja", 2),
        ("die alte Frau singt", "die Frau", 3),
        ("ja", "ja doch", 2),
    ]
    for hypothesis, reference, n in cases:
        h, r = hypothesis.split(), reference.split()
        result = call(answer, list(h), list(r), n)
        if problem := unanswered(result):
            return problem
        if not isinstance(result, tuple | list) or len(result) != 2:
            return wrong(f"expected (matches, total), but got {result!r}.")
        mine, theirs = _ngrams(h, n), _ngrams(r, n)
        expected = (mine & theirs).total(), mine.total()
        if tuple(result) != expected:
            said = f"{hypothesis!r} against {reference!r}, n = {n}: "
            return wrong(said + _clipping_mistake(tuple(result), mine, theirs, n))
    return right("Each n-gram counts at most as often as the reference has it.")


def _clipping_mistake(result: tuple, mine: Counter, theirs: Counter, n: int) -> str:
    """Name what went wrong in one sentence."""
    matches, total = (mine & theirs).total(), mine.total()
    unclipped = sum(count for gram, count in mine.items() if gram in theirs)
    if result[0] > matches and result == (unclipped, total):
        return "not clipped: no n-gram counts more often than the reference has it."
    if result == (len(mine.keys() & theirs.keys()), len(mine)):
        return "a set forgets how often; count every occurrence."
    if result == (matches, theirs.total()):
        return "the total is that of the reference: this is recall, not precision."
    if result[::-1] == (matches, total):
        return "matches come first, then the total."
    if result[1] != total and result[1] in (total + 1, total + n - 1):
        return f"{total} runs of {n} words fit into it, not {result[1]}."
    return f"expected {(matches, total)}, but got {result}."


def _ngrams(words: Words, n: int) -> Counter:
    return Counter(zip(*(words[i:] for i in range(n)), strict=False))


def check_bleu(
    answer: Callable[[Sequence[int], Sequence[int], int, int], float],
) -> Feedback:
    """Grade BLEU from summed counts.

    Args:
        answer: takes matches and totals for n = 1 to 4, and the lengths of all
            translations and of all references; returns BLEU from 0 to 100.
    """
    cases = [
        ([9, 7, 5, 3], [10, 9, 8, 7], 10, 10),
        ([9, 7, 5, 3], [16, 15, 14, 13], 16, 11),
        ([14, 11, 8, 6], [15, 13, 11, 9], 15, 17),
        ([5, 2, 0, 0], [8, 7, 6, 5], 8, 8),
    ]
    for matches, totals, c, r in cases:
        result = call(answer, list(matches), list(totals), c, r)
        if problem := unanswered(result):
            return problem
        number = _as_number(result)
        if number is None:
            return wrong(f"expected a number, but got {result!r}.")
        expected = _bleu(matches, totals, min(1.0, math.exp(1 - r / c)))
        if not math.isclose(number, expected, rel_tol=1e-6, abs_tol=1e-9):
            said = f"matches {matches} of {totals}, lengths {c} and {r}: "
            return wrong(said + _bleu_mistake(number, matches, totals, c, r))
    return right("The geometric mean, and a penalty only for what is too short.")


def _bleu(matches: Sequence[int], totals: Sequence[int], penalty: float) -> float:
    ratios = [m / t for m, t in zip(matches, totals, strict=True)]
    return 100 * penalty * math.prod(ratios) ** 0.25


def _bleu_mistake(
    number: float, matches: Sequence[int], totals: Sequence[int], c: int, r: int
) -> str:
    """Name what leads to this number."""
    if not math.isfinite(number):
        return "the result is not finite; no match at one length makes BLEU 0."
    ratios = [m / t for m, t in zip(matches, totals, strict=True)]
    penalty = min(1.0, math.exp(1 - r / c))
    mean = 100 * penalty * sum(ratios) / 4
    named = {
        "the mean of the four precisions is geometric, not arithmetic.": mean,
        "from 0 to 100, please: a factor of 100 is missing.": _bleu(
            matches, totals, penalty / 100
        ),
        "no brevity penalty.": _bleu(matches, totals, 1.0),
        "longer translations are punished already; the penalty is at most 1.": _bleu(
            matches, totals, math.exp(1 - r / c)
        ),
        "the lengths are exchanged: it is 1 - reference / translation.": _bleu(
            matches, totals, min(1.0, math.exp(1 - c / r))
        ),
        "the penalty is an exponential, not the ratio itself.": _bleu(
            matches, totals, min(1.0, c / r)
        ),
        "take the fourth root of the product.": 100 * penalty * math.prod(ratios),
    }
    for message, value in named.items():
        if math.isclose(number, value, rel_tol=1e-6):
            return message
    return f"expected {_bleu(matches, totals, penalty):.3f}, but got {number:.3f}."


def check_paired(
    answer: Callable[[np.ndarray, np.ndarray, np.ndarray], float],
) -> Feedback:
    """Grade the paired bootstrap.

    Args:
        answer: takes the sentence scores of two systems and an array of draws, one row
            of sentence numbers each; returns the share of draws in which the first
            has the higher mean.
    """
    rng = np.random.default_rng(1)
    hard = rng.normal(50, 20, size=40)  # what both find hard
    a, b = hard + rng.normal(1, 4, size=40), hard + rng.normal(0, 4, size=40)
    a, b = a.round(), b.round()
    draws = rng.choice(40, size=(400, 40))
    result = call(answer, a.copy(), b.copy(), draws.copy())
    if problem := unanswered(result):
        return problem
    number = _as_number(result)
    if number is None:
        return wrong(f"expected a number, but got {result!r}.")
    ones, others = a[draws].mean(axis=1), b[draws].mean(axis=1)
    named = {
        "this is the share in which b is ahead.": (ones < others).mean(),
        "a draw in which both are equal counts for nobody.": (ones >= others).mean(),
        "each system got other draws: both must translate the same sentences.": (
            ones > others[::-1]
        ).mean(),
        "the system that is ahead on all sentences was asked for every draw.": float(
            a.mean() > b.mean()
        ),
        "this is the share of sentences, not of draws.": (a > b).mean(),
        "this is the mean difference; count the draws.": (ones - others).mean(),
        "a fraction, please, not percent.": 100 * (ones > others).mean(),
        "this is the number of draws; divide by how many there are.": (
            ones > others
        ).sum(),
    }
    if math.isclose(number, (ones > others).mean(), abs_tol=1e-9):
        return right("The same draws for both, so that hard sentences cancel out.")
    for message, value in named.items():
        if math.isclose(number, value, abs_tol=1e-9):
            return wrong(message)
    return wrong(f"expected {(ones > others).mean():.3f}, but got {number:.3f}.")


def check_sample_size(answer: Callable[[list[float], float], int]) -> Feedback:
    """Grade how many sentences a test needs.

    Args:
        answer: takes sentence scores and half the width of the interval wanted; returns
            the number of sentences.
    """
    values = [31.0, 74.5, 12.0, 55.5, 100.0, 48.0, 23.5, 67.0, 88.0, 5.5, 41.0]
    deviation = float(np.std(values, ddof=1))
    for half_width in (5.0, 2.0, 0.7):
        result = call(answer, list(values), half_width)
        if isinstance(result, np.integer):
            result = int(result)
        if problem := check_integer(result):
            return problem
        ratio = 1.96 * deviation / half_width
        expected = math.ceil(ratio**2)
        if result == expected:
            continue
        named = {
            "the interval shrinks with the root of the number: square.": ratio,
            "half_width goes to either side; it is not the whole width.": (
                (2 * ratio) ** 2
            ),
            "1.96 deviations of the mean, not one.": (ratio / 1.96) ** 2,
            "the deviation, not the variance.": (ratio * deviation) ** 2,
            "divide by n - 1: it is a sample.": ratio**2 * 10 / 11,
        }
        said = f"for {half_width} to either side: "
        if result == math.floor(ratio**2):
            return wrong(said + "rounded down, the interval is still too wide.")
        for message, value in named.items():
            if result in (math.ceil(value), math.floor(value)):
                return wrong(said + message)
        return wrong(f"{said}expected {expected}, but got {result}.")
    return right("Half the width takes four times as many sentences.")


def _as_number(result: Any) -> float | None:
    """Return a plain number, or None if it is something else."""
    if isinstance(result, bool) or np.ndim(result) != 0:
        return None
    try:
        return float(result)
    except (TypeError, ValueError):
        return None
