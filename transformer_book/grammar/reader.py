"""Reads an English sentence back into its tree."""

from collections.abc import Mapping
from typing import Any

from transformer_book.grammar import dictionary
from transformer_book.grammar.speech import Clause, NounPhrase, Sentence
from transformer_lib import split_words

# What may be read at a place, and what it means.
_ARTICLES = {"the": "the", "a": "a", "an": "a", "my": "my"}
_ADJECTIVES = {adjective.english: adjective for adjective in dictionary.ADJECTIVES}
_PRONOUNS = {pronoun.english: pronoun for pronoun in dictionary.PRONOUNS}
_NOUNS, _VERBS, _MODALS = {}, {}, {}
for _noun in dictionary.NOUNS:
    _NOUNS[_noun.english] = _noun, False
    _NOUNS[_noun.english_plural] = _noun, True
for _verb in dictionary.ACTIONS + dictionary.THOUGHTS:
    _VERBS[_verb.english] = _VERBS[_verb.english_third] = _verb, "present"
    _VERBS[_verb.english_past] = _verb, "past"
for _name, _modal in dictionary.MODALS.items():
    _MODALS[_modal.english] = _MODALS[_modal.english_third] = _name
_PLACES, _TIMES = (
    {" ".join(chunk.english for chunk in phrase): phrase for phrase in phrases}
    for phrases in (dictionary.PLACES, sum(dictionary.TIMES.values(), ()))
)


def read(sentence: str) -> Sentence:
    """Return the tree of an English sentence.

    What is wrong and yet can be understood is read: say the tree again to find out.

    Raises:
        ValueError: the grammar does not make this sentence; where reading stopped.
    """
    return _Reader(sentence).sentence()


class _Reader:
    """Takes words from the left, each by the rule that expects it."""

    def __init__(self, text: str) -> None:
        self.text, self.rest = text, split_words(text)

    def sentence(self) -> Sentence:
        if self.take("if"):
            second = self.clause()
            self.take(",")
            return Sentence(self.clause(), "if", second)
        main = self.clause()
        conjunction = self.take("that") or self.take("because")
        return Sentence(main, conjunction, self.clause() if conjunction else None)

    def clause(self) -> Clause:
        first = self.entry(_TIMES)
        subject = self.entry(_PRONOUNS) or self.noun_phrase()
        modal = self.entry(_MODALS)
        verb, tense = self.expect("a verb", _VERBS)
        receiver = self.noun_phrase() if verb.receiver else None
        thing = self.noun_phrase() if verb.objects else None
        place = self.entry(_PLACES) or ()
        time = first or self.entry(_TIMES) or (), bool(first)
        return Clause(subject, verb, modal or tense, thing, receiver, place, *time)

    def noun_phrase(self) -> NounPhrase:
        article = self.entry(_ARTICLES) or ""
        adjective = self.entry(_ADJECTIVES)
        noun, plural = self.expect("a noun", _NOUNS)
        return NounPhrase(noun, plural, article, adjective)

    def take(self, word: str) -> str:
        """Take this word if it follows, and say so by returning it."""
        return self.entry({word: word}) or ""

    def entry(self, table: Mapping[str, Any]) -> Any:
        """Take the text of a table that follows, if one does; return its entry."""
        for text, entry in table.items():
            words = text.split()
            if self.rest[: len(words)] == words:
                del self.rest[: len(words)]
                return entry
        return None

    def expect(self, what: str, table: Mapping[str, Any]) -> Any:
        if entry := self.entry(table):
            return entry
        problem = f"expected {what} before {' '.join(self.rest)!r}"
        raise ValueError(f"{self.text!r} is not of this grammar: {problem}")
