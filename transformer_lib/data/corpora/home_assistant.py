"""English and German sentences of an interface: a small real corpus in the package.

They come from the smart-home program Home Assistant (Apache License 2.0; the license
and a notice lie beside the data) and load without a network. An English sentence
occurs once, but many are near-copies of another one: "Failed to connect to the bridge"
and "Failed to connect to the hub". A random split puts one of them into training and
the other into the test, and memory scores as translation. So whole components of the
program are held out; the random split is there to show the difference.
"""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from transformer_lib.data.corpora.parallel import ParallelCorpus, read_lines

PAIRS_FILE = Path(__file__).parent / "data" / "home_assistant" / "pairs.tsv.gz"
TEST_SHARE, VALID_SHARE = 0.08, 0.04


class Entry(NamedTuple):
    """A sentence, its translation, and the components of the program that show it."""

    components: tuple[str, ...]
    english: str
    german: str


@lru_cache(maxsize=1)
def read_entries() -> tuple[Entry, ...]:
    """Return all sentences, in the order of the English alphabet."""
    entries = []
    for line in read_lines(PAIRS_FILE):
        components, english, german = line.split("\t")
        entries.append(Entry(tuple(components.split()), english, german))
    return tuple(entries)


def load_home_assistant() -> ParallelCorpus:
    """Return the corpus split by component.

    A component is held out if its name says so (see `part_of`). A sentence that
    several components show is for training if one of them is, so that no component's
    text is both learned and tested.
    """
    by_part: dict[str, list[Entry]] = {"test": [], "valid": [], "train": []}
    for entry in read_entries():
        by_part[last_part(part_of(name) for name in entry.components)].append(entry)
    return _corpus("home-assistant", by_part)


def load_home_assistant_random() -> ParallelCorpus:
    """Return the corpus split at random: too easy a test, for comparison.

    The parts are as large as in the split by component; which sentence is in which
    depends on the sentence alone.
    """
    honest = load_home_assistant()
    entries = sorted(read_entries(), key=lambda entry: _fraction(entry.english))
    n_test, n_valid = len(honest.test), len(honest.valid)
    by_part = {
        "test": entries[:n_test],
        "valid": entries[n_test : n_test + n_valid],
        "train": entries[n_test + n_valid :],
    }
    return _corpus("home-assistant-random", by_part)


def part_of(name: str) -> str:
    """Return "test", "valid" or "train", a fixed choice that looks like chance.

    The name's checksum, read as a fraction, is below 0.08 for the test and below 0.12
    for validation. New components would not move the old ones.
    """
    fraction = _fraction(name)
    if fraction < TEST_SHARE:
        return "test"
    return "valid" if fraction < TEST_SHARE + VALID_SHARE else "train"


def last_part(parts: Iterable[str]) -> str:
    """Return the part that a sentence of several components belongs to."""
    return max(parts, key=("test", "valid", "train").index)


def _fraction(text: str) -> float:
    """Return a number from 0 to 1 that depends on the text alone."""
    return int(hashlib.sha256(text.encode("utf-8")).hexdigest()[:8], 16) / 2**32


def _corpus(name: str, by_part: dict[str, list[Entry]]) -> ParallelCorpus:
    pairs = {
        part: tuple((entry.english, entry.german) for entry in entries)
        for part, entries in by_part.items()
    }
    return ParallelCorpus(name, **pairs)
