"""The generated sentences: right German, one answer for every one, exact links."""

import pytest

from transformer_book.grammar import explain, generate
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


@pytest.mark.parametrize("sentence", SENTENCES)
def test_translation_is_the_one_made_by_hand(sentence):
    assert explain(sentence).german == SENTENCES[sentence]


@pytest.fixture(scope="module")
def examples():
    return generate(21_500, seed=0)


def test_the_stored_corpus_is_what_the_grammar_makes(examples):
    stored = corpora.load("grammar")
    splits = stored.train, stored.valid, stored.test
    assert [len(split) for split in splits] == [20_000, 500, 1_000]
    made = [(example.english, example.german) for example in examples]
    assert [pair for split in splits for pair in split] == made
    for side in zip(*made, strict=True):
        assert len(set(side)) == len(made)
    assert generate(50, seed=0) == examples[:50] != generate(50, seed=6)


def test_a_sentence_is_read_back_and_every_word_but_commas_has_a_partner(examples):
    for example in examples[:2000]:
        assert explain(example.english) == example
        source, target = split_words(example.english), split_words(example.german)
        assert {i for i, _ in example.alignment} == set(range(len(source)))
        lone = set(range(len(target))) - {j for _, j in example.alignment}
        assert {target[j] for j in lone} <= {","}


@pytest.mark.parametrize(
    ("sentence", "links"),
    [
        (
            "yesterday the old man picked up a friend",
            "yesterday-gestern the-der old-alte man-Mann picked-hat picked-abgeholt "
            "up-hat up-abgeholt a-einen friend-Freund",
        ),
        (
            "if he wants to sleep in the house, I work",
            "if-wenn he-er wants-will to-will sleep-schlafen in-im the-im house-Haus "
            ",-, I-ich work-arbeite",
        ),
    ],
)
def test_links_are_those_made_by_hand(sentence, links):
    example = explain(sentence)
    source, target = split_words(sentence), split_words(example.german)
    words = {f"{source[i]}-{target[j]}" for i, j in example.alignment}
    assert words == set(links.split())


def test_same_words_of_two_clauses_are_told_apart():
    example = explain("the man sleeps because the man works")
    assert example.german == "der Mann schläft, weil der Mann arbeitet"
    assert [*example.alignment] == [*enumerate([0, 1, 2, 4, 5, 6, 7])]


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("the man zebras", "expected a verb before 'zebras'"),
        ("", "expected a noun before ''"),
        ("if he sleeps I work", "is it 'if he sleeps, I work'"),
        ("he sleeps now", "is it 'he sleeps'"),
        ("he see a old man", "is it 'he sees an old man'"),
    ],
)
def test_other_sentences_are_refused(sentence, message):
    with pytest.raises(ValueError, match=message):
        explain(sentence)
