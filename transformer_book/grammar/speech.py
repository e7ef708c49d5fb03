"""What a sentence means, a small tree of choices, and how each language says it.

Every word carries the name of the part of the tree that it expresses. Words of the same
part translate each other: that is the exact word alignment.
"""

from dataclasses import dataclass
from typing import NamedTuple

from transformer_book.grammar.dictionary import (
    CONJUNCTIONS,
    FORMS,
    HABEN,
    MODALS,
    SEIN,
    Adjective,
    Chunks,
    Noun,
    Pronoun,
    Verb,
)


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


def text_of(words: list[Word]) -> str:
    """Return the words as one text."""
    return " ".join(word.text for word in words).replace(" ,", ",")


def _form(subject: NounPhrase | Pronoun) -> str:
    """Return the form the verb takes with this subject: ich, er or wir."""
    if isinstance(subject, Pronoun):
        return subject.form
    return "wir" if subject.plural else "er"


def _inside(clause: str, words: list[Word]) -> list[Word]:
    """Add the name of the clause to the part that each word expresses."""
    return [Word(text, f"{clause} {part}") for text, part in words]


def _words(part: str, *texts: str) -> list[Word]:
    """Return the texts that are not empty as words of one part."""
    return [Word(text, part) for text in texts if text]


def _fixed(chunks: Chunks, side: int, part: str) -> list[Word]:
    """Return a fixed phrase in English (side 0) or German (side 1)."""
    return [
        word
        for number, chunk in enumerate(chunks)
        for word in _words(f"{part} {number}", *chunk[side].split())
    ]


# --- English --------------------------------------------------------------------------


def english(sentence: Sentence) -> list[Word]:
    """Say it in English: subject, verb, objects, place, time, in every clause."""
    main = _inside("main", _english_clause(sentence.main))
    if sentence.second is None:
        return main
    second = _inside("second", _english_clause(sentence.second))
    link = _words("conjunction", sentence.conjunction)
    if sentence.conjunction == "if":
        return link + second + _words("comma", ",") + main
    return main + link + second


def _english_clause(clause: Clause) -> list[Word]:
    time = _fixed(clause.time, 0, "time")
    words = _english_noun_phrase(clause.subject, "subject")
    words += _english_verbs(clause)
    words += _english_noun_phrase(clause.receiver, "receiver")
    words += _english_noun_phrase(clause.object, "object")
    words += _fixed(clause.place, 0, "place")
    return time + words if clause.time_first else words + time


def _english_verbs(clause: Clause) -> list[Word]:
    base, third, past = clause.verb.english.split()
    singular = _form(clause.subject) == "er"
    if clause.tense in MODALS:
        modal = MODALS[clause.tense]
        words = _words("modal", modal.english.split()[singular], modal.particle)
        return words + _words("verb", base, clause.verb.particle)
    present = third if singular else base
    text = past if clause.tense == "past" else present
    return _words("verb", text, clause.verb.particle)


def _english_noun_phrase(phrase: NounPhrase | Pronoun | None, role: str) -> list[Word]:
    if phrase is None:
        return []
    if isinstance(phrase, Pronoun):
        return _words(f"{role} noun", phrase.english)
    noun = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    words = _words(f"{role} noun", noun)
    if phrase.adjective:
        words = _words(f"{role} adjective", phrase.adjective.english) + words
    article = phrase.article
    if article == "a" and words[0].text[0] in "aeiou":
        article = "an"
    return _words(f"{role} article", article) + words


# --- German: where the verb stands, and what agrees with what -------------------------


def german(sentence: Sentence) -> list[Word]:
    """Say it in German.

    The verb comes second in a main clause, first after a clause that opens the
    sentence, and last behind a conjunction.
    """
    if sentence.second is None:
        return _inside("main", _german_clause(sentence.main, verb="second"))
    second = _inside("second", _german_clause(sentence.second, verb="last"))
    link = _words("conjunction", CONJUNCTIONS[sentence.conjunction])
    comma = _words("comma", ",")
    if sentence.conjunction == "if":
        main = _inside("main", _german_clause(sentence.main, verb="first"))
        return link + second + comma + main
    main = _inside("main", _german_clause(sentence.main, verb="second"))
    return main + comma + link + second


