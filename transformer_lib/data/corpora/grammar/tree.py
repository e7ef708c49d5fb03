"""What a sentence of the generated corpus means: a small tree of choices.

Each language turns the same tree into words, and every word carries the name of the
part of the tree that it expresses. Words of the same part translate each other: that
is the exact word alignment.
"""

from dataclasses import dataclass
from typing import NamedTuple

from transformer_lib.data.corpora.grammar.verbs import Verb
from transformer_lib.data.corpora.grammar.words import Adjective, Chunks, Noun, Pronoun


@dataclass(frozen=True)
class NounPhrase:
    """A noun with its company; article is "the", "a", "my" or "" (plural only)."""

    noun: Noun
    plural: bool
    article: str
    adjective: Adjective | None = None


@dataclass(frozen=True)
class Clause:
    """One verb and what belongs to it.

    Attributes:
        tense: "present", "past", or a key of MODALS.
        receiver: who gets the object.
        time_first: the time opens the clause; main clauses only.
    """

    subject: NounPhrase | Pronoun
    verb: Verb
    tense: str
    object: NounPhrase | None = None
    receiver: NounPhrase | None = None
    place: Chunks = ()
    time: Chunks = ()
    time_first: bool = False


@dataclass(frozen=True)
class Sentence:
    """A main clause, and a second one after "that", "because" or "if"."""

    main: Clause
    conjunction: str = ""
    second: Clause | None = None


class Word(NamedTuple):
    """A word and the part of the sentence that it expresses."""

    text: str
    part: str


def form_of(subject: NounPhrase | Pronoun) -> str:
    """Return the form the verb takes with this subject: ich, er or wir."""
    if isinstance(subject, Pronoun):
        return subject.form
    return "wir" if subject.plural else "er"


def inside(clause: str, words: list[Word]) -> list[Word]:
    """Add the name of the clause to the part that each word expresses."""
    return [Word(text, f"{clause} {part}") for text, part in words]


def fixed_phrase(chunks: Chunks, side: int, part: str) -> list[Word]:
    """Return a fixed phrase in English (side 0) or German (side 1)."""
    return [
        Word(text, f"{part} {number}")
        for number, chunk in enumerate(chunks)
        for text in chunk[side].split()
    ]
