"""The dictionary of the generated corpus: nouns, adjectives, pronouns, fixed phrases.

What follows a rule is not listed: the dative plural and the endings of adjectives.
What does not is: genders and plurals. The verbs have a module of their own.
"""

from dataclasses import dataclass

Chunks = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Noun:
    """A noun; gender is "m", "f" or "n", kind is "person", "animal" or "thing".

    One does not say "my man" or "my girl" of whom one has not: owned is False there.
    """

    english: str
    english_plural: str
    gender: str
    german: str
    german_plural: str
    kind: str
    owned: bool = True


@dataclass(frozen=True)
class Adjective:
    """An adjective, the German one without its ending; kinds of nouns it describes."""

    english: str
    german: str
    kinds: str


@dataclass(frozen=True)
class Pronoun:
    """A pronoun; form says which form of a German verb it takes: ich, er or wir."""

    english: str
    german: str
    form: str


NOUNS = (
    Noun("man", "men", "m", "Mann", "Männer", "person", owned=False),
    Noun("woman", "women", "f", "Frau", "Frauen", "person", owned=False),
    Noun("child", "children", "n", "Kind", "Kinder", "person"),
    Noun("friend", "friends", "m", "Freund", "Freunde", "person"),
    Noun("daughter", "daughters", "f", "Tochter", "Töchter", "person"),
    Noun("girl", "girls", "n", "Mädchen", "Mädchen", "person", owned=False),
    Noun("teacher", "teachers", "m", "Lehrer", "Lehrer", "person"),
    Noun("aunt", "aunts", "f", "Tante", "Tanten", "person"),
    Noun("dog", "dogs", "m", "Hund", "Hunde", "animal"),
    Noun("cat", "cats", "f", "Katze", "Katzen", "animal"),
    Noun("horse", "horses", "n", "Pferd", "Pferde", "animal"),
    Noun("apple", "apples", "m", "Apfel", "Äpfel", "thing"),
    Noun("flower", "flowers", "f", "Blume", "Blumen", "thing"),
    Noun("book", "books", "n", "Buch", "Bücher", "thing"),
    Noun("letter", "letters", "m", "Brief", "Briefe", "thing"),
    Noun("lamp", "lamps", "f", "Lampe", "Lampen", "thing"),
    Noun("picture", "pictures", "n", "Bild", "Bilder", "thing"),
    Noun("key", "keys", "m", "Schlüssel", "Schlüssel", "thing"),
    Noun("bicycle", "bicycles", "n", "Fahrrad", "Fahrräder", "thing"),
)

ADJECTIVES = (
    Adjective("old", "alt", "person animal thing"),
    Adjective("little", "klein", "person animal thing"),
    Adjective("beautiful", "schön", "person animal thing"),
    Adjective("young", "jung", "person animal"),
    Adjective("tired", "müd", "person animal"),
    Adjective("happy", "glücklich", "person"),
    Adjective("big", "groß", "person animal thing"),
    Adjective("new", "neu", "thing"),
    Adjective("red", "rot", "thing"),
)

PRONOUNS = (
    Pronoun("I", "ich", "ich"),
    Pronoun("he", "er", "er"),
    Pronoun("she", "sie", "er"),
    Pronoun("we", "wir", "wir"),
    Pronoun("they", "sie", "wir"),  # the verb tells "sie" from "sie"
)

# Fixed phrases, as pairs of words that translate each other.
PLACES: tuple[Chunks, ...] = (
    (("in the", "im"), ("garden", "Garten")),
    (("in the", "im"), ("house", "Haus")),
    (("in", "in"), ("the", "der"), ("city", "Stadt")),
    (("in", "in"), ("the", "der"), ("kitchen", "Küche")),
)
TIMES: dict[str, tuple[Chunks, ...]] = {
    "present": (
        (("every", "jeden"), ("day", "Tag")),
        (("often", "oft"),),
        (("sometimes", "manchmal"),),
    ),
    "past": (
        (("yesterday", "gestern"),),
        (("on", "am"), ("Sunday", "Sonntag")),
    ),
    "modal": (
        (("today", "heute"),),
        (("tomorrow", "morgen"),),
        (("on", "am"), ("Sunday", "Sonntag")),
    ),
}
CONJUNCTIONS = {"that": "dass", "because": "weil", "if": "wenn"}