def _german_clause(clause: Clause, verb: str) -> list[Word]:
    subject = _german_noun_phrase(clause.subject, "nominative", "subject")
    time = _fixed(clause.time, 1, "time")
    middle = _german_noun_phrase(clause.receiver, "dative", "receiver")
    middle += _german_noun_phrase(clause.object, clause.verb.case, "object")
    middle += _fixed(clause.place, 1, "place")
    finite, end = _german_verbs(clause)
    if verb == "last":
        if clause.tense == "present" and end:  # "auf" and "steht" become "aufsteht"
            end, finite = [], _words("verb", end[0].text + finite[0].text)
        return subject + time + middle + end + finite
    if verb == "first":
        return finite + subject + time + middle + end
    if clause.time_first:
        return time + finite + subject + middle + end
    return subject + finite + time + middle + end


def _german_verbs(clause: Clause) -> tuple[list[Word], list[Word]]:
    """Return the verb that agrees with the subject, and what closes the clause."""
    verb, form = clause.verb, _form(clause.subject)
    infinitive, er_form, participle = verb.german.split()
    place = FORMS.index(form)
    if clause.tense in MODALS:
        modal = MODALS[clause.tense].german.split()[place]
        return _words("modal", modal), _words("verb", verb.prefix + infinitive)
    if clause.tense == "past":
        auxiliary = (SEIN if verb.being else HABEN).split()[place]
        return _words("verb", auxiliary), _words("verb", participle)
    stem = infinitive.removesuffix("en")
    # Among these verbs, "wissen" alone has an ich-form like its er-form: ich weiß.
    ich_form = er_form if infinitive == "wissen" else stem + "e"
    present = (ich_form, er_form, infinitive)[place]
    return _words("verb", present), _words("verb", verb.prefix)


def _german_noun_phrase(
    phrase: NounPhrase | Pronoun | None, case: str, role: str
) -> list[Word]:
    if phrase is None:
        return []
    if isinstance(phrase, Pronoun):
        return _words(f"{role} noun", phrase.german)
    noun, gender = phrase.noun.german, phrase.noun.gender
    if phrase.plural:
        noun, gender = phrase.noun.german_plural, "plural"
        if case == "dative" and not noun.endswith("n"):
            noun += "n"
    words = _words(f"{role} article", _article(phrase.article, gender, case))
    if phrase.adjective:
        ending = _adjective_ending(phrase.article, gender, case)
        words += _words(f"{role} adjective", phrase.adjective.german + ending)
    return words + _words(f"{role} noun", noun)


_GENDERS = "m", "f", "n", "plural"
_THE = {
    "nominative": ("der", "die", "das", "die"),
    "accusative": ("den", "die", "das", "die"),
    "dative": ("dem", "der", "dem", "den"),
}
_A_ENDING = {
    "nominative": ("", "e", "", "e"),
    "accusative": ("en", "e", "", "e"),
    "dative": ("em", "er", "em", "en"),
}


def _article(article: str, gender: str, case: str) -> str:
    column = _GENDERS.index(gender)
    if article == "the":
        return _THE[case][column]
    stem = {"a": "ein", "my": "mein", "": ""}[article]
    return stem and stem + _A_ENDING[case][column]


def _adjective_ending(article: str, gender: str, case: str) -> str:
    """Return the ending: what the article does not show, the adjective must show."""
    if case == "dative" or (gender == "m" and case == "accusative"):
        return "en"
    if gender == "plural":
        return "en" if article else "e"
    if article == "the" or gender == "f":
        return "e"
    return {"m": "er", "n": "es"}[gender]
