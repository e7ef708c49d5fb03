"""The dictionary of the generated sentences, English and German.

What follows a rule is not listed: the third person in English; in German the dative
plural, the endings of adjectives, the ich-form and the wir-form of a verb. What does
not is: genders, plurals, participles.
"""

from typing import NamedTuple

# Kinds of nouns
PEOPLE, THINGS = ("person",), ("thing",)
ALIVE, GOODS = ("person", "animal"), ("animal", "thing")
ANY = ("person", "animal", "thing")


class Chunk(NamedTuple):
    """A piece of a sentence in both languages.

    Attributes:
        english: in English.
        german: in German.
        closing: what else it has in German, at the end of the clause.
    """

    english: str
    german: str
    closing: str = ""


Phrase = tuple[Chunk, ...]


class Noun(NamedTuple):
    """A noun.

    Attributes:
        english: singular.
        english_plural: "men".
        gender: "m", "f" or "n".
        german: singular, nominative.
        german_plural: nominative.
        kind: "person", "animal" or "thing".
        owned: whether one says "my": not of a man or a girl, whom one has not.
    """

    english: str
    english_plural: str
    gender: str
    german: str
    german_plural: str
    kind: str
    owned: bool = True


class Adjective(NamedTuple):
    """An adjective, the German one without its ending; kinds of nouns it describes."""

    english: str
    german: str
    kinds: tuple[str, ...]


class Pronoun(NamedTuple):
    """A pronoun; form says which form of a German verb it takes: ich, er or wir."""

    english: str
    german: str
    form: str


class Verb(NamedTuple):
    """A verb and what it needs around it.

    Attributes:
        english: base form.
        english_past: simple past.
        infinitive: in German, without prefix.
        er_form: in German, without prefix.
        participle: in German, with its prefix.
        prefix: the separable one, "auf" of "aufstehen".
        objects: kinds of nouns that may be its object; none if empty.
        doers: kinds of nouns that may be its subject.
        case: case of the object in German.
        receiver: takes a person before the object ("gives the child a book").
        anywhere: may be followed by a place.
        being: perfect tense with "sein", not with "haben".
    """

    english: str
    english_past: str
    infinitive: str
    er_form: str
    participle: str
    prefix: str = ""
    objects: tuple[str, ...] = ()
    doers: tuple[str, ...] = PEOPLE
    case: str = "accusative"
    receiver: bool = False
    anywhere: bool = False
    being: bool = False

    @property
    def english_third(self) -> str:
        """The third person, "gets up"."""
        verb, *particle = self.english.split()
        return " ".join([f"{verb}s", *particle])


