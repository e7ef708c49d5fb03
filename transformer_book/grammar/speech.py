"""What a sentence means, a small tree of choices, and how each language says it.

Noun phrases and verbs become chunks, like the fixed phrases of the dictionary: pieces
that translate each other. Every word carries the name of its piece, and words of the
same piece are linked: that is the exact word alignment.
"""

from typing import NamedTuple

from transformer_book.grammar import dictionary
from transformer_book.grammar.dictionary import (
    Adjective,
    Chunk,
    Noun,
    Phrase,
    Pronoun,
    Verb,
)


class NounPhrase(NamedTuple):
    """A noun with its company; article is "the", "a", "my" or "" (plural only)."""

    noun: Noun
    plural: bool
    article: str
    adjective: Adjective | None = None

    @property
    def form(self) -> str:
        """The form that a German verb takes with it, as for a pronoun."""
        return "wir" if self.plural else "er"


class Clause(NamedTuple):
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
    place: Phrase = ()
    time: Phrase = ()
    time_first: bool = False


class Sentence(NamedTuple):
    """A main clause, and a second one after "that", "because" or "if"."""

    main: Clause
    conjunction: str = ""
    second: Clause | None = None


class Word(NamedTuple):
    """A word and the piece of the sentence that it expresses."""

    text: str
    piece: str


COMMA = Word(",", "comma")


def text_of(words: list[Word]) -> str:
    """Return the words as one text."""
    return " ".join(word.text for word in words).replace(" ,", ",")


# --- The order of the words -----------------------------------------------------------


def english(sentence: Sentence) -> list[Word]:
    """Say it in English: subject, verb, objects, place, time, in every clause."""
    main = _english_clause(sentence.main, "main")
    if sentence.second is None:
        return main
    link = Word(sentence.conjunction, "conjunction")
    second = [link, *_english_clause(sentence.second, "second")]
    return [*second, COMMA, *main] if sentence.conjunction == "if" else main + second


def german(sentence: Sentence) -> list[Word]:
    """Say it in German.

    The verb comes second in a main clause, first after a clause that opens the
    sentence, and last behind a conjunction.
    """
    opened = sentence.conjunction == "if"
    main = _german_clause(sentence.main, "main", "first" if opened else "second")
    if sentence.second is None:
        return main
    link = Word(dictionary.CONJUNCTIONS[sentence.conjunction], "conjunction")
    second = [link, *_german_clause(sentence.second, "second", "last")]
    return [*second, COMMA, *main] if opened else [*main, COMMA, *second]


def _english_clause(clause: Clause, name: str) -> list[Word]:
    words = _words_by_part(clause, name, "english")
    time, others = words.pop("time"), sum(words.values(), [])
    return time + others if clause.time_first else others + time


def _german_clause(clause: Clause, name: str, verb: str) -> list[Word]:
    words = _words_by_part(clause, name, "german")
    subject, finite, time = words["subject"], words["verb"], words["time"]
    middle = words["receiver"] + words["object"] + words["place"]
    end = _words_by_part(clause, name, "closing")["verb"]
    if verb == "last":
        if clause.tense == "present" and end:  # "auf" and "steht" become "aufsteht"
            end, finite = [], [Word(end[0].text + finite[0].text, finite[0].piece)]
        return subject + time + middle + end + finite
    if verb == "first":
        return finite + subject + time + middle + end
    if clause.time_first:
        return time + finite + subject + middle + end
    return subject + finite + time + middle + end


def _words_by_part(clause: Clause, name: str, side: str) -> dict[str, list[Word]]:
    """Return the words of each part of a clause, in the order of English.

    Args:
        clause: to say.
        name: of the clause, for the names of its pieces.
        side: of a chunk: "english", "german" or "closing".
    """
    phrases: dict[str, Phrase] = {
        "subject": _noun_phrase(clause.subject, "nominative"),
        "verb": _verbs(clause),
        "receiver": _noun_phrase(clause.receiver, "dative"),
        "object": _noun_phrase(clause.object, clause.verb.case),
        "place": clause.place,
        "time": clause.time,
    }
    return {
        part: [
            Word(text, f"{name} {part} {number}")
            for number, chunk in enumerate(phrase)
            for text in getattr(chunk, side).split()
        ]
        for part, phrase in phrases.items()
    }


# --- The pieces: what agrees with what ------------------------------------------------


def _verbs(clause: Clause) -> Phrase:
    """Return the verbs: in English, the one that agrees in German, what closes it."""
    verb, form = clause.verb, clause.subject.form
    if clause.tense in dictionary.MODALS:
        modal = dictionary.MODALS[clause.tense]
        english = modal.english_third if form == "er" else modal.english
        infinitive = Chunk(verb.english, "", verb.prefix + verb.infinitive)
        return Chunk(english, modal.german[form]), infinitive
    if clause.tense == "past":
        auxiliary = dictionary.SEIN if verb.being else dictionary.HABEN
        return (Chunk(verb.english_past, auxiliary[form], verb.participle),)
    english = verb.english_third if form == "er" else verb.english
    return (Chunk(english, _present(verb, form), verb.prefix),)


def _present(verb: Verb, form: str) -> str:
    """Return a form of the present tense in German."""
    if form == "wir":
        return verb.infinitive
    # Among these verbs, "wissen" alone has an ich-form like its er-form: ich weiß.
    if form == "er" or verb.infinitive == "wissen":
        return verb.er_form
    return verb.infinitive.removesuffix("en") + "e"


def _noun_phrase(phrase: NounPhrase | Pronoun | None, case: str) -> Phrase:
    """Return article, adjective and noun: the same order in both languages."""
    if phrase is None:
        return ()
    if isinstance(phrase, Pronoun):
        return (Chunk(phrase.english, phrase.german),)
    noun, plural, article, adjective = phrase
    gender = "plural" if plural else noun.gender
    chunks = [Chunk(noun.english, noun.german)]
    if plural:
        many = noun.german_plural
        dative = many.removesuffix("n") + "n"
        chunks = [Chunk(noun.english_plural, dative if case == "dative" else many)]
    if adjective:
        ending = _adjective_ending(article, gender, case)
        chunks.insert(0, Chunk(adjective.english, adjective.german + ending))
    before_a_vowel = chunks[0].english[0] in "aeiou"
    english = "an" if article == "a" and before_a_vowel else article
    return Chunk(english, _article(article, gender, case)), *chunks


_GENDERS = "m", "f", "n", "plural"
_ARTICLES = {  # "the", and the ending of "a" and "my"
    "nominative": (("der", "die", "das", "die"), ("", "e", "", "e")),
    "accusative": (("den", "die", "das", "die"), ("en", "e", "", "e")),
    "dative": (("dem", "der", "dem", "den"), ("em", "er", "em", "en")),
}


def _article(article: str, gender: str, case: str) -> str:
    the, ending = (forms[_GENDERS.index(gender)] for forms in _ARTICLES[case])
    return {"the": the, "a": "ein" + ending, "my": "mein" + ending, "": ""}[article]


def _adjective_ending(article: str, gender: str, case: str) -> str:
    """Return the ending: what the article does not show, the adjective must show."""
    if case == "dative" or (gender == "m" and case == "accusative"):
        return "en"
    if gender == "plural":
        return "en" if article else "e"
    if article == "the" or gender == "f":
        return "e"
    return {"m": "er", "n": "es"}[gender]
