"""Text to ids and back: no letter is lost, no text acts as a special token."""

import copy
import json

import numpy as np
import pytest
import tokenizers

from transformer_lib import SENTENCE_PAIRS, Tokenizer, Vocabulary, split_words
from transformer_lib.data import corpora
from transformer_lib.data.normalize import normalize
from transformer_lib.pretrained.translator import MODELS, shipped_models

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
    assert subwords.decode(np.array(ids)) == normalize(text)
    assert (ids[0], ids[-1]) == (subwords.bos_id, subwords.eos_id)
    assert min(ids[1:-1]) > subwords.unk_id  # no special token in between


def test_many_texts_have_the_ids_that_each_has_alone(subwords, words) -> None:
    for tokenizer in subwords, words:
        texts = [*TEXTS, *STRANGE]
        assert tokenizer.encode_all(texts) == [*map(tokenizer.encode, texts)]
        with pytest.raises(ValueError, match="at least 1 word, but got ' '"):
            tokenizer.encode_all(["the", " "])
        with pytest.raises(UnicodeEncodeError):
            tokenizer.encode_all(["the", "half \ud800"])
        assert tokenizer.encode_all([]) == []


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


def test_texts_that_look_the_same_have_the_same_ids(subwords, words) -> None:
    """Each of these variants was translated otherwise."""
    shipped = [Tokenizer.load(MODELS / m / "tokenizer.json") for m in shipped_models()]
    right = "Die Katze trägt einen Hut"
    assert normalize(right) == right
    for changed in (
        "Die Katze tra\u0308gt einen Hut",
        "Die Katze  trägt einen Hut",
        "Die\tKatze\u00a0trägt\u2009einen\u3000Hut",
        "\ufeffDie Katze trägt einen Hut\u200b",
        "Die Kat\u00adze trägt \u200e\u2060einen Hut",
        " \n Die Katze \u00ad \u200f trägt einen Hut\x85\r\n",
    ):
        assert normalize(changed) == right != changed
        for tokenizer in (subwords, words, *shipped):
            assert tokenizer.encode(changed) == tokenizer.encode(right)
    assert normalize("a\u200db\x1c") == "a\u200db\x1c"  # what joins letters is one


def test_a_tokenizer_normalizes_as_the_function_does(subwords) -> None:
    """They are two programs with the same patterns: every character, after a letter."""
    for start in range(0, 0x32000, 0x800):
        if start != 0xD800:  # halves of characters
            text = "a".join(map(chr, range(start, start + 0x800)))
            found = subwords._engine.normalizer.normalize_str(text)
            assert found.removeprefix(" ") == normalize(text)


def test_a_tokenizer_of_an_earlier_version_reads_as_it_did(subwords) -> None:
    content = json.loads(subwords.to_json())
    content["normalizer"] = {"type": "Prepend", "prepend": " "}
    older = Tokenizer.from_json(json.dumps(content))
    assert older.encode(TEXTS[0]) == subwords.encode(TEXTS[0])
    assert older.decode(older.encode("the  cat")) == "the  cat"


PREPEND = {"type": "Prepend", "prepend": "x"}
START = [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A",
         "type_id": 0}}]  # fmt: skip
BOS = {"<bos>": {"id": "<bos>", "ids": [1], "tokens": ["<bos>"]}}
TEMPLATE = {"type": "TemplateProcessing", "single": START, "pair": START,
            "special_tokens": BOS}  # fmt: skip


@pytest.mark.parametrize(
    ("step", "value"),
    [
        ("post_processor", TEMPLATE),
        ("truncation", {"direction": "Right", "max_length": 2, "stride": 0,
                        "strategy": "LongestFirst"}),
        ("padding", {"strategy": {"Fixed": 9}, "direction": "Right", "pad_id": 0,
                     "pad_to_multiple_of": None, "pad_type_id": 0, "pad_token": "."}),
        ("normalizer", PREPEND),
        ("normalizer", None),
        ("pre_tokenizer", {"type": "Whitespace"}),
        ("decoder", None),
        ("dropout", 0.5),
    ],
)  # fmt: skip
def test_a_file_that_does_something_else_to_texts_is_refused(
    subwords, tmp_path, step, value
) -> None:
    """The library obeyed such a file without a word, and ids were others."""
    content = json.loads(subwords.to_json())
    (content["model"] if step == "dropout" else content)[step] = value
    tokenizers.Tokenizer.from_str(json.dumps(content))  # a tokenizer it is
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"tokenizer\.json: its {step} is .*, which"):
        Tokenizer.load(path)


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
        (lambda t: t.encode("\u200b \ufeff"), r"at least 1 word, but got '\\u200b "),
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
