"""The dictionary of the generated sentences, English and German.

What follows a rule is not listed: the third person in English; in German the dative
plural, the endings of adjectives, the ich-form and the wir-form of a verb. What does
not is: genders, plurals, participles.
"""

from typing import NamedTuple

# Pieces of a sentence, in English and in German, that translate each other.
Chunks = tuple[tuple[str, ...], ...]
ALIVE, GOODS, ANY = "person animal", "animal thing", "person animal thing"
FORMS = "ich", "er", "wir"


class Noun(NamedTuple):
    """A noun, singular and plural.

    Gender is "m", "f" or "n", kind is "person", "animal" or "thing". One does not say
    "my man" or "my girl" of whom one has not: owned is False there.
    """

    english: str
    gender: str
    german: str
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
        english: base form and simple past.
        german: infinitive and er-form, both without prefix, and past participle; the
            separable prefix ("auf" of "aufstehen").
        objects: kinds of nouns that may be its object; none if empty.
        doers: kinds of nouns that may be its subject.
        case: case of the object in German.
        receiver: takes a person before the object ("gives the child a book").
        anywhere: may be followed by a place.
        being: perfect tense with "sein", not with "haben".
    """

    english: str
    german: str
    objects: str = ""
    doers: str = "person"
    case: str = "accusative"
    receiver: bool = False
    anywhere: bool = False
    being: bool = False

    @property
    def english_forms(self) -> tuple[str, str, str]:
        """Base form, third person ("gets up") and simple past."""
        base, past = self.english.split(", ")
        verb, *particle = base.split()
        return base, " ".join([f"{verb}s", *particle]), past


NOUNS = (
    Noun("man men", "m", "Mann Männer", "person", owned=False),
    Noun("woman women", "f", "Frau Frauen", "person", owned=False),
    Noun("child children", "n", "Kind Kinder", "person"),
    Noun("friend friends", "m", "Freund Freunde", "person"),
    Noun("daughter daughters", "f", "Tochter Töchter", "person"),
    Noun("girl girls", "n", "Mädchen Mädchen", "person", owned=False),
    Noun("teacher teachers", "m", "Lehrer Lehrer", "person"),
    Noun("aunt aunts", "f", "Tante Tanten", "person"),
    Noun("dog dogs", "m", "Hund Hunde", "animal"),
    Noun("cat cats", "f", "Katze Katzen", "animal"),
    Noun("horse horses", "n", "Pferd Pferde", "animal"),
    Noun("apple apples", "m", "Apfel Äpfel", "thing"),
    Noun("flower flowers", "f", "Blume Blumen", "thing"),
    Noun("book books", "n", "Buch Bücher", "thing"),
    Noun("letter letters", "m", "Brief Briefe", "thing"),
    Noun("lamp lamps", "f", "Lampe Lampen", "thing"),
    Noun("picture pictures", "n", "Bild Bilder", "thing"),
    Noun("key keys", "m", "Schlüssel Schlüssel", "thing"),
    Noun("bicycle bicycles", "n", "Fahrrad Fahrräder", "thing"),
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
ACTIONS = (
    Verb("sleep, slept", "schlafen schläft geschlafen", "", ALIVE, anywhere=True),
    Verb("work, worked", "arbeiten arbeitet gearbeitet", anywhere=True),
    Verb("sing, sang", "singen singt gesungen", anywhere=True),
    Verb("dance, danced", "tanzen tanzt getanzt", anywhere=True),
    Verb("get up, got up", "stehen steht aufgestanden auf", being=True),
    Verb("arrive, arrived", "kommen kommt angekommen an", being=True),
    Verb("run away, ran away", "laufen läuft weggelaufen weg", "", ALIVE, being=True),
    Verb("see, saw", "sehen sieht gesehen", ANY, ALIVE, anywhere=True),
    Verb("look for, looked for", "suchen sucht gesucht", ANY, ALIVE, anywhere=True),
    Verb("find, found", "finden findet gefunden", GOODS, anywhere=True),
    Verb("draw, drew", "zeichnen zeichnet gezeichnet", ANY, anywhere=True),
    Verb("buy, bought", "kaufen kauft gekauft", GOODS),
    Verb("bring back, brought back", "bringen bringt zurückgebracht zurück", GOODS),
    Verb("visit, visited", "besuchen besucht besucht", "person"),
    Verb("call, called", "rufen ruft angerufen an", "person"),
    Verb("invite, invited", "laden lädt eingeladen ein", "person"),
    Verb("pick up, picked up", "holen holt abgeholt ab", "person"),
    Verb("help, helped", "helfen hilft geholfen", ALIVE, case="dative"),
    Verb("thank, thanked", "danken dankt gedankt", "person", case="dative"),
    Verb("give, gave", "geben gibt gegeben", "thing", receiver=True),
    Verb("show, showed", "zeigen zeigt gezeigt", GOODS, receiver=True),
    Verb("send, sent", "schicken schickt geschickt", "thing", receiver=True),
)
THOUGHTS = (  # their object is a sentence with "that"
    Verb("know, knew", "wissen weiß gewusst"),
    Verb("say, said", "sagen sagt gesagt"),
    Verb("think, thought", "glauben glaubt geglaubt"),
    Verb("hope, hoped", "hoffen hofft gehofft"),
)
# They send the other verb, as an infinitive, to the end of a German clause. In English
# base form and third person; in German ich-, er- and wir-form, as of "haben", "sein".
MODALS = {
    "can": ("can, can", "kann kann können"),
    "must": ("must, must", "muss muss müssen"),
    "want": ("want to, wants to", "will will wollen"),
    "will": ("will, will", "werde wird werden"),
}
HABEN, SEIN = "habe hat haben", "bin ist sind"
CONJUNCTIONS = {"that": "dass", "because": "weil", "if": "wenn"}

# Fixed phrases.
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
