"""What a sentence means, a small tree of choices, and how each language says it.

Noun phrases and verbs become chunks, like the fixed phrases of the dictionary: pieces
that translate each other. Every word carries the name of its piece, and words of the
same piece are linked: that is the exact word alignment.
"""

from typing import NamedTuple

from transformer_book.grammar import dictionary
from transformer_book.grammar.dictionary import Adjective, Chunks, Noun, Pronoun, Verb


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
    place: Chunks = ()
    time: Chunks = ()
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
    said = _said(clause, name, 0)
    time, words = said.pop("time"), sum(said.values(), [])
    return time + words if clause.time_first else words + time


def _german_clause(clause: Clause, name: str, verb: str) -> list[Word]:
    said = _said(clause, name, 1)
    subject, finite, time = said["subject"], said["verb"], said["time"]
    middle = said["receiver"] + said["object"] + said["place"]
    end = _said(clause, name, 2)["verb"]
    if verb == "last":
        if clause.tense == "present" and end:  # "auf" and "steht" become "aufsteht"
            end, finite = [], [Word(end[0].text + finite[0].text, finite[0].piece)]
        return subject + time + middle + end + finite
    if verb == "first":
        return finite + subject + time + middle + end
    if clause.time_first:
        return time + finite + subject + middle + end
    return subject + finite + time + middle + end


def _said(clause: Clause, name: str, side: int) -> dict[str, list[Word]]:
    """Return the words of each part of a clause, in the order of English.

    Args:
        clause: to say.
        name: of the clause, for the names of its pieces.
        side: 0 for English, 1 for German, 2 for what closes a German clause.
    """
    chunks: dict[str, Chunks] = {  # only a verb has a third side
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
            for number, chunk in enumerate(pieces)
            for text in "".join(chunk[side : side + 1]).split()
        ]
        for part, pieces in chunks.items()
    }


# --- The pieces: what agrees with what ------------------------------------------------


def _verbs(clause: Clause) -> Chunks:
    """Return the verbs: in English, the one that agrees in German, what closes it."""
    base, third, past = clause.verb.english_forms
    infinitive, er_form, participle, *prefix = clause.verb.german.split()
    place = dictionary.FORMS.index(clause.subject.form)
    he = clause.subject.form == "er"
    if clause.tense in dictionary.MODALS:
        modal, modal_german = dictionary.MODALS[clause.tense]
        first = modal.split(", ")[he], modal_german.split()[place], ""
        return first, (base, "", "".join(prefix) + infinitive)
    if clause.tense == "past":
        auxiliary = dictionary.SEIN if clause.verb.being else dictionary.HABEN
        return ((past, auxiliary.split()[place], participle),)
    # Among these verbs, "wissen" alone has an ich-form like its er-form: ich weiß.
    stem = infinitive.removesuffix("en")
    ich_form = er_form if infinitive == "wissen" else stem + "e"
    present = (ich_form, er_form, infinitive)[place]
    return ((third if he else base, present, "".join(prefix)),)


def _noun_phrase(phrase: NounPhrase | Pronoun | None, case: str) -> Chunks:
    """Return article, adjective and noun: the same order in both languages."""
    if phrase is None:
        return ()
    if isinstance(phrase, Pronoun):
        return ((phrase.english, phrase.german),)
    noun, plural, article, adjective = phrase
    gender = "plural" if plural else noun.gender
    said, said_german = noun.english.split()[plural], noun.german.split()[plural]
    if plural and case == "dative":
        said_german = said_german.removesuffix("n") + "n"
    chunks = [(said, said_german)]
    if adjective:
        ending = _adjective_ending(article, gender, case)
        chunks.insert(0, (adjective.english, adjective.german + ending))
    vowel = article == "a" and chunks[0][0][0] in "aeiou"
    return (article + "n" * vowel, _article(article, gender, case)), *chunks


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
