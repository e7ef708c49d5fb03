"""Scores against sacrebleu's command line, and what they are grouped by."""

import json
import math
import subprocess
import sys

import pytest
import torch

from transformer_lib.data.batches import Batch, make_batch
from transformer_lib.evaluation.scores import (
    bleu,
    chrf,
    exact_match,
    group_by,
    nats_per_token,
    word_overlap,
)
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer

HYPOTHESES = [
    "Der Hund sieht die Katze.",
    "heute trinkt die Katze Milch",
    "Er steht auf früh.",
    "das Kind liest ein Buch",
]
REFERENCES = [
    "Der Hund sieht die Katze.",
    "Heute trinkt die Katze Milch",
    "Er steht früh auf.",
    "das Kind will ein Buch lesen",
]


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_scores_and_intervals_are_sacrebleus(metric, tmp_path) -> None:
    hypotheses, references = tmp_path / "hypotheses", tmp_path / "references"
    hypotheses.write_text("\n".join(HYPOTHESES), encoding="utf-8")
    references.write_text("\n".join(REFERENCES), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", references, "-i", hypotheses]
    options = ["-m", metric, "--confidence", "--width", "6"]
    done = subprocess.run([*command, *options], capture_output=True, check=True)
    theirs = json.loads(done.stdout)
    mine = {"bleu": bleu, "chrf": chrf}[metric](HYPOTHESES, REFERENCES)
    assert mine.value == pytest.approx(theirs["score"], abs=1e-5)
    assert (mine.low + mine.high) / 2 == pytest.approx(
        theirs["confidence_mean"], abs=1e-5
    )
    assert (mine.high - mine.low) / 2 == pytest.approx(
        theirs["confidence_var"], abs=1e-5
    )
    assert mine.signature == theirs["signature"]
    assert mine.name == theirs["name"]


def test_case_counts_unless_asked_otherwise() -> None:
    cased, uncased = (
        bleu(HYPOTHESES, REFERENCES, lowercase, n_bootstrap=0)
        for lowercase in (False, True)
    )
    assert cased.value < uncased.value
    assert "case:mixed" in cased.signature
    assert "case:lc" in uncased.signature
    assert cased.low == cased.value == cased.high


def test_a_score_is_printed_with_its_signature() -> None:
    text = str(bleu(REFERENCES, REFERENCES))
    assert text.startswith("BLEU 100.0 (95 % interval 100.0 to 100.0, 4 sentences, ")
    assert "bs:1000|seed:12345" in text


def test_exact_translations_are_counted() -> None:
    assert exact_match(HYPOTHESES, REFERENCES) == 0.25


@pytest.mark.parametrize("score", [bleu, chrf, exact_match])
def test_unequal_or_empty_lists_are_refused(score) -> None:
    with pytest.raises(ValueError, match="4 translations and 3 references"):
        score(HYPOTHESES, REFERENCES[:3])
    with pytest.raises(ValueError, match="0 translations and 0 references"):
        score([], [])


def make_model() -> Transformer:
    torch.manual_seed(0)
    config = TransformerConfig(
        src_vocab_size=11, tgt_vocab_size=11, d_model=6, n_heads=3, d_ff=10,
        n_encoder_layers=1, n_decoder_layers=1, dropout=0.5,
    )  # fmt: skip
    return Transformer(config).double()


PAIRS = [([3, 4, 2], [5, 2]), ([7, 2], [9, 8, 10, 2]), ([6, 2], [3, 2])]


def some_batches(*sizes: int) -> list[Batch]:
    pairs, batches = list(PAIRS), []
    for size in sizes:
        batches.append(make_batch(pairs[:size], bos_id=1, pad_id=0))
        pairs = pairs[size:]
    return batches


def test_nats_per_token_do_not_depend_on_the_batches() -> None:
    model = make_model().double().train()
    together = nats_per_token(model, some_batches(3))
    assert nats_per_token(model, some_batches(1, 2)) == pytest.approx(together, 1e-12)
    assert model.training  # and yet dropout was off: the two are equal
    alone = [nats_per_token(model, [b]) for b in some_batches(1, 2)]
    assert sum(alone) / 2 != pytest.approx(together)  # a mean of means is another


def test_nats_per_token_are_the_surprise_at_the_right_token() -> None:
    model, [batch] = make_model().double().eval(), some_batches(3)
    log_probs = model(batch.src, batch.tgt_in).log_softmax(dim=-1)
    right = [log_probs[i, j, token] for i, (_, tgt) in enumerate(PAIRS)
             for j, token in enumerate(tgt)]  # fmt: skip
    expected = -sum(right).item() / 8
    assert nats_per_token(model, [batch]) == pytest.approx(expected, 1e-12)
    with torch.no_grad():
        model.lm_head.weight.zero_()
    assert nats_per_token(model, [batch]) == pytest.approx(math.log(11), 1e-12)


def test_no_batches_have_no_surprise() -> None:
    with pytest.raises(ValueError, match="no token to predict"):
        nats_per_token(make_model(), [])


def test_groups_hold_every_sentence_once() -> None:
    groups = group_by([3, 10, 25, 9.5, 20], [10, 20, 23])
    assert groups == [
        ("below 10", [0, 3]),
        ("10 to below 20", [1]),
        ("20 to below 23", [4]),
        ("23 and above", [2]),
    ]
    assert group_by([1], [10, 20]) == [("below 10", [0])]  # empty ones are left out


@pytest.mark.parametrize("bounds", [[], [10, 10]])
def test_bounds_that_do_not_rise_are_refused(bounds) -> None:
    with pytest.raises(ValueError, match="bounds must rise"):
        group_by([1, 2], bounds)


def test_overlap_is_with_one_training_sentence_at_most() -> None:
    training = ["the cat sleeps", "A dog sees a dog"]
    shares = word_overlap(
        ["The cat", "the dog", "the cat sees a dog", "milk"], training
    )
    assert shares == [1.0, 0.5, 3 / 5, 0.0]


def test_overlap_needs_words_on_both_sides() -> None:
    with pytest.raises(ValueError, match="at least 1 word, but got ' '"):
        word_overlap([" "], ["a"])
    with pytest.raises(ValueError, match="0 training sentences"):
        word_overlap(["a"], [])
