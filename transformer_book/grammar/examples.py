"""Random sentences with their exact translation and word alignment."""

import random
from itertools import product
from typing import NamedTuple

from transformer_book.grammar import dictionary, speech
from transformer_book.grammar.dictionary import Noun, Pronoun
from transformer_book.grammar.reader import read
from transformer_book.grammar.speech import Clause, NounPhrase, Sentence

_TENSES = ["present"] * 3 + ["past"] * 3 + list(dictionary.MODALS)
_REASONS = ["present"] * 3 + ["can", "must", "want"]
_CONDITIONS = ["present"] * 2 + ["can", "want"]
_CONSEQUENCES = ["present"] * 2 + list(dictionary.MODALS)


class Example(NamedTuple):
    """A sentence, its translation, and which words translate each other.

    Attributes:
        english, german: the sentences.
        alignment: pairs (English word, German word), counted from 0 as
            `split_words` splits them; a word may have several partners or none.
    """

    english: str
    german: str
    alignment: tuple[tuple[int, int], ...]


def explain(sentence: str) -> Example:
    """Return an English sentence with its translation and word alignment.

    Raises:
        ValueError: the grammar does not make this sentence.
    """
    example = _example(read(sentence))
    if example.english != sentence:
        guess = repr(example.english)
        raise ValueError(f"{sentence!r} is not of this grammar; is it {guess}?")
    return example


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
    words = speech.english(tree), speech.german(tree)
    pairs = product(*map(enumerate, words))
    links = tuple(
        (i, j) for (i, mine), (j, theirs) in pairs if mine.piece == theirs.piece
    )
    return Example(*map(speech.text_of, words), links)


def _sentence(rng: random.Random) -> Sentence:
    """Draw a sentence: two of five a single clause, the others two clauses."""
    kind = rng.choice(["single", "single", "that", "because", "if"])
    if kind == "that":
        person = _subject(rng, dictionary.PEOPLE)
        thought = Clause(person, rng.choice(dictionary.THOUGHTS), "present")
        return Sentence(thought, "that", _clause(rng, _TENSES))
    if kind == "because":
        main = _clause(rng, _TENSES, may_open=True)
        # Who acts in the past has reasons in the past.
        tenses = ["past"] if main.tense == "past" else _REASONS
        return Sentence(main, "because", _clause(rng, tenses))
    if kind == "if":
        condition = _clause(rng, _CONDITIONS, timed=False)
        return Sentence(_clause(rng, _CONSEQUENCES), "if", condition)
    return Sentence(_clause(rng, _TENSES, may_open=True))


def _clause(
    rng: random.Random, tenses: list[str], may_open: bool = False, timed: bool = True
) -> Clause:
    """Draw a clause in one of the tenses; its time may open it, or be absent."""
    verb, tense = rng.choice(dictionary.ACTIONS), rng.choice(tenses)
    subject = _subject(rng, verb.doers)
    taken = [] if isinstance(subject, Pronoun) else [subject.noun]
    receiver = thing = None
    if verb.receiver:
        receiver = _noun_phrase(rng, dictionary.PEOPLE, taken)
        taken.append(receiver.noun)
    if verb.objects:
        thing = _noun_phrase(rng, verb.objects, taken)
    somewhere = verb.anywhere and rng.random() < 0.3
    place = rng.choice(dictionary.PLACES) if somewhere else ()
    times = dictionary.TIMES["modal" if tense in dictionary.MODALS else tense]
    time = rng.choice(times) if timed and rng.random() >= 0.5 else ()
    first = bool(time) and may_open and rng.random() < 0.6
    return Clause(subject, verb, tense, thing, receiver, place, time, first)


def _subject(rng: random.Random, kinds: tuple[str, ...]) -> NounPhrase | Pronoun:
    if rng.random() < 0.3:
        return rng.choice(dictionary.PRONOUNS)
    return _noun_phrase(rng, kinds, [])


def _noun_phrase(
    rng: random.Random, kinds: tuple[str, ...], taken: list[Noun]
) -> NounPhrase:
    """Draw a noun phrase of one of the kinds, with a noun that is not taken."""
    nouns = [noun for noun in dictionary.NOUNS if noun.kind in kinds]
    noun = rng.choice([noun for noun in nouns if noun not in taken])
    plural = rng.random() < 0.3
    articles = ["the", "the", "" if plural else "a"] + ["my"] * noun.owned
    article = rng.choice(articles)
    adjectives = [item for item in dictionary.ADJECTIVES if noun.kind in item.kinds]
    adjective = rng.choice(adjectives) if rng.random() < 0.35 else None
    return NounPhrase(noun, plural, article, adjective)
