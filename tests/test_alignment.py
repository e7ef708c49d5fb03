"""Links and their error rate agree with a slow count, and with worked examples."""

import random
from fractions import Fraction

import pytest
import torch

from transformer_lib.evaluation import diagonal_links, random_links
from transformer_lib.evaluation.alignment import (
    alignment_error_rate,
    links_from_weights,
)


def slow_rate(found: list, sure: list, possible: list) -> Fraction:
    """The formula of Och and Ney (2003), going through every pair of words."""
    n_found = n_sure = both = 0
    for a, s, p in zip(found, sure, possible, strict=True):
        for link in ((i, j) for i in range(9) for j in range(9)):
            n_found += link in a
            n_sure += link in s
            both += (link in a and link in s) + (link in a and link in p)
    return 1 - Fraction(both, n_found + n_sure)


def test_a_worked_example() -> None:
    found = [{(0, 0), (1, 1), (2, 2)}, {(0, 1), (1, 0)}]
    sure = [{(0, 0), (1, 1)}, {(0, 1), (2, 2)}]
    score = alignment_error_rate(found, sure, [{(2, 2)}, set()])
    assert score.precision == 4 / 5  # all but (1, 0); sure ones are possible
    assert score.recall == 3 / 4  # all but (2, 2) of the second sentence
    assert score.error_rate == pytest.approx(1 - (3 + 4) / (5 + 4))
    assert score.n_links == 5
    assert str(score) == "AER 0.22 (precision 0.80, recall 0.75)"


@pytest.mark.parametrize("seed", range(20))
def test_the_rate_is_that_of_a_slow_count(seed: int) -> None:
    rng = random.Random(seed)

    def draw(n: int) -> list[set]:
        pairs = [(rng.randrange(7), rng.randrange(9)) for _ in range(4 * n)]
        return [set(pairs[row::4]) for row in range(4)]

    found, sure = draw(6), draw(8)
    possible = [s | more for s, more in zip(sure, draw(9), strict=True)]
    score = alignment_error_rate(found, sure, possible)
    assert score.error_rate == pytest.approx(float(slow_rate(found, sure, possible)))
    plain = alignment_error_rate(found, sure)
    assert plain.error_rate == pytest.approx(float(slow_rate(found, sure, sure)))


def test_each_target_word_is_linked_with_its_largest_weight() -> None:
    weights = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]])  # (tgt_len, src_len)
    assert links_from_weights(weights) == {(1, 0), (0, 1)}


def test_the_diagonal_goes_from_corner_to_corner() -> None:
    assert diagonal_links(3, 3) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal_links(5, 3) == {(0, 0), (2, 1), (4, 2)}
    assert diagonal_links(1, 4) == {(0, j) for j in range(4)}
    assert diagonal_links(4, 1) == {(0, 0)}
    assert diagonal_links(2, 3) == {(0, 0), (1, 1), (1, 2)}  # halves are rounded up


def test_random_links_reach_every_source_word_alike() -> None:
    rng = random.Random(0)
    links = [link for _ in range(500) for link in sorted(random_links(5, 3, rng))]
    counts = [sum(source == i for source, _ in links) for i in range(5)]
    assert sum(counts) == 1500 and min(counts) > 240 and max(counts) < 360
