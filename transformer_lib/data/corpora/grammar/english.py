"""A tree in English words."""

from transformer_lib.data.corpora.grammar.tree import (
    Clause,
    NounPhrase,
    Sentence,
    Word,
    fixed_phrase,
    form_of,
    inside,
)
from transformer_lib.data.corpora.grammar.verbs import MODALS
from transformer_lib.data.corpora.grammar.words import Pronoun


def english(sentence: Sentence) -> list[Word]:
    """Say it in English: subject, verb, objects, place, time, in every clause."""
    main = inside("main", _english_clause(sentence.main))
    if sentence.second is None:
        return main
    second = inside("second", _english_clause(sentence.second))
    link = [Word(sentence.conjunction, "conjunction")]
    if sentence.conjunction == "if":
        return link + second + [Word(",", "comma")] + main
    return main + link + second


def _english_clause(clause: Clause) -> list[Word]:
    time = fixed_phrase(clause.time, 0, "time")
    words = _english_noun_phrase(clause.subject, "subject")
    words += _english_verbs(clause)
    words += _english_noun_phrase(clause.receiver, "receiver")
    words += _english_noun_phrase(clause.object, "object")
    words += fixed_phrase(clause.place, 0, "place")
    return time + words if clause.time_first else words + time


def _english_verbs(clause: Clause) -> list[Word]:
    base, third, past = clause.verb.english
    singular = form_of(clause.subject) == "er"
    if clause.tense in MODALS:
        modal = MODALS[clause.tense]
        texts = [modal.english[singular], modal.particle]
        words = [Word(text, "modal") for text in texts if text]
    else:
        words, base = (
            [],
            past if clause.tense == "past" else third if singular else base,
        )
    return words + [Word(text, "verb") for text in (base, clause.verb.particle) if text]


def _english_noun_phrase(phrase: NounPhrase | Pronoun | None, role: str) -> list[Word]:
    if phrase is None:
        return []
    if isinstance(phrase, Pronoun):
        return [Word(phrase.english, f"{role} noun")]
    noun = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    words = [Word(noun, f"{role} noun")]
    if phrase.adjective:
        words.insert(0, Word(phrase.adjective.english, f"{role} adjective"))
    article = phrase.article
    if article == "a" and words[0].text[0] in "aeiou":
        article = "an"
    return [Word(article, f"{role} article")] * bool(article) + words
