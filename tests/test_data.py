"""Words to ids and back, and padded batches."""

import pytest
import torch

from transformer_lib.data.batches import pad_batch
from transformer_lib.data.corpora import load
from transformer_lib.data.examples import SENTENCE_PAIRS, split_words
from transformer_lib.data.tokenizer import Vocabulary


def test_words_and_punctuation_are_split() -> None:
    sentence = "The animal didn't cross, because it was tired."
    assert split_words(sentence) == [
        "The", "animal", "didn't", "cross", ",", "because", "it", "was", "tired", ".",
    ]  # fmt: skip
    assert split_words("schläft, müde") == ["schläft", ",", "müde"]


def test_ids_count_from_the_special_tokens_in_order_of_appearance() -> None:
    vocabulary = Vocabulary(["the cat sees the dog"])
    assert vocabulary.tokens[:4] == ["<pad>", "<bos>", "<eos>", "<unk>"]
    assert vocabulary.encode("the dog sees") == [4, 7, 6, 2]
    assert vocabulary.encode("the cow", bos=True, eos=False) == [1, 4, 3]
    assert len(vocabulary) == 8


@pytest.mark.parametrize("side", [0, 1])
def test_known_sentences_come_back(side) -> None:
    sentences = [pair[side] for pair in SENTENCE_PAIRS]
    vocabulary = Vocabulary(sentences)
    for sentence in sentences:
        tokens = vocabulary.decode(vocabulary.encode(sentence))
        assert tokens == [*split_words(sentence), "<eos>"]


def test_any_text_is_numbered_word_for_word() -> None:
    texts = [german for _, german in load("home-assistant").test]
    texts += ["CO₂ e\u0301 日本語 🙂 don't", "a <eos> b\x85c"]
    vocabulary = Vocabulary(texts[::2])
    words = dict.fromkeys(word for text in texts[::2] for word in split_words(text))
    ids = {word: number for number, word in enumerate(words, start=4)}
    for text in texts:
        assert vocabulary.encode(text, eos=False) == [
            ids.get(word, vocabulary.unk_id) for word in split_words(text)
        ]


def test_batches_are_padded_on_the_right() -> None:
    batch = pad_batch([[5, 6, 7], [8]], pad_id=9)
    assert torch.equal(batch, torch.tensor([[5, 6, 7], [8, 9, 9]]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pad_batch([], 0), "at least 1 sequence, but got 0"),
        (lambda: pad_batch([[1], []], 0), "sequence 1 of the batch is empty"),
        (lambda: Vocabulary(["a"]).encode("  "), "at least 1 word, but got '  '"),
        (lambda: Vocabulary(["a"]).decode([5]), "id 5 is outside .* of 5 tokens"),
        (lambda: Vocabulary(["a"]).decode([-1]), "id -1 is outside .* of 5 tokens"),
    ],
)
def test_empty_and_unknown_input_is_refused(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