class Modal(NamedTuple):
    """A verb that sends another, an infinitive, to the end of a German clause.

    Attributes:
        english: base form.
        english_third: third person.
        german: its forms, as of "haben" and "sein".
    """

    english: str
    english_third: str
    german: dict[str, str]


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
    Adjective("old", "alt", ANY),
    Adjective("little", "klein", ANY),
    Adjective("beautiful", "schön", ANY),
    Adjective("young", "jung", ALIVE),
    Adjective("tired", "müd", ALIVE),
    Adjective("happy", "glücklich", PEOPLE),
    Adjective("big", "groß", ANY),
    Adjective("new", "neu", THINGS),
    Adjective("red", "rot", THINGS),
)
PRONOUNS = (
    Pronoun("I", "ich", "ich"),
    Pronoun("he", "er", "er"),
    Pronoun("she", "sie", "er"),
    Pronoun("we", "wir", "wir"),
    Pronoun("they", "sie", "wir"),  # the verb tells "sie" from "sie"
)
ACTIONS = (
    Verb(
        "sleep",
        "slept",
        "schlafen",
        "schläft",
        "geschlafen",
        doers=ALIVE,
        anywhere=True,
    ),
    Verb("work", "worked", "arbeiten", "arbeitet", "gearbeitet", anywhere=True),
    Verb("sing", "sang", "singen", "singt", "gesungen", anywhere=True),
    Verb("dance", "danced", "tanzen", "tanzt", "getanzt", anywhere=True),
    Verb(
        "get up", "got up", "stehen", "steht", "aufgestanden", prefix="auf", being=True
    ),
    Verb("arrive", "arrived", "kommen", "kommt", "angekommen", prefix="an", being=True),
    Verb(
        "run away",
        "ran away",
        "laufen",
        "läuft",
        "weggelaufen",
        prefix="weg",
        doers=ALIVE,
        being=True,
    ),
    Verb(
        "see",
        "saw",
        "sehen",
        "sieht",
        "gesehen",
        objects=ANY,
        doers=ALIVE,
        anywhere=True,
    ),
    Verb(
        "look for",
        "looked for",
        "suchen",
        "sucht",
        "gesucht",
        objects=ANY,
        doers=ALIVE,
        anywhere=True,
    ),
    Verb("find", "found", "finden", "findet", "gefunden", objects=GOODS, anywhere=True),
    Verb(
        "draw", "drew", "zeichnen", "zeichnet", "gezeichnet", objects=ANY, anywhere=True
    ),
    Verb("buy", "bought", "kaufen", "kauft", "gekauft", objects=GOODS),
    Verb(
        "bring back",
        "brought back",
        "bringen",
        "bringt",
        "zurückgebracht",
        prefix="zurück",
        objects=GOODS,
    ),
    Verb("visit", "visited", "besuchen", "besucht", "besucht", objects=PEOPLE),
    Verb("call", "called", "rufen", "ruft", "angerufen", prefix="an", objects=PEOPLE),
    Verb(
        "invite", "invited", "laden", "lädt", "eingeladen", prefix="ein", objects=PEOPLE
    ),
    Verb(
        "pick up", "picked up", "holen", "holt", "abgeholt", prefix="ab", objects=PEOPLE
    ),
    Verb("help", "helped", "helfen", "hilft", "geholfen", objects=ALIVE, case="dative"),
    Verb(
        "thank", "thanked", "danken", "dankt", "gedankt", objects=PEOPLE, case="dative"
    ),
    Verb("give", "gave", "geben", "gibt", "gegeben", objects=THINGS, receiver=True),
    Verb("show", "showed", "zeigen", "zeigt", "gezeigt", objects=GOODS, receiver=True),
    Verb(
        "send",
        "sent",
        "schicken",
        "schickt",
        "geschickt",
        objects=THINGS,
        receiver=True,
    ),
)
THOUGHTS = (  # their object is a sentence with "that"
    Verb("know", "knew", "wissen", "weiß", "gewusst"),
    Verb("say", "said", "sagen", "sagt", "gesagt"),
    Verb("think", "thought", "glauben", "glaubt", "geglaubt"),
    Verb("hope", "hoped", "hoffen", "hofft", "gehofft"),
)
MODALS = {
    "can": Modal("can", "can", {"ich": "kann", "er": "kann", "wir": "können"}),
    "must": Modal("must", "must", {"ich": "muss", "er": "muss", "wir": "müssen"}),
    "want": Modal(
        "want to", "wants to", {"ich": "will", "er": "will", "wir": "wollen"}
    ),
    "will": Modal("will", "will", {"ich": "werde", "er": "wird", "wir": "werden"}),
}
HABEN = {"ich": "habe", "er": "hat", "wir": "haben"}
SEIN = {"ich": "bin", "er": "ist", "wir": "sind"}
CONJUNCTIONS = {"that": "dass", "because": "weil", "if": "wenn"}

PLACES: tuple[Phrase, ...] = (
    (Chunk("in the", "im"), Chunk("garden", "Garten")),
    (Chunk("in the", "im"), Chunk("house", "Haus")),
    (Chunk("in", "in"), Chunk("the", "der"), Chunk("city", "Stadt")),
    (Chunk("in", "in"), Chunk("the", "der"), Chunk("kitchen", "Küche")),
)
_EVERY_DAY = Chunk("every", "jeden"), Chunk("day", "Tag")
_ON_SUNDAY = Chunk("on", "am"), Chunk("Sunday", "Sonntag")
TIMES: dict[str, tuple[Phrase, ...]] = {
    "present": (
        _EVERY_DAY,
        (Chunk("often", "oft"),),
        (Chunk("sometimes", "manchmal"),),
    ),
    "past": ((Chunk("yesterday", "gestern"),), _ON_SUNDAY),
    "modal": (
        (Chunk("today", "heute"),),
        (Chunk("tomorrow", "morgen"),),
        _ON_SUNDAY,
    ),
}
