"""Reads an English sentence back into its tree."""

from collections.abc import Mapping
from typing import Any

from transformer_book.grammar.dictionary import (
    ADJECTIVES,
    MODALS,
    NOUNS,
    PLACES,
    PRONOUNS,
    TIMES,
    VERBS,
    Chunks,
)
from transformer_book.grammar.speech import (
    Clause,
    NounPhrase,
    Sentence,
    english,
    text_of,
)
from transformer_lib import split_words

_ARTICLES = {"the": "the", "a": "a", "an": "a", "my": "my"}
_ADJECTIVES = {adjective.english: adjective for adjective in ADJECTIVES}
_PRONOUNS = {pronoun.english: pronoun for pronoun in PRONOUNS}
_NOUNS = {noun.english: (noun, False) for noun in NOUNS} | {
    noun.english_plural: (noun, True) for noun in NOUNS
}
_BASES = {verb.english.split()[0]: verb for verb in VERBS}
_FORMS = {
    form: (verb, tense)
    for verb in VERBS
    for form, tense in zip(
        verb.english.split(), ("present", "present", "past"), strict=True
    )
}
_MODALS = {form: name for name, m in MODALS.items() for form in m.english.split()}
_TIMES = tuple(time for times in TIMES.values() for time in times)


def read(sentence: str) -> Sentence:
    """Return the tree of an English sentence.

    Raises:
        ValueError: the grammar does not make this sentence; where reading stopped, or
            what it would have said.
    """
    reader = _Reader(split_words(sentence))
    try:
        tree = reader.sentence()
    except KeyError as error:
        found = " ".join(reader.words[-len(reader.rest) :] if reader.rest else [])
        raise ValueError(
            f"{sentence!r} is not of this grammar: expected {error.args[0]} before "
            f"{found!r}"
        ) from None
    if (again := text_of(english(tree))) != sentence:
        raise ValueError(f"{sentence!r} is not of this grammar; is it {again!r}?")
    return tree


class _Reader:
    """Takes words from the left, each by the rule that expects it.

    It need not refuse what is wrong: `read` says the tree again and compares.
    """

    def __init__(self, words: list[str]) -> None:
        self.words, self.rest = words, list(words)

    def sentence(self) -> Sentence:
        if self.take("if"):
            second = self.clause()
            self.take(",")
            return Sentence(self.clause(), "if", second)
        main = self.clause()
        conjunction = self.take("that") or self.take("because")
        return Sentence(main, conjunction, self.clause() if conjunction else None)

    def clause(self) -> Clause:
        first = self.fixed(_TIMES)
        subject = self.entry(_PRONOUNS) or self.noun_phrase()
        if tense := self.entry(_MODALS):
            self.take(MODALS[tense].particle)
            verb = self.expect("a verb", _BASES)
        else:
            verb, tense = self.expect("a verb", _FORMS)
        self.take(verb.particle)
        receiver = self.noun_phrase() if verb.receiver else None
        thing = self.noun_phrase() if verb.objects else None
        place = self.fixed(PLACES)
        time = first or self.fixed(_TIMES)
        return Clause(subject, verb, tense, thing, receiver, place, time, bool(first))

    def noun_phrase(self) -> NounPhrase:
        article = self.entry(_ARTICLES) or ""
        adjective = self.entry(_ADJECTIVES)
        noun, plural = self.expect("a noun", _NOUNS)
        return NounPhrase(noun, plural, article, adjective)

    def fixed(self, phrases: tuple[Chunks, ...]) -> Chunks:
        """Take one of the fixed phrases, if one follows."""
        for phrase in phrases:
            texts = " ".join(text for text, _ in phrase).split()
            if self.rest[: len(texts)] == texts:
                del self.rest[: len(texts)]
                return phrase
        return ()

    def take(self, word: str) -> str:
        """Take this word if it follows, and say so by returning it."""
        return self.entry({word: word}) or ""

    def entry(self, table: Mapping[str, Any]) -> Any:
        """Take a word of the table, if one follows, and return its entry."""
        return table[self.rest.pop(0)] if self.rest and self.rest[0] in table else None

    def expect(self, what: str, table: Mapping[str, Any]) -> Any:
        entry = self.entry(table)
        if entry is None:
            raise KeyError(what)
        return entry
