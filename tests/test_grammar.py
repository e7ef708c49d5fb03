"""The generated sentences: right German, one answer for every one, exact links."""

import pytest

from transformer_book.grammar import Example, explain, generate, translate
from transformer_book.grammar.dictionary import ADJECTIVES, NOUNS, VERBS
from transformer_lib import split_words
from transformer_lib.data import corpora

# Translated by hand.
SENTENCES = {
    # the verb second, whatever comes first
    "the man buys a book every day": "der Mann kauft jeden Tag ein Buch",
    "every day the man buys a book": "jeden Tag kauft der Mann ein Buch",
    # the verb last behind a conjunction, first after a clause
    "I know that the cat sleeps": "ich weiß, dass die Katze schläft",
    "she sings because he dances in the kitchen every day": (
        "sie singt, weil er jeden Tag in der Küche tanzt"
    ),
    "if the dog runs away, we look for the dog": (
        "wenn der Hund wegläuft, suchen wir den Hund"
    ),
    # separable prefixes: apart, together, as an infinitive, as a participle
    "he gets up": "er steht auf",
    "they say that he gets up": "sie sagen, dass er aufsteht",
    "he must get up today": "er muss heute aufstehen",
    "he got up yesterday": "er ist gestern aufgestanden",
    # perfect tense: haben or sein, the participle last, before the auxiliary if last
    "yesterday I saw a horse in the garden": (
        "gestern habe ich ein Pferd im Garten gesehen"
    ),
    "he hopes that the children arrived on Sunday": (
        "er hofft, dass die Kinder am Sonntag angekommen sind"
    ),
    # "will" is not "will"
    "the woman will call my aunt": "die Frau wird meine Tante anrufen",
    "the woman wants to call my aunt": "die Frau will meine Tante anrufen",
    "I will help a child because I can help children": (
        "ich werde einem Kind helfen, weil ich Kindern helfen kann"
    ),
    # gender, case and number of articles and adjectives
    "an old man thanks an old woman": "ein alter Mann dankt einer alten Frau",
    "the old woman thanks the old man": "die alte Frau dankt dem alten Mann",
    "a little girl sees a little dog": "ein kleines Mädchen sieht einen kleinen Hund",
    "the little dog sees the little girl": "der kleine Hund sieht das kleine Mädchen",
    "my young aunts help my young friends": (
        "meine jungen Tanten helfen meinen jungen Freunden"
    ),
    "tired aunts help tired dogs": "müde Tanten helfen müden Hunden",
    "the child gives the little girls new lamps": (
        "das Kind gibt den kleinen Mädchen neue Lampen"
    ),
    "my daughter showed an old teacher the big picture": (
        "meine Tochter hat einem alten Lehrer das große Bild gezeigt"
    ),
}
CORPUS = generate(2000, seed=5)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_translation_is_the_one_made_by_hand(sentence) -> None:
    assert translate(sentence) == SENTENCES[sentence]


# Written down a second time, without looking at the dictionary.
NOUN_FORMS = """
der Mann die Männer, die Frau die Frauen, das Kind die Kinder, der Freund die Freunde,
die Tochter die Töchter, das Mädchen die Mädchen, der Lehrer die Lehrer, die Tante die
Tanten, der Hund die Hunde, die Katze die Katzen, das Pferd die Pferde, der Apfel die
Äpfel, die Blume die Blumen, das Buch die Bücher, der Brief die Briefe, die Lampe die
Lampen, das Bild die Bilder, der Schlüssel die Schlüssel, das Fahrrad die Fahrräder
"""
VERB_FORMS = """
schläft hat geschlafen, arbeitet hat gearbeitet, singt hat gesungen, tanzt hat getanzt,
aufsteht ist aufgestanden, ankommt ist angekommen, wegläuft ist weggelaufen, sieht hat
gesehen, sucht hat gesucht, findet hat gefunden, zeichnet hat gezeichnet, kauft hat
gekauft, zurückbringt hat zurückgebracht, besucht hat besucht, anruft hat angerufen,
einlädt hat eingeladen, abholt hat abgeholt, hilft hat geholfen, dankt hat gedankt, gibt
hat gegeben, zeigt hat gezeigt, schickt hat geschickt
"""


def test_genders_and_plurals() -> None:
    found = [
        translate(f"the {noun.english} sleeps").removesuffix("schläft")
        + translate(f"the {noun.english_plural} sleep").removesuffix(" schlafen")
        for noun in NOUNS
    ]
    assert found == " ".join(NOUN_FORMS.split()).split(", ")


