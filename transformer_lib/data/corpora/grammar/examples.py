"""The generated corpus: examples, the exact translation, the fixed split."""

import random
from dataclasses import dataclass
from functools import lru_cache

from transformer_lib.data.corpora.grammar.english import english
from transformer_lib.data.corpora.grammar.german import german
from transformer_lib.data.corpora.grammar.reader import read
from transformer_lib.data.corpora.grammar.sampler import sample
from transformer_lib.data.corpora.grammar.tree import Sentence, Word
from transformer_lib.data.corpora.parallel import ParallelCorpus
from transformer_lib.model.checks import check_integers

MOST = 200_000  # sentences that are asked for at once: seconds
N_TRAIN, N_VALID, N_TEST = 20_000, 500, 1_000


@dataclass(frozen=True)
class Example:
    """A sentence, its translation, and which words translate each other.

    Attributes:
        english, german: the sentences.
        alignment: pairs (English word, German word), counted from 0 as
            `data.split_words` splits them; a word may have several partners or none.
    """

    english: str
    german: str
    alignment: tuple[tuple[int, int], ...]


def translate(sentence: str) -> str:
    """Return the one right German translation of an English sentence.

    Raises:
        ValueError: the grammar does not make this sentence.
    """
    return explain(sentence).german


def explain(sentence: str) -> Example:
    """Return an English sentence with its translation and word alignment.

    Raises:
        ValueError: the grammar does not make this sentence.
    """
    return _example(read(sentence))


def generate(n: int, seed: int) -> tuple[Example, ...]:
    """Return n different sentences; the first of them do not depend on n.

    Raises:
        ValueError: n is below 1.
    """
    return tuple(_example(tree) for tree in _trees(n, seed))


@lru_cache(maxsize=1)
def load_grammar() -> ParallelCorpus:
    """Return the fixed corpus: 20,000 training, 500 validation, 1,000 test pairs."""
    trees = _trees(N_TRAIN + N_VALID + N_TEST, seed=0)
    pairs = tuple((_text(english(tree)), _text(german(tree))) for tree in trees)
    return ParallelCorpus(
        "grammar",
        "en",
        "de",
        train=pairs[:N_TRAIN],
        valid=pairs[N_TRAIN : N_TRAIN + N_VALID],
        test=pairs[N_TRAIN + N_VALID :],
    )


def _trees(n: int, seed: int) -> list[Sentence]:
    """Draw n different trees."""
    check_integers(n=n, seed=seed)
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")
    if n > MOST:
        raise ValueError(f"n must be at most {MOST:,}, not {n}")
    rng = random.Random(seed)
    trees: dict[Sentence, None] = {}
    while len(trees) < n:
        trees[sample(rng)] = None
    return list(trees)


def _example(tree: Sentence) -> Example:
    source, target = english(tree), german(tree)
    links = tuple(
        (i, j)
        for i, word in enumerate(source)
        for j, other in enumerate(target)
        if word.part == other.part
    )
    return Example(_text(source), _text(target), links)


def _text(words: list[Word]) -> str:
    return " ".join(word.text for word in words).replace(" ,", ",")
