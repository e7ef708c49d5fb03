"""The verbs of the generated corpus, and what each of them needs around it.

What follows a rule is not listed: the ich-form and the wir-form. What does not is: the
er-form, the participle, the auxiliary.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verb:
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

    english: tuple[str, str, str]
    german: tuple[str, str, str]
    particle: str = ""
    prefix: str = ""
    doers: str = "person"
    objects: str = ""
    case: str = "accusative"
    receiver: bool = False
    anywhere: bool = False
    being: bool = False
    clause: bool = False


@dataclass(frozen=True)
class Modal:
    """A verb that sends the other verb, as an infinitive, to the end in German."""

    english: tuple[str, str]  # base form, third person
    german: dict[str, str]  # ich-, er- and wir-form
    particle: str = ""


VERBS = (
    Verb(
        ("sleep", "sleeps", "slept"),
        ("schlafen", "schläft", "geschlafen"),
        doers="person animal",
        anywhere=True,
    ),
    Verb(
        ("work", "works", "worked"),
        ("arbeiten", "arbeitet", "gearbeitet"),
        anywhere=True,
    ),
    Verb(("sing", "sings", "sang"), ("singen", "singt", "gesungen"), anywhere=True),
    Verb(("dance", "dances", "danced"), ("tanzen", "tanzt", "getanzt"), anywhere=True),
    Verb(
        ("get", "gets", "got"),
        ("stehen", "steht", "aufgestanden"),
        particle="up",
        prefix="auf",
        being=True,
    ),
    Verb(
        ("arrive", "arrives", "arrived"),
        ("kommen", "kommt", "angekommen"),
        prefix="an",
        being=True,
    ),
    Verb(
        ("run", "runs", "ran"),
        ("laufen", "läuft", "weggelaufen"),
        particle="away",
        prefix="weg",
        doers="person animal",
        being=True,
    ),
    Verb(
        ("see", "sees", "saw"),
        ("sehen", "sieht", "gesehen"),
        doers="person animal",
        objects="person animal thing",
        anywhere=True,
    ),
    Verb(
        ("look", "looks", "looked"),
        ("suchen", "sucht", "gesucht"),
        particle="for",
        doers="person animal",
        objects="person animal thing",
        anywhere=True,
    ),
    Verb(
        ("find", "finds", "found"),
        ("finden", "findet", "gefunden"),
        objects="animal thing",
        anywhere=True,
    ),
    Verb(
        ("draw", "draws", "drew"),
        ("zeichnen", "zeichnet", "gezeichnet"),
        objects="person animal thing",
        anywhere=True,
    ),
    Verb(
        ("buy", "buys", "bought"),
        ("kaufen", "kauft", "gekauft"),
        objects="animal thing",
    ),
    Verb(
        ("bring", "brings", "brought"),
        ("bringen", "bringt", "zurückgebracht"),
        particle="back",
        prefix="zurück",
        objects="animal thing",
    ),
    Verb(
        ("visit", "visits", "visited"),
        ("besuchen", "besucht", "besucht"),
        objects="person",
    ),
    Verb(
        ("call", "calls", "called"),
        ("rufen", "ruft", "angerufen"),
        prefix="an",
        objects="person",
    ),
    Verb(
        ("invite", "invites", "invited"),
        ("laden", "lädt", "eingeladen"),
        prefix="ein",
        objects="person",
    ),
    Verb(
        ("pick", "picks", "picked"),
        ("holen", "holt", "abgeholt"),
        particle="up",
        prefix="ab",
        objects="person",
    ),
    Verb(
        ("help", "helps", "helped"),
        ("helfen", "hilft", "geholfen"),
        objects="person animal",
        case="dative",
    ),
    Verb(
        ("thank", "thanks", "thanked"),
        ("danken", "dankt", "gedankt"),
        objects="person",
        case="dative",
    ),
    Verb(
        ("give", "gives", "gave"),
        ("geben", "gibt", "gegeben"),
        objects="thing",
        receiver=True,
    ),
    Verb(
        ("show", "shows", "showed"),
        ("zeigen", "zeigt", "gezeigt"),
        objects="animal thing",
        receiver=True,
    ),
    Verb(
        ("send", "sends", "sent"),
        ("schicken", "schickt", "geschickt"),
        objects="thing",
        receiver=True,
    ),
    Verb(("know", "knows", "knew"), ("wissen", "weiß", "gewusst"), clause=True),
    Verb(("say", "says", "said"), ("sagen", "sagt", "gesagt"), clause=True),
    Verb(
        ("think", "thinks", "thought"), ("glauben", "glaubt", "geglaubt"), clause=True
    ),
    Verb(("hope", "hopes", "hoped"), ("hoffen", "hofft", "gehofft"), clause=True),
)

MODALS = {
    "can": Modal(("can", "can"), {"ich": "kann", "er": "kann", "wir": "können"}),
    "must": Modal(("must", "must"), {"ich": "muss", "er": "muss", "wir": "müssen"}),
    "want": Modal(
        ("want", "wants"), {"ich": "will", "er": "will", "wir": "wollen"}, "to"
    ),
    "will": Modal(("will", "will"), {"ich": "werde", "er": "wird", "wir": "werden"}),
}
HABEN = {"ich": "habe", "er": "hat", "wir": "haben"}
SEIN = {"ich": "bin", "er": "ist", "wir": "sind"}
