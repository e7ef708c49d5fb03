"""Sentences from movie reviews, rated by people: a small corpus in the package.

Each was rated by at least 20 people, from -4, extremely negative, to 4 (Hutto and
Gilbert 2014); the sentences are from the collection of Pang and Lee (2005). The label
is the sign of the mean rating. A sentence rated within half a point of 0 has no clear
sign and is left out, and so is a near-copy of another one; terms and details are in a
notice beside the data. The authors of the sentences and the films aren't known, so a
film may be praised in training and in the test, in other words.
"""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from transformer_lib.data.corpora.labelled import Labelled, LabelledCorpus
from transformer_lib.data.corpora.parallel import read_lines

REVIEWS_FILE = Path(__file__).parent / "data" / "reviews" / "reviews.tsv.gz"
N_TEST, N_VALID = 1500, 500


class Review(NamedTuple):
    """A sentence and its mean rating, from -4 to 4."""

    rating: float
    text: str


@lru_cache(maxsize=1)
def read_reviews() -> tuple[Review, ...]:
    """Return all sentences, in the order of their checksums: no order at all."""
    rows = (line.split("\t") for line in read_lines(REVIEWS_FILE))
    return tuple(Review(float(rating), text) for rating, text in rows)


def load_reviews() -> LabelledCorpus:
    """Return the corpus: the first 1,500 for the test, 500 for validation, the rest."""
    rows = tuple(map(label, read_reviews()))
    parts = rows[N_TEST + N_VALID :], rows[N_TEST:][:N_VALID], rows[:N_TEST]
    return LabelledCorpus("reviews", ("negative", "positive"), *parts)


def label(review: Review) -> Labelled:
    """Return the text with 1 for a rating above 0, else with 0."""
    return review.text, int(review.rating > 0)
