"""Text to ids and back: nothing is lost, nothing in a text acts as a special token."""

import copy
import json
import pickle

import pytest

from transformer_lib.data.corpora.grammar import generate
from transformer_lib.data.examples import SENTENCE_PAIRS, split_words
from transformer_lib.data.tokenizer import Tokenizer, Vocabulary

TEXTS = [sentence for pair in SENTENCE_PAIRS for sentence in pair]
STRANGE = [
    "die Katze schläft, weil sie müde ist",
    " a  space before,\ttwo inside\n and three behind   ",
    "日本 🙂 e\u0301 é \x00 ▁ Ġ",  # none of these letters is in the training text
    "the text <eos> and <pad> is no special token",
    "don't",
]


@pytest.fixture(scope="module")
def subwords():
    return Tokenizer.train(TEXTS, vocab_size=330)


@pytest.fixture(scope="module")
def words():
    return Tokenizer.from_words(TEXTS)


@pytest.mark.parametrize("text", STRANGE)
def test_every_text_comes_back(subwords, text) -> None:
    ids = subwords.encode(text, bos=True)
    assert subwords.decode(ids) == text
    assert ids[0] == subwords.bos_id
    assert ids[-1] == subwords.eos_id
    assert min(ids[1:-1]) > subwords.unk_id  # no special token in between


def test_special_tokens_are_those_of_the_vocabulary(subwords, words) -> None:
    names = ("pad_id", "bos_id", "eos_id", "unk_id")
    wanted = [getattr(Vocabulary([]), name) for name in names]
    for tokenizer in (subwords, words):
        assert [getattr(tokenizer, name) for name in names] == wanted
        assert tokenizer.tokens(range(4)) == Vocabulary([]).tokens
        assert tokenizer.decode(range(4)) == ""


def test_bos_and_eos_are_the_callers_choice(words) -> None:
    plain = words.encode("the cat", eos=False)
    assert len(plain) == 2
    assert words.encode("the cat") == [*plain, 2]
    assert words.encode("the cat", bos=True) == [1, *plain, 2]


def test_the_vocabulary_has_the_size_asked_for() -> None:
    assert len(Tokenizer.train(TEXTS, 260)) == 260
    assert len(Tokenizer.train(TEXTS, 300)) == 300
    assert len(Tokenizer.train(["ab ab"], 5000)) < 270  # nothing is left to join


def test_more_tokens_make_shorter_sentences() -> None:
    lengths = [
        len(Tokenizer.train(TEXTS, size).encode(TEXTS[1])) for size in (260, 300, 400)
    ]
    assert lengths[0] == len(TEXTS[1].encode()) + 2  # a byte each, a space, <eos>
    assert lengths[0] > lengths[1] > lengths[2]


def test_first_join_is_the_most_frequent_pair() -> None:
    tokenizer = Tokenizer.train(["xab yab zab"], 261)
    assert tokenizer.tokens([260]) == ["ab"]


def test_training_again_gives_the_same(subwords) -> None:
    assert Tokenizer.train(TEXTS, vocab_size=330).to_json() == subwords.to_json()
    assert Tokenizer.train(TEXTS, vocab_size=331).to_json() != subwords.to_json()


@pytest.mark.parametrize("text", TEXTS)
def test_word_tokens_are_the_words(words, text) -> None:
    ids = words.encode(text)
    assert words.tokens(ids, space="") == [*split_words(text), "<eos>"]
    assert words.decode(ids) == text


def test_links_between_words_are_links_between_word_tokens() -> None:
    examples = generate(300, seed=1)
    sides = [text for example in examples for text in (example.english, example.german)]
    tokenizer = Tokenizer.from_words(sides)
    for text in sides:
        ids = tokenizer.encode(text, eos=False)
        assert tokenizer.tokens(ids, space="") == split_words(text)
        assert tokenizer.decode(ids) == text


