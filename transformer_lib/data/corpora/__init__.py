"""Corpora by name: English and German sentence pairs, and texts with labels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer_lib.data.corpora.home_assistant import (
    load_home_assistant,
    load_home_assistant_random,
)
from transformer_lib.data.corpora.labelled import (
    LabelledCorpus,
    load_imdb,
    load_reviews,
)
from transformer_lib.data.corpora.multi30k import load_multi30k
from transformer_lib.data.corpora.parallel import ParallelCorpus, read_lines

GRAMMAR_FILE = Path(__file__).parent / "data" / "grammar" / "pairs.tsv.gz"


def load_grammar() -> ParallelCorpus:
    """Return 20,000 training, 500 validation and 1,000 test pairs, made by a grammar.

    `transformer_book.grammar` is the grammar: `generate(21_500, seed=0)`.
    """
    pairs = tuple(tuple(line.split("\t")) for line in read_lines(GRAMMAR_FILE))
    parts = pairs[:20_000], pairs[20_000:20_500], pairs[20_500:]
    return ParallelCorpus("grammar", *parts)


_LOADERS = {
    "grammar": load_grammar,
    "home-assistant": load_home_assistant,
    "home-assistant-random": load_home_assistant_random,
    "multi30k": load_multi30k,
}
_LABELLED = {"reviews": load_reviews, "imdb": load_imdb}


def load(name: str) -> ParallelCorpus:
    """Return one of the corpora to translate.

    Args:
        name: "grammar", made by a grammar; "home-assistant", real sentences, whole
            components held out, or "home-assistant-random", the same sentences split
            at random; "multi30k", from a folder or downloaded once (see
            `load_multi30k`). The first three are in the package.

    Raises:
        ValueError: there is no corpus of this name.
    """
    return _chosen(name, _LOADERS)


def load_labelled(name: str) -> LabelledCorpus:
    """Return one of the corpora to classify.

    Args:
        name: "reviews", rated sentences in the package, or "imdb", from an archive or
            downloaded once (see `load_imdb`).

    Raises:
        ValueError: there is no corpus of this name.
    """
    return _chosen(name, _LABELLED)


def _chosen(name: str, loaders: dict[str, Callable[[], Any]]) -> Any:
    if name not in loaders:
        raise ValueError(f"corpus must be one of {', '.join(loaders)}, not {name!r}")
    return loaders[name]()
