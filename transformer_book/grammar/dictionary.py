"""The dictionary of the generated sentences, English and German.

What follows a rule is not listed: the dative plural, the endings of adjectives, the
ich-form and the wir-form of a verb. What does not is: genders, plurals, participles.
"""

from typing import NamedTuple

Chunks = tuple[tuple[str, str], ...]
ALIVE, GOODS, ANY = "person animal", "animal thing", "person animal thing"
FORMS = "ich", "er", "wir"


class Noun(NamedTuple):
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


class Adjective(NamedTuple):
    """An adjective, the German one without its ending; kinds of nouns it describes."""

    english: str
    german: str
    kinds: str


class Pronoun(NamedTuple):
    """A pronoun; form says which form of a German verb it takes: ich, er or wir."""

    english: str
    german: str
    form: str


class Verb(NamedTuple):
    """A verb and what it needs around it.

    Attributes:
        english: base form, third person, simple past.
        german: infinitive, er-form and past participle; the first two without prefix.
        particle: second word of the English verb ("up" of "get up").
        prefix: separable prefix of the German verb ("auf" of "aufstehen").
        doers: kinds of nouns that may be its subject.
        objects: kinds of nouns that may be its object; none if empty.
        case: case of the object in German.
        receiver: takes a person before the object ("gives the child a book").
        anywhere: may be followed by a place.
        being: perfect tense with "sein", not with "haben".
        clause: its object is a sentence with "that".
    """

    english: str
    german: str
    particle: str = ""
    prefix: str = ""
    doers: str = "person"
    objects: str = ""
    case: str = "accusative"
    receiver: bool = False
    anywhere: bool = False
    being: bool = False
    clause: bool = False


class Modal(NamedTuple):
    """A verb that sends the other verb, as an infinitive, to the end in German."""

    english: str  # base form, third person
    german: str  # ich-, er- and wir-form
    particle: str = ""


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
    Adjective("happy", "glücklich", "person"),
    Adjective("big", "groß", ANY),
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
VERBS = (
    Verb(
        "sleep sleeps slept", "schlafen schläft geschlafen", doers=ALIVE, anywhere=True
    ),
    Verb("work works worked", "arbeiten arbeitet gearbeitet", anywhere=True),
    Verb("sing sings sang", "singen singt gesungen", anywhere=True),
    Verb("dance dances danced", "tanzen tanzt getanzt", anywhere=True),
    Verb("get gets got", "stehen steht aufgestanden", "up", "auf", being=True),
    Verb("arrive arrives arrived", "kommen kommt angekommen", "", "an", being=True),
    Verb("run runs ran", "laufen läuft weggelaufen", "away", "weg", ALIVE, being=True),
    Verb("see sees saw", "sehen sieht gesehen", "", "", ALIVE, ANY, anywhere=True),
    Verb(
        *("look looks looked", "suchen sucht gesucht", "for", "", ALIVE, ANY),
        anywhere=True,
    ),
    Verb("find finds found", "finden findet gefunden", objects=GOODS, anywhere=True),
    Verb("draw draws drew", "zeichnen zeichnet gezeichnet", objects=ANY, anywhere=True),
    Verb("buy buys bought", "kaufen kauft gekauft", objects=GOODS),
    Verb(
        *("bring brings brought", "bringen bringt zurückgebracht", "back", "zurück"),
        objects=GOODS,
    ),
    Verb("visit visits visited", "besuchen besucht besucht", objects="person"),
    Verb("call calls called", "rufen ruft angerufen", "", "an", objects="person"),
    Verb(
        "invite invites invited", "laden lädt eingeladen", "", "ein", objects="person"
    ),
    Verb("pick picks picked", "holen holt abgeholt", "up", "ab", objects="person"),
    Verb("help helps helped", "helfen hilft geholfen", objects=ALIVE, case="dative"),
    Verb(
        "thank thanks thanked", "danken dankt gedankt", objects="person", case="dative"
    ),
    Verb("give gives gave", "geben gibt gegeben", objects="thing", receiver=True),
    Verb("show shows showed", "zeigen zeigt gezeigt", objects=GOODS, receiver=True),
    Verb(
        "send sends sent", "schicken schickt geschickt", objects="thing", receiver=True
    ),
    Verb("know knows knew", "wissen weiß gewusst", clause=True),
    Verb("say says said", "sagen sagt gesagt", clause=True),
    Verb("think thinks thought", "glauben glaubt geglaubt", clause=True),
    Verb("hope hopes hoped", "hoffen hofft gehofft", clause=True),
)
MODALS = {
    "can": Modal("can can", "kann kann können"),
    "must": Modal("must must", "muss muss müssen"),
    "want": Modal("want wants", "will will wollen", "to"),
    "will": Modal("will will", "werde wird werden"),
}
HABEN, SEIN = "habe hat haben", "bin ist sind"  # ich-, er- and wir-form
CONJUNCTIONS = {"that": "dass", "because": "weil", "if": "wenn"}

# Fixed phrases, as pairs of words that translate each other.
_SUNDAY = ("on", "am"), ("Sunday", "Sonntag")
_EVERY_DAY = ("every", "jeden"), ("day", "Tag")
PLACES: tuple[Chunks, ...] = (
    (("in the", "im"), ("garden", "Garten")),
    (("in the", "im"), ("house", "Haus")),
    (("in", "in"), ("the", "der"), ("city", "Stadt")),
    (("in", "in"), ("the", "der"), ("kitchen", "Küche")),
)
TIMES: dict[str, tuple[Chunks, ...]] = {
    "present": (_EVERY_DAY, (("often", "oft"),), (("sometimes", "manchmal"),)),
    "past": ((("yesterday", "gestern"),), _SUNDAY),
    "modal": ((("today", "heute"),), (("tomorrow", "morgen"),), _SUNDAY),
}