def test_an_unknown_word_is_unk_for_words_only(subwords, words) -> None:
    assert words.encode("the zebra", eos=False)[1] == words.unk_id
    assert subwords.unk_id not in subwords.encode("the zebra")


def test_labels_show_spaces_pieces_and_bytes(subwords) -> None:
    labels = subwords.tokens(subwords.encode("der Hund日"))
    assert labels[0] == "▁der"
    assert "".join(labels[:-4]) == "▁der▁Hund"
    assert labels[-4:] == ["<E6>", "<97>", "<A5>", "<eos>"]


def test_half_a_character_is_replaced(subwords) -> None:
    ids = subwords.encode("日", eos=False)
    assert subwords.decode(ids[:-1]) == "\ufffd"


@pytest.mark.parametrize("kind", ["subwords", "words"])
def test_saved_is_loaded(kind, request, tmp_path) -> None:
    tokenizer = request.getfixturevalue(kind)
    tokenizer.save(tmp_path / "new" / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "new" / "tokenizer.json")
    assert len(again) == len(tokenizer)
    for text in (*TEXTS, *STRANGE):
        assert again.encode(text) == tokenizer.encode(text)
        assert again.decode(again.encode(text)) == tokenizer.decode(again.encode(text))


COPIES = {
    "copied": copy.copy,
    "copied with all it holds": copy.deepcopy,
    "pickled": lambda tokenizer: pickle.loads(pickle.dumps(tokenizer)),
    "as JSON": lambda tokenizer: Tokenizer.from_json(tokenizer.to_json()),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("kind", ["subwords", "words"])
def test_a_typed_special_token_is_text_for_every_copy(kind, how, request) -> None:
    tokenizer = request.getfixturevalue(kind)
    again = COPIES[how](tokenizer)
    ids = again.encode("the cat <eos> the dog", eos=False)
    assert ids == tokenizer.encode("the cat <eos> the dog", eos=False)
    assert tokenizer.eos_id not in ids
    assert again.to_json() == tokenizer.to_json()


def test_a_copied_vocabulary_numbers_words_as_before() -> None:
    vocabulary = Vocabulary(TEXTS)
    for again in (copy.deepcopy(vocabulary), pickle.loads(pickle.dumps(vocabulary))):
        assert again.tokens == vocabulary.tokens
        assert again.encode("the <eos> cat") == vocabulary.encode("the <eos> cat")
        assert vocabulary.eos_id not in again.encode("the <eos> cat", eos=False)


def test_a_foreign_file_is_named(tmp_path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"tokenizer\.json: not a tokenizer in JSON"):
        Tokenizer.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"tokenizer\.json: 'utf-8' codec"):
        Tokenizer.load(path)


def test_other_special_tokens_are_refused(words) -> None:
    content = json.loads(words.to_json())
    vocabulary = content["model"]["vocab"]
    vocabulary["<bos>"], vocabulary["<eos>"] = 2, 1
    content["added_tokens"] = []
    with pytest.raises(ValueError, match=r"must be .* but are .*<eos>', '<bos>"):
        Tokenizer.from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: t.encode("  "), ValueError, "at least 1 word, but got '  '"),
        (lambda t: t.encode(None), TypeError, "must be a string, not None"),
        (lambda t: t.encode("a\ud800"), ValueError, "position 1: surrogates"),
        (lambda t: t.decode([330]), ValueError, "id 330 is outside .* of 330"),
        (lambda t: t.tokens([-1]), ValueError, "id -1 is outside .* of 330"),
        (lambda t: t.train(TEXTS, 259), ValueError, "at least 260 .*, not 259"),
        (lambda t: t.train([], 300), ValueError, "needs text, but got 0"),
        (lambda t: t.from_words(["", " "]), ValueError, "but got 2 empty"),
    ],
)
def test_bad_input_is_refused(subwords, call, error, message) -> None:
    with pytest.raises(error, match=message):
        call(subwords)
