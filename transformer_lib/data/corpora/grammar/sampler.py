"""Draws random sentences of the generated corpus."""

import random

from transformer_lib.data.corpora.grammar.tree import Clause, NounPhrase, Sentence
from transformer_lib.data.corpora.grammar.verbs import MODALS, VERBS
from transformer_lib.data.corpora.grammar.words import (
    ADJECTIVES,
    NOUNS,
    PLACES,
    PRONOUNS,
    TIMES,
    Chunks,
    Noun,
    Pronoun,
)

_ACTIONS = [verb for verb in VERBS if not verb.clause]
_THOUGHTS = [verb for verb in VERBS if verb.clause]
_TENSES = ["present"] * 3 + ["past"] * 3 + list(MODALS)


def sample(rng: random.Random) -> Sentence:
    """Draw a sentence: two of five a single clause, the others two clauses."""
    kind = rng.choice(["single", "single", "that", "because", "if"])
    if kind == "that":
        thought = Clause(_subject(rng, "person"), rng.choice(_THOUGHTS), "present")
        return Sentence(thought, "that", _clause(rng, _TENSES))
    if kind == "because":
        main = _clause(rng, _TENSES, may_open=True)
        # Who acts in the past has reasons in the past.
        tenses = (
            ["past"]
            if main.tense == "past"
            else ["present"] * 3 + ["can", "must", "want"]
        )
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
