"""Corpora of English and German sentence pairs, by name."""

from transformer_lib.corpora.grammar import load_grammar
from transformer_lib.corpora.home_assistant import (
    load_home_assistant,
    load_home_assistant_random,
)
from transformer_lib.corpora.multi30k import load_multi30k
from transformer_lib.corpora.parallel import ParallelCorpus

_LOADERS = {
    "grammar": load_grammar,
    "home-assistant": load_home_assistant,
    "home-assistant-random": load_home_assistant_random,
    "multi30k": lambda: load_multi30k(progress=True),
}
NAMES = tuple(_LOADERS)


def load(name: str) -> ParallelCorpus:
    """Return one of the corpora.

    Args:
        name: "grammar", generated; "home-assistant", in the package, whole components
            held out, or "home-assistant-random", the same sentences split at random;
            "multi30k", from a folder or downloaded once (see `load_multi30k`).

    Raises:
        ValueError: there is no corpus of this name.
    """
    if name not in _LOADERS:
        raise ValueError(f"corpus must be one of {', '.join(NAMES)}, not {name!r}")
    return _LOADERS[name]()