def test_verb_forms_in_the_present_and_in_the_past() -> None:
    found = []
    for verb in VERBS:
        if not verb.clause:
            _, present, past = verb.english.split()
            thing = "the girls" if "person" in verb.objects else "books"
            words = [
                verb.particle,
                "the man" * verb.receiver,
                thing * bool(verb.objects),
            ]
            rest = " ".join(word for word in words if word)
            finite = translate(f"he says that she {present} {rest}".strip()).split()[-1]
            ending = translate(f"she {past} {rest}".strip()).split()
            found.append(f"{finite} {ending[1]} {ending[-1]}")
    assert found == " ".join(VERB_FORMS.split()).split(", ")


def test_what_is_generated_is_read_back_and_differs() -> None:
    for example in CORPUS:
        assert explain(example.english) == example
    for side in ("english", "german"):
        assert len({getattr(example, side) for example in CORPUS}) == len(CORPUS)


def test_the_first_sentences_do_not_depend_on_how_many_are_asked_for() -> None:
    assert generate(50, seed=5) == CORPUS[:50] != generate(50, seed=6)


def stored() -> list[tuple[str, str]]:
    corpus = corpora.load("grammar")
    assert [len(corpus.train), len(corpus.valid), len(corpus.test)] == [
        20_000, 500, 1_000,
    ]  # fmt: skip
    return [*corpus.train, *corpus.valid, *corpus.test]


@pytest.mark.parametrize("n", [1000, pytest.param(21_500, marks=pytest.mark.slow)])
def test_the_stored_corpus_is_what_the_grammar_makes(n) -> None:
    made = [(example.english, example.german) for example in generate(n, seed=0)]
    assert stored()[:n] == made


def test_every_word_of_the_dictionary_is_used() -> None:
    used = {word for example in CORPUS for word in split_words(example.english)}
    for noun in NOUNS:
        assert {noun.english, noun.english_plural} <= used
    for verb in VERBS:
        assert {*verb.english.split()[:2], *verb.particle.split()} <= used
    assert {adjective.english for adjective in ADJECTIVES} <= used


def test_every_english_word_has_a_partner_and_every_german_one_but_commas() -> None:
    for example in CORPUS:
        source, target = split_words(example.english), split_words(example.german)
        assert {i for i, _ in example.alignment} == set(range(len(source)))
        lone = set(range(len(target))) - {j for _, j in example.alignment}
        assert {target[j] for j in lone} <= {","}


def links(example: Example) -> set[tuple[str, str]]:
    source, target = split_words(example.english), split_words(example.german)
    return {(source[i], target[j]) for i, j in example.alignment}


def test_links_of_a_separable_verb_of_a_contraction_and_of_a_modal_verb() -> None:
    assert links(explain("yesterday the old man picked up a friend")) == {
        ("yesterday", "gestern"), ("the", "der"), ("old", "alte"), ("man", "Mann"),
        ("picked", "hat"), ("picked", "abgeholt"), ("up", "hat"), ("up", "abgeholt"),
        ("a", "einen"), ("friend", "Freund"),
    }  # fmt: skip
    assert links(explain("if he wants to sleep in the house, I work")) == {
        ("if", "wenn"), ("he", "er"), ("wants", "will"), ("to", "will"),
        ("sleep", "schlafen"), ("in", "im"), ("the", "im"), ("house", "Haus"),
        (",", ","), ("I", "ich"), ("work", "arbeite"),
    }  # fmt: skip


def test_same_words_of_two_clauses_are_told_apart() -> None:
    example = explain("the man sleeps because the man works")
    assert example.german == "der Mann schläft, weil der Mann arbeitet"
    assert example.alignment == (
        (0, 0), (1, 1), (2, 2), (3, 4), (4, 5), (5, 6), (6, 7),
    )  # fmt: skip


def test_german_words_can_not_be_translated_one_by_one() -> None:
    """One English article has many German ones, told apart only by the context."""
    found: dict[str, set[str]] = {}
    for example in CORPUS:
        for source, target in links(example):
            found.setdefault(source, set()).add(target)
    assert found["the"] >= {"der", "die", "das", "den", "dem", "im"}
    assert {"alt" + ending for ending in ("e", "en", "er", "es")} == found["old"]


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("the zebra sleeps", "expected a noun before 'zebra sleeps'"),
        ("the man zebras", "expected a verb before 'zebras'"),
        ("if he sleeps I work", "is it 'if he sleeps, I work'"),
        ("he sleeps now", "is it 'he sleeps'"),
        ("", "expected a noun before ''"),
        ("the man sleep", "is it 'the man sleeps'"),
        ("he see a old man", "is it 'he sees an old man'"),
    ],
)
def test_other_sentences_are_refused(sentence, message) -> None:
    with pytest.raises(ValueError, match=message):
        translate(sentence)
