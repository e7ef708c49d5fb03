"""Reads an English sentence of the generated corpus back into its tree."""

from collections.abc import Mapping
from typing import TypeVar

from transformer_lib.data.corpora.grammar.english import english
from transformer_lib.data.corpora.grammar.tree import Clause, NounPhrase, Sentence
from transformer_lib.data.corpora.grammar.verbs import MODALS, VERBS
from transformer_lib.data.corpora.grammar.words import (
    ADJECTIVES,
    NOUNS,
    PLACES,
    PRONOUNS,
    TIMES,
    Chunks,
    Pronoun,
)
from transformer_lib.data.examples import split_words

T = TypeVar("T")

_ARTICLES = {"the": "the", "a": "a", "an": "a", "my": "my"}
_ADJECTIVES = {adjective.english: adjective for adjective in ADJECTIVES}
_PRONOUNS = {pronoun.english: pronoun for pronoun in PRONOUNS}
_NOUNS = {noun.english: (noun, False) for noun in NOUNS} | {
    noun.english_plural: (noun, True) for noun in NOUNS
}
_BASES = {verb.english[0]: verb for verb in VERBS}
_FORMS = {
    form: (verb, tense)
    for verb in VERBS
    for form, tense in zip(verb.english, ("present", "present", "past"), strict=True)
}
_MODALS = {form: name for name, modal in MODALS.items() for form in modal.english}
_TIMES = tuple(dict.fromkeys(time for times in TIMES.values() for time in times))


def read(sentence: str) -> Sentence:
    """Return the tree of an English sentence.

    Raises:
        ValueError: the grammar does not make this sentence; where reading stopped, or
            what it would have said.
    """
    tree = _Reader(sentence).sentence()
    again = " ".join(word.text for word in english(tree)).replace(" ,", ",")
    if again != sentence:
        raise ValueError(f"{sentence!r} is not of this grammar; is it {again!r}?")
    return tree


class _Reader:
    """Takes words from the left, each by the rule that expects it.

    It need not refuse what is wrong: `read` says the tree again and compares.
    """

    def __init__(self, sentence: str) -> None:
        self.words = split_words(sentence)
        self.sentence_text = sentence
        self.position = 0

    def sentence(self) -> Sentence:
        if self.take("if"):
            second = self.clause()
            self.expect("a comma", {",": ","})
            tree = Sentence(self.clause(), "if", second)
        else:
            main = self.clause()
            conjunction = self.take("that") or self.take("because")
            second = self.clause() if conjunction else None
            tree = Sentence(main, conjunction, second)
        if self.position < len(self.words):
            raise self.stopped("the end")
        return tree

    def clause(self) -> Clause:
        first = self.fixed(_TIMES)
        subject = self.noun_phrase(allow_pronoun=True)
        modal = self.entry(_MODALS)
        if modal:
            tense = modal
            self.take(MODALS[modal].particle)
            verb = self.expect("a verb", _BASES)
        else:
            verb, tense = self.expect("a verb", _FORMS)
        self.take(verb.particle)
        receiver = self.noun_phrase() if verb.receiver else None
        thing = self.noun_phrase() if verb.objects else None
        place = self.fixed(PLACES)
        time = first or self.fixed(_TIMES)
        return Clause(subject, verb, tense, thing, receiver, place, time, bool(first))

    def noun_phrase(self, allow_pronoun: bool = False) -> NounPhrase | Pronoun:
        pronoun = self.entry(_PRONOUNS) if allow_pronoun else None
        if pronoun:
            return pronoun
        article = self.entry(_ARTICLES) or ""
        adjective = self.entry(_ADJECTIVES)
        noun, plural = self.expect("a noun", _NOUNS)
        return NounPhrase(noun, plural, article, adjective)

    def fixed(self, phrases: tuple[Chunks, ...]) -> Chunks:
        """Take one of the fixed phrases, if one follows."""
        for phrase in phrases:
            texts = " ".join(text for text, _ in phrase).split()
            if self.words[self.position : self.position + len(texts)] == texts:
                self.position += len(texts)
                return phrase
        return ()

    def next(self) -> str:
        rest = self.words[self.position : self.position + 1]
        return rest[0] if rest else ""

    def take(self, word: str) -> str:
        """Take this word if it follows, and say so by returning it."""
        if not word or self.next() != word:
            return ""
        self.position += 1
        return word

    def entry(self, table: Mapping[str, T]) -> T | None:
        """Take a word of the table, if one follows, and return its entry."""
        word = self.next()
        return table[word] if word in table and self.take(word) else None

    def expect(self, what: str, table: Mapping[str, T]) -> T:
        entry = self.entry(table)
        if entry is None:
            raise self.stopped(what)
        return entry

    def stopped(self, what: str) -> ValueError:
        found = repr(self.next()) if self.next() else "the end"
        return ValueError(
            f"word {self.position + 1} of {self.sentence_text!r}: expected {what}, "
            f"not {found}"
        )
