"""Corpora by name: English and German sentence pairs, and texts with labels."""

from transformer_lib.data.corpora.grammar import load_grammar
from transformer_lib.data.corpora.home_assistant import (
    load_home_assistant,
    load_home_assistant_random,
)
from transformer_lib.data.corpora.imdb import load_imdb
from transformer_lib.data.corpora.labelled import LabelledCorpus
from transformer_lib.data.corpora.multi30k import load_multi30k
from transformer_lib.data.corpora.parallel import ParallelCorpus
from transformer_lib.data.corpora.reviews import load_reviews

_LOADERS = {
    "grammar": load_grammar,
    "home-assistant": load_home_assistant,
    "home-assistant-random": load_home_assistant_random,
    "multi30k": lambda: load_multi30k(progress=True),
}
NAMES = tuple(_LOADERS)
_LABELLED = {"reviews": load_reviews, "imdb": lambda: load_imdb(progress=True)}


def load(name: str) -> ParallelCorpus:
    """Return one of the corpora to translate.

    Args:
        name: "grammar", generated; "home-assistant", in the package, whole components
            held out, or "home-assistant-random", the same sentences split at random;
            "multi30k", from a folder or downloaded once (see `load_multi30k`).

    Raises:
        ValueError: there is no corpus of this name.
    """
    if not isinstance(name, str) or name not in _LOADERS:
        raise ValueError(f"corpus must be one of {', '.join(NAMES)}, not {name!r}")
    return _LOADERS[name]()


def load_labelled(name: str) -> LabelledCorpus:
    """Return one of the corpora to classify.

    Args:
        name: "reviews", rated sentences in the package, or "imdb", from an archive or
            downloaded once (see `load_imdb`).

    Raises:
        ValueError: there is no corpus of this name.
    """
    if not isinstance(name, str) or name not in _LABELLED:
        known = ", ".join(_LABELLED)
        raise ValueError(f"labelled corpus must be one of {known}, not {name!r}")
    return _LABELLED[name]()
