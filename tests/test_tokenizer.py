"""Text to ids and back: nothing is lost, nothing in a text acts as a special token."""

import copy
import json

import numpy as np
import pytest
import tokenizers

from transformer_lib import SENTENCE_PAIRS, Tokenizer, Vocabulary, split_words
from transformer_lib.data import corpora

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


def test_vocabulary_counts_from_the_special_tokens_in_order_of_appearance() -> None:
    split = split_words("The animal didn't cross, because it was tired.")
    assert " ".join(split) == "The animal didn't cross , because it was tired ."
    vocabulary = Vocabulary(["the cat sees the dog"])
    assert vocabulary.tokens[:4] == ["<pad>", "<bos>", "<eos>", "<unk>"]
    assert vocabulary.encode("the dog sees") == [4, 7, 6, 2]
    assert vocabulary.encode("the cow", bos=True, eos=False) == [1, 4, 3]
    assert len(vocabulary) == 8
    for text in (*TEXTS, *STRANGE):
        own = Vocabulary([text])
        assert own.decode(own.encode(text)) == [*split_words(text), "<eos>"]


@pytest.mark.parametrize("text", STRANGE)
def test_every_text_comes_back(subwords, text) -> None:
    ids = subwords.encode(text, bos=True)
    assert subwords.decode(np.array(ids)) == text
    assert (ids[0], ids[-1]) == (subwords.bos_id, subwords.eos_id)
    assert min(ids[1:-1]) > subwords.unk_id  # no special token in between


def test_special_tokens_are_those_of_the_vocabulary(subwords, words) -> None:
    for tokenizer in (subwords, words):
        assert tokenizer.tokens(range(4)) == Vocabulary([]).tokens
        assert tokenizer.decode(range(4)) == ""


def test_the_vocabulary_has_the_size_asked_for() -> None:
    sizes = 260, 300, 400
    trained = [Tokenizer.train(TEXTS, size) for size in sizes]
    assert [len(each) for each in trained] == list(sizes)
    lengths = [len(each.encode(TEXTS[1])) for each in trained]
    assert lengths[0] == len(TEXTS[1].encode()) + 2  # a byte each, a space, <eos>
    assert lengths[0] > lengths[1] > lengths[2]
    assert len(Tokenizer.train(["ab ab"], 5000)) < 270  # nothing is left to join
    assert Tokenizer.train(["xab yab zab"], 261).tokens([260]) == ["ab"]


def test_word_tokens_are_the_words(words) -> None:
    """So links between words are links between tokens."""
    grammar = [text for pair in corpora.load("grammar").test[:300] for text in pair]
    for tokenizer, texts in (words, TEXTS), (Tokenizer.from_words(grammar), grammar):
        for text in texts:
            ids = tokenizer.encode(text)
            assert tokenizer.tokens(ids, space="") == [*split_words(text), "<eos>"]
            assert tokenizer.decode(ids) == text
    assert words.encode("the zebra", eos=False)[1] == words.unk_id


def test_labels_show_spaces_pieces_and_bytes(subwords) -> None:
    ids = subwords.encode("der Hund日")
    assert subwords.unk_id not in ids
    labels = subwords.tokens(ids)
    assert "".join(labels[:-4]) == "▁der▁Hund"
    assert labels[-4:] == ["<E6>", "<97>", "<A5>", "<eos>"]
    assert subwords.decode(ids[:-2]) == "der Hund\ufffd"  # half a character


@pytest.mark.parametrize("kind", ["subwords", "words"])
def test_a_typed_special_token_is_text_for_every_copy(kind, request, tmp_path) -> None:
    tokenizer = request.getfixturevalue(kind)
    tokenizer.save(tmp_path / "new" / "tokenizer.json")
    copies = copy.deepcopy(tokenizer), Tokenizer.load(tmp_path / "new/tokenizer.json")
    for again in copies:  # pickle does as deepcopy
        for text in (*TEXTS, *STRANGE):
            ids = again.encode(text, eos=False)
            assert ids == tokenizer.encode(text, eos=False)
            assert tokenizer.eos_id not in ids


@pytest.mark.parametrize(
    ("limit", "length"),
    [(lambda t: t.enable_truncation(2), 2), (lambda t: t.enable_padding(length=9), 9)],
)
def test_a_file_neither_shortens_nor_pads_texts(words, limit, length) -> None:
    """The library read such a file without a word, and translated half a sentence."""
    theirs = tokenizers.Tokenizer.from_str(words.to_json())
    limit(theirs)
    assert len(theirs.encode(TEXTS[1])) == length  # it can fail
    again = Tokenizer.from_json(theirs.to_str())
    assert again.encode(TEXTS[1]) == words.encode(TEXTS[1])


def test_a_file_of_other_special_tokens_is_named(tmp_path, words) -> None:
    path = tmp_path / "tokenizer.json"
    content = json.loads(words.to_json())
    content["model"]["vocab"] |= {"<bos>": 2, "<eos>": 1}
    content["added_tokens"] = []
    path.write_text(json.dumps(content))
    message = r"tokenizer\.json: .* but are .*<eos>', '<bos>"
    with pytest.raises(ValueError, match=message):
        Tokenizer.load(path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.encode("  "), "at least 1 word, but got '  '"),
        (lambda t: t.encode("a\ud800"), "position 1: surrogates"),
        (lambda t: t.decode([330]), "id 330 is outside .* of 330"),
        (lambda t: t.tokens([-1]), "id -1 is outside .* of 330"),
        (lambda t: t.train(TEXTS, 259), "at least 260, not 259"),
        (lambda t: t.train([], 300), "needs text, but got 0"),
        (lambda t: t.from_words(["", " "]), "but got 2 empty"),
        (lambda t: t.from_words(["a"], 3), "at least 4, not 3"),
        (lambda _: Vocabulary(["a"]).encode("  "), "at least 1 word, but got '  '"),
        (lambda _: Vocabulary(["a"]).decode([-1]), "id -1 is outside .* of 5 tokens"),
    ],
)
def test_bad_input_is_refused(subwords, call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call(subwords)
