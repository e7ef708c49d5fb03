"""BLEU from counts and the bootstrap, against sacrebleu and by hand."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from transformer_lib.evaluation.resampling import (
    bleu_counts,
    bleu_from_counts,
    bootstrap,
    draw,
    interval,
    paired_bootstrap,
)

REFERENCES = [
    "A dog is playing in the snow.",
    "Two children are sitting on a bench in the park.",
    "The man, who is old, doesn't read the newspaper.",
    'He said: "It\'s cold" (at 3.5 degrees).',
] * 5
FIRST = [
    "The snow is playing a dog in the snow.",
    "Two children are sitting on a bench.",
    "The man, who is old, reads no newspaper.",
    'He said: "It\'s cold" (at 3.5 degrees).',
] * 5
SECOND = [
    "A dog is playing in the snow.",
    "Two children sit on a bench in the park.",
    "The old man doesn't read the paper.",
    "",
] * 5


def counted(hypotheses) -> np.ndarray:
    pairs = zip(hypotheses, REFERENCES, strict=True)
    return np.array([bleu_counts(*pair) for pair in pairs])


def test_counts_of_one_sentence_by_hand() -> None:
    counts = bleu_counts("the snow is playing a dog in the snow", REFERENCES[0].lower())
    assert counts.tolist() == [7, 4, 1, 0, 9, 8, 7, 6, 9, 8]


@pytest.mark.parametrize("hypotheses", [FIRST, SECOND, REFERENCES])
def test_the_sum_of_the_counts_gives_sacrebleus_score(hypotheses) -> None:
    found = bleu_from_counts(counted(hypotheses).sum(axis=0))
    known = BLEU().corpus_score(hypotheses, [REFERENCES]).score
    assert found == pytest.approx(known, rel=1e-9)


@pytest.mark.parametrize("hypothesis", ["", "A", "A dog.", "snow"])
def test_without_four_matches_in_a_row_bleu_is_0(hypothesis: str) -> None:
    assert bleu_from_counts(bleu_counts(hypothesis, REFERENCES[0])) == 0


def test_the_draws_are_sacrebleus() -> None:
    result = BLEU().corpus_score(FIRST, [REFERENCES], n_bootstrap=1000)
    scores = bootstrap(counted(FIRST))
    assert scores.mean() == pytest.approx(result._mean, rel=1e-6)
    low, high = interval(scores)
    assert (high - low) / 2 == pytest.approx(result._ci, rel=0.02)


def test_the_paired_differences_give_sacrebleus_p_value() -> None:
    first, second = counted(FIRST), counted(SECOND)
    size = np.abs(paired_bootstrap(first, second))
    real = abs(bleu_from_counts(first.sum(0)) - bleu_from_counts(second.sum(0)))
    p_value = ((size - size.mean() > real).sum() + 1) / (len(size) + 1)
    metrics = {"BLEU": BLEU(references=[REFERENCES])}
    named = [("first", FIRST), ("second", SECOND)]
    test = PairedTest(named, metrics, None, test_type="bs", n_samples=1000)
    assert p_value == pytest.approx(test()[1]["BLEU"][1].p_value, abs=0.003)


def test_a_system_never_differs_from_itself() -> None:
    counts = counted(FIRST)
    assert not paired_bootstrap(counts, counts).any()


def test_draws_are_with_replacement_and_repeat() -> None:
    draws = draw(20, n_draws=50)
    assert draws.shape == (50, 20)
    assert all(len(set(row)) < 20 for row in draws.tolist())
    assert np.array_equal(draws, draw(20, n_draws=50))
    assert not np.array_equal(draws, draw(20, n_draws=50, seed=1))


def test_different_numbers_of_sentences_are_refused() -> None:
    with pytest.raises(ValueError, match="of 20 and of 19 sentences"):
        paired_bootstrap(counted(FIRST), counted(SECOND)[1:])
