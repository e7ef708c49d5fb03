"""Random sentences with their exact translation and word alignment."""

import random
from dataclasses import dataclass

from transformer_book.grammar.dictionary import (
    ADJECTIVES,
    MODALS,
    NOUNS,
    PLACES,
    PRONOUNS,
    TIMES,
    VERBS,
    Chunks,
    Noun,
    Pronoun,
)
from transformer_book.grammar.reader import read
from transformer_book.grammar.speech import (
    Clause,
    NounPhrase,
    Sentence,
    english,
    german,
    text_of,
)

_ACTIONS = [verb for verb in VERBS if not verb.clause]
_THOUGHTS = [verb for verb in VERBS if verb.clause]
_TENSES = ["present"] * 3 + ["past"] * 3 + list(MODALS)
_REASONS = ["present"] * 3 + ["can", "must", "want"]


@dataclass(frozen=True)
class Example:
    """A sentence, its translation, and which words translate each other.

    Attributes:
        english, german: the sentences.
        alignment: pairs (English word, German word), counted from 0 as
            `split_words` splits them; a word may have several partners or none.
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

    With seed 0, the first 21,500 are the library's corpus "grammar".
    """
    rng = random.Random(seed)
    trees: dict[Sentence, None] = {}
    while len(trees) < n:
        trees[_sentence(rng)] = None
    return tuple(map(_example, trees))


def _example(tree: Sentence) -> Example:
    source, target = english(tree), german(tree)
    links = tuple(
        (i, j)
        for i, word in enumerate(source)
        for j, other in enumerate(target)
        if word.part == other.part
    )
    return Example(text_of(source), text_of(target), links)


def _sentence(rng: random.Random) -> Sentence:
    """Draw a sentence: two of five a single clause, the others two clauses."""
    kind = rng.choice(["single", "single", "that", "because", "if"])
    if kind == "that":
        thought = Clause(_subject(rng, "person"), rng.choice(_THOUGHTS), "present")
        return Sentence(thought, "that", _clause(rng, _TENSES))
    if kind == "because":
        main = _clause(rng, _TENSES, may_open=True)
        # Who acts in the past has reasons in the past.
        tenses = ["past"] if main.tense == "past" else _REASONS
        return Sentence(main, "because", _clause(rng, tenses))
    if kind == "if":
        condition = _clause(rng, ["present", "present", "can", "want"], timed=False)
        return Sentence(_clause(rng, ["present", "present", *MODALS]), "if", condition)
    return Sentence(_clause(rng, _TENSES, may_open=True))


def _clause(
    rng: random.Random, tenses: list[str], may_open: bool = False, timed: bool = True
) -> Clause:
    """Draw a clause in one of the tenses; its time may open it, or be absent."""
    verb, tense = rng.choice(_ACTIONS), rng.choice(tenses)
    subject = _subject(rng, verb.doers)
    taken = [] if isinstance(subject, Pronoun) else [subject.noun]
    receiver = thing = None
    if verb.receiver:
        receiver = _noun_phrase(rng, "person", taken)
        taken.append(receiver.noun)
    if verb.objects:
        thing = _noun_phrase(rng, verb.objects, taken)
    place = rng.choice(PLACES) if verb.anywhere and rng.random() < 0.3 else ()
    time = _time(rng, tense) if timed else ()
    first = bool(time) and may_open and rng.random() < 0.6
    return Clause(subject, verb, tense, thing, receiver, place, time, first)


def _time(rng: random.Random, tense: str) -> Chunks:
    if rng.random() < 0.5:
        return ()
    return rng.choice(TIMES["modal" if tense in MODALS else tense])


def _subject(rng: random.Random, kinds: str) -> NounPhrase | Pronoun:
    if rng.random() < 0.3:
        return rng.choice(PRONOUNS)
    return _noun_phrase(rng, kinds, [])


def _noun_phrase(rng: random.Random, kinds: str, taken: list[Noun]) -> NounPhrase:
    """Draw a noun phrase of one of the kinds, with a noun that is not taken."""
    nouns = [noun for noun in NOUNS if noun.kind in kinds and noun not in taken]
    noun = rng.choice(nouns)
    plural = rng.random() < 0.3
    articles = ["the", "the", "" if plural else "a"] + ["my"] * noun.owned
    article = rng.choice(articles)
    adjectives = [item for item in ADJECTIVES if noun.kind in item.kinds]
    adjective = rng.choice(adjectives) if rng.random() < 0.35 else None
    return NounPhrase(noun, plural, article, adjective)
