"""Batches, loss, accuracy and the loop of a classifier; and what each refuses."""

import math

import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss

from transformer_lib.data.texts import encode_texts, make_labelled_batch
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.evaluation.accuracy import Accuracy, accuracy, wilson_interval
from transformer_lib.model.classifier import EncoderClassifier
from transformer_lib.model.config import TransformerConfig
from transformer_lib.pretrained.classifier import Classifier, load_classifier
from transformer_lib.runs.classification import make_optimizer, train_epoch
from transformer_lib.runs.recipe import ClassifierTraining
from transformer_lib.training.loss import label_loss, text_loss

WORDS = Tokenizer.from_words(["a very fine film", "a dull film"], lowercase=True)


def make_model(pooling="max", dropout=0.0, n_tokens=13) -> EncoderClassifier:
    torch.manual_seed(0)
    config = TransformerConfig(
        src_vocab_size=n_tokens, tgt_vocab_size=n_tokens, d_model=8, n_heads=2, d_ff=16,
        n_encoder_layers=1, n_decoder_layers=0, dropout=dropout, max_len=6,
    )  # fmt: skip
    return EncoderClassifier(config, 2, pooling)


def make_rows(n: int = 60) -> list[tuple[list[int], int]]:
    """Texts of 2 to 6 tokens; those with a 5 in them are of class 1."""
    generator = torch.Generator().manual_seed(0)
    rows = []
    for number in range(n):
        ids = torch.randint(6, 13, (2 + number % 5,), generator=generator).tolist()
        if number % 2:
            ids[number % len(ids)] = 5
        rows.append((ids, number % 2))
    return rows


ROWS = make_rows()


def train(model: EncoderClassifier, training: ClassifierTraining) -> list[float]:
    """Train for all epochs; the mean loss of each."""
    optimizer = make_optimizer(model, training)
    epochs = range(training.epochs)
    return [train_epoch(model, optimizer, ROWS, training, epoch) for epoch in epochs]


def test_texts_are_framed_without_case_and_truncated_by_number():
    texts = ["A film", "a very VERY fine film", "quaint zither"]
    rows, truncated = encode_texts(WORDS, texts, 4)
    assert truncated == [2]
    words = [" ".join(WORDS.tokens(row, space="")[1:-1]) for row in rows]
    assert words == ["a film", "a very", "<unk> <unk>"]
    assert {(row[0], row[-1]) for row in rows} == {(WORDS.bos_id, WORDS.eos_id)}


def test_the_loss_is_the_surprise_at_the_right_class():
    logits = torch.randn(3, 2, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([1, 0, 1])
    by_hand = sum(-logits[i].softmax(0)[labels[i]].log() for i in range(3)) / 3
    torch.testing.assert_close(label_loss(logits, labels), by_hand)
    model, batch = make_model(), make_labelled_batch(ROWS, 0)
    mean = label_loss(model(batch.src), batch.labels)
    torch.testing.assert_close(text_loss(model, batch), len(ROWS) * mean)


def test_accuracy_is_that_of_scikit_learn():
    model = make_model(dropout=0.5).train()
    found = accuracy(model, ROWS, batch_size=7)
    assert model.training  # it was put back
    model.eval()
    probabilities = torch.cat(
        [model(torch.tensor([ids])).double().softmax(-1).detach() for ids, _ in ROWS]
    )
    labels = [label for _, label in ROWS]
    right = accuracy_score(labels, probabilities.argmax(-1))
    assert found.value == pytest.approx(right)
    assert found.nats == pytest.approx(log_loss(labels, probabilities), rel=1e-5)
    assert 0 < found.n_right < found.n_texts == len(ROWS)


@pytest.mark.parametrize("z", [1.0, 1.959964])
@pytest.mark.parametrize(("n_right", "n"), [(0, 10), (3, 10), (10, 10), (810, 1000)])
def test_the_interval_holds_the_shares_this_result_is_compatible_with(n_right, n, z):
    low, high = wilson_interval(n_right, n, z)
    assert wilson_interval(n_right, n) == wilson_interval(n_right, n, 1.959964)
    for bound in (low, high):  # at a bound, the distance is exactly z deviations
        distance = abs(n_right / n - bound)
        deviation = math.sqrt(bound * (1 - bound) / n)
        assert distance == pytest.approx(z * deviation, abs=1e-7)
    assert 0 <= low <= n_right / n <= high <= 1
    shown = "81.0 % of 1,000 right (95 % interval 78.5 to 83.3)"
    assert str(Accuracy(810, 1000)) == shown


def test_a_model_learns_to_find_a_word_the_same_way_every_time():
    ends = []
    for seed in (0, 0, 1):
        model = make_model(dropout=0.1)
        training = ClassifierTraining(epochs=60, batch_size=10, rate=0.01, seed=seed)
        losses = train(model, training)
        assert losses[-1] < 0.1 < 0.5 < losses[0]
        assert accuracy(model, ROWS).value == 1
        ends.append(model.head.weight.detach())
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[0], ends[2])


@pytest.mark.parametrize("pooling", ["max", "attention"])
def test_a_saved_classifier_classifies_as_before(tmp_path, pooling):
    model = make_model(pooling, n_tokens=len(WORDS))
    classifier = Classifier(model, WORDS, ("negative", "positive"))
    classifier.save(tmp_path)
    texts = ["dull film", "a very very very dull film", "oboe zither", "zither oboe"]
    found = classifier.classify(texts)
    again = load_classifier(tmp_path).classify(texts)
    for mine, other in zip(found, again, strict=True):
        assert mine.probability == pytest.approx(other.probability, abs=2e-3)
        assert mine.label == other.label
    short, long, unknown, other = found
    assert (short.was_truncated, long.was_truncated) == (False, True)
    assert (short.n_unknown, unknown.n_unknown) == (0, 2)
    assert unknown == other  # nothing tells them apart
    assert 0.5 <= unknown.probability <= 1


def test_what_is_no_classifier_is_refused(tmp_path):
    model = make_model(n_tokens=len(WORDS))
    with pytest.raises(ValueError, match="and 2 classes, but got .* and 3"):
        Classifier(model, WORDS, ("a", "b", "c"))
    with pytest.raises(ValueError, match="text 2: a sentence needs at least 1 word"):
        Classifier(model, WORDS, ("a", "b")).classify(["dull film", " "])
    with pytest.raises(FileNotFoundError):
        load_classifier(tmp_path)
