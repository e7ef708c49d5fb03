"""Links and their error rate agree with a slow count, and with worked examples."""

import random
from fractions import Fraction

import pytest
import torch

from transformer_lib.evaluation.alignment import (
    alignment_error_rate,
    diagonal_links,
    links_from_weights,
    random_links,
)

# A, S, P of two sentences, counted by hand below.
FOUND = [{(0, 0), (1, 1), (2, 2)}, {(0, 1), (1, 0)}]
SURE = [{(0, 0), (1, 1)}, {(0, 1), (2, 2)}]
POSSIBLE = [{(0, 0), (1, 1), (2, 2)}, {(0, 1), (2, 2)}]


def slow_rate(found: list, sure: list, possible: list) -> Fraction:
    """The formula of Och and Ney (2003), going through every pair of words."""
    n_found = n_sure = both = 0
    for a, s, p in zip(found, sure, possible, strict=True):
        for i in range(9):
            for j in range(9):
                link = (i, j)
                n_found += link in a
                n_sure += link in s
                both += (link in a and link in s) + (link in a and link in p)
    return 1 - Fraction(both, n_found + n_sure)


def draw(rng: random.Random, n: int) -> set:
    return {(rng.randrange(7), rng.randrange(9)) for _ in range(n)}


def test_a_worked_example() -> None:
    score = alignment_error_rate(FOUND, SURE, POSSIBLE)
    assert score.precision == 4 / 5  # all but (1, 0)
    assert score.recall == 3 / 4  # all but (2, 2) of the second sentence
    assert score.error_rate == pytest.approx(1 - (3 + 4) / (5 + 4))
    assert score.n_links == 5
    assert str(score) == "AER 0.22 (precision 0.80, recall 0.75)"


@pytest.mark.parametrize("seed", range(20))
def test_the_rate_is_that_of_a_slow_count(seed: int) -> None:
    rng = random.Random(seed)
    found = [draw(rng, 6) for _ in range(4)]
    sure = [draw(rng, 8) for _ in range(4)]
    possible = [s | draw(rng, 9) for s in sure]
    score = alignment_error_rate(found, sure, possible)
    assert score.error_rate == pytest.approx(float(slow_rate(found, sure, possible)))
    plain = alignment_error_rate(found, sure)
    assert plain.error_rate == pytest.approx(float(slow_rate(found, sure, sure)))
    p, r = plain.precision, plain.recall  # 1 minus AER is F1, 2 p r / (p + r)
    assert (1 - plain.error_rate) * (p + r) == pytest.approx(2 * p * r)


def test_all_sure_and_some_possible_links_are_no_error() -> None:
    assert alignment_error_rate(POSSIBLE, SURE, POSSIBLE).error_rate == 0
    assert alignment_error_rate([{(8, 8)}], [{(0, 0)}]).error_rate == 1


def test_a_sure_link_is_possible_even_if_it_is_not_listed() -> None:
    listed = alignment_error_rate(FOUND, SURE, POSSIBLE)
    rest = [p - s for p, s in zip(POSSIBLE, SURE, strict=True)]
    assert alignment_error_rate(FOUND, SURE, rest) == listed


def test_links_are_counted_over_the_corpus_not_averaged_over_sentences() -> None:
    each = [alignment_error_rate([a], [s]) for a, s in zip(FOUND, SURE, strict=True)]
    mean = sum(score.error_rate for score in each) / 2
    assert alignment_error_rate(FOUND, SURE).error_rate != pytest.approx(mean)


def test_each_target_word_is_linked_with_its_largest_weight() -> None:
    weights = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]])  # (tgt_len, src_len)
    assert links_from_weights(weights) == {(1, 0), (0, 1)}


def test_the_diagonal_goes_from_corner_to_corner() -> None:
    assert diagonal_links(3, 3) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal_links(5, 3) == {(0, 0), (2, 1), (4, 2)}
    assert diagonal_links(1, 4) == {(0, j) for j in range(4)}
    assert diagonal_links(4, 1) == {(0, 0)}


def test_random_links_reach_every_source_word_alike() -> None:
    rng = random.Random(0)
    counts = [0] * 5
    for _ in range(500):
        links = random_links(5, 3, rng)
        assert sorted(j for _, j in links) == [0, 1, 2]
        for i, _ in links:
            counts[i] += 1
    assert min(counts) > 240 and max(counts) < 360
