"""A tree in German words: where the verb stands, and what agrees with what."""

from transformer_lib.data.corpora.grammar.tree import (
    Clause,
    NounPhrase,
    Sentence,
    Word,
    fixed_phrase,
    form_of,
    inside,
)
from transformer_lib.data.corpora.grammar.verbs import HABEN, MODALS, SEIN, Modal, Verb
from transformer_lib.data.corpora.grammar.words import CONJUNCTIONS, Pronoun


def german(sentence: Sentence) -> list[Word]:
    """Say it in German.

    The verb comes second in a main clause, first after a clause that opens the
    sentence, and last behind a conjunction.
    """
    if sentence.second is None:
        return inside("main", _german_clause(sentence.main, verb="second"))
    second = inside("second", _german_clause(sentence.second, verb="last"))
    link = [Word(CONJUNCTIONS[sentence.conjunction], "conjunction")]
    comma = [Word(",", "comma")]
    if sentence.conjunction == "if":
        main = inside("main", _german_clause(sentence.main, verb="first"))
        return link + second + comma + main
    main = inside("main", _german_clause(sentence.main, verb="second"))
    return main + comma + link + second


def _german_clause(clause: Clause, verb: str) -> list[Word]:
    subject = _german_noun_phrase(clause.subject, "nominative", "subject")
    time = fixed_phrase(clause.time, 1, "time")
    middle = _german_noun_phrase(clause.receiver, "dative", "receiver")
    middle += _german_noun_phrase(clause.object, clause.verb.case, "object")
    middle += fixed_phrase(clause.place, 1, "place")
    finite, end = _german_verbs(clause)
    if verb == "last":
        if clause.tense == "present" and end:  # "auf" and "steht" become "aufsteht"
            end, finite = [], [Word(end[0].text + finite[0].text, "verb")]
        return subject + time + middle + end + finite
    if verb == "first":
        return finite + subject + time + middle + end
    if clause.time_first:
        return time + finite + subject + middle + end
    return subject + finite + time + middle + end


def _german_verbs(clause: Clause) -> tuple[list[Word], list[Word]]:
    """Return the verb that agrees with the subject, and what closes the clause."""
    verb, form = clause.verb, form_of(clause.subject)
    if clause.tense in MODALS:
        modal: Modal = MODALS[clause.tense]
        infinitive = verb.prefix + verb.german[0]
        return [Word(modal.german[form], "modal")], [Word(infinitive, "verb")]
    if clause.tense == "past":
        auxiliary = (SEIN if verb.being else HABEN)[form]
        return [Word(auxiliary, "verb")], [Word(verb.german[2], "verb")]
    prefix = [Word(verb.prefix, "verb")] if verb.prefix else []
    return [Word(_present(verb, form), "verb")], prefix


def _present(verb: Verb, form: str) -> str:
    infinitive, er_form, _ = verb.german
    if form == "wir":
        return infinitive
    if form == "er" or infinitive == "wissen":  # ich weiß, er weiß
        return er_form
    return infinitive.removesuffix("en") + "e"


def _german_noun_phrase(
    phrase: NounPhrase | Pronoun | None, case: str, role: str
) -> list[Word]:
    if phrase is None:
        return []
    if isinstance(phrase, Pronoun):
        return [Word(phrase.german, f"{role} noun")]
    noun = phrase.noun.german
    if phrase.plural:
        noun = phrase.noun.german_plural
        if case == "dative" and not noun.endswith("n"):
            noun += "n"
    gender = "plural" if phrase.plural else phrase.noun.gender
    texts = {"article": _article(phrase.article, gender, case)}
    if phrase.adjective:
        ending = _adjective_ending(phrase.article, gender, case)
        texts["adjective"] = phrase.adjective.german + ending
    texts["noun"] = noun
    return [Word(text, f"{role} {part}") for part, text in texts.items() if text]


_THE = {
    "nominative": {"m": "der", "f": "die", "n": "das", "plural": "die"},
    "accusative": {"m": "den", "f": "die", "n": "das", "plural": "die"},
    "dative": {"m": "dem", "f": "der", "n": "dem", "plural": "den"},
}
_A_ENDING = {
    "nominative": {"m": "", "f": "e", "n": "", "plural": "e"},
    "accusative": {"m": "en", "f": "e", "n": "", "plural": "e"},
    "dative": {"m": "em", "f": "er", "n": "em", "plural": "en"},
}


def _article(article: str, gender: str, case: str) -> str:
    if article == "the":
        return _THE[case][gender]
    stem = {"a": "ein", "my": "mein", "": ""}[article]
    return stem and stem + _A_ENDING[case][gender]


def _adjective_ending(article: str, gender: str, case: str) -> str:
    """Return the ending: what the article does not show, the adjective must show."""
    if case == "dative":
        return "en"
    if gender == "plural":
        return "en" if article else "e"
    if gender == "m" and case == "accusative":
        return "en"
    if article == "the" or gender == "f":
        return "e"
    return {"m": "er", "n": "es"}[gender]
