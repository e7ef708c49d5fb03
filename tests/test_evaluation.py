"""Scores against sacrebleu's command line, and what they are grouped by."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest
from small_models import constant_model, make_model
from torch.nn.functional import cross_entropy

from transformer_book.resampling import (
    bleu_counts,
    bleu_from_counts,
    bootstrap,
    draw_scores,
    interval,
    median_interval,
    paired_bootstrap,
)
from transformer_lib.data.batches import make_batch
from transformer_lib.evaluation import (
    bleu,
    chrf,
    exact_match,
    group_by,
    lacks_spaces,
    nats_per_token,
    read_card,
    word_overlap,
)

TEXTS = [
    ("Der Hund sieht die Katze.", "Der Hund sieht die Katze."),
    ("heute trinkt die Katze Milch", "Heute trinkt die Katze Milch"),
    ("Er steht auf früh.", "Er steht früh auf."),
    ("das Kind liest ein Buch", "das Kind will ein Buch lesen"),
]
HYPOTHESES, REFERENCES = zip(*TEXTS, strict=True)


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
    middle, half = theirs["confidence_mean"], theirs["confidence_var"]
    bounds = np.clip([middle - half, middle + half], 0, 100)
    assert (mine.low, mine.high) == pytest.approx(bounds, abs=1e-5)
    assert mine.value == pytest.approx(theirs["score"], abs=1e-5)
    assert (mine.signature, mine.name) == (theirs["signature"], theirs["name"])


def test_exact_translations_are_counted_and_a_score_has_its_signature() -> None:
    assert exact_match(HYPOTHESES, REFERENCES) == 0.25
    texts = HYPOTHESES, REFERENCES
    cased, uncased = (bleu(*texts, lower, n_bootstrap=0) for lower in (False, True))
    assert cased.low == cased.value == cased.high < uncased.value
    text = str(bleu(REFERENCES, REFERENCES))
    assert text.startswith("BLEU 100.0 (95 % interval 100.0 to 100.0, 4 sentences, ")


def test_chrf_of_draws_without_a_match() -> None:
    """sacrebleu gives them 0 as a float of another type, and refuses to mix both."""
    score = chrf(["a", "bcd"], ["x", "bcd"])
    alone = chrf(["a", "bcd"], ["x", "bcd"], n_bootstrap=0)
    assert alone.low == alone.high == score.value  # without draws, no interval
    assert score.low < 40 < score.value < score.high


CHINESE = ["这只猫正在睡觉。", "狗看见了那只猫，然后跑了。", "我们今天去公园散步。"]
THAI = ["แมวกำลังนอนหลับ", "สุนัขเห็นแมว"]
APART = ["这 只 猫 正在 睡觉 。", "狗 看见 了 那 只 猫 。"]


@pytest.mark.parametrize(
    ("texts", "tokenize", "score"),
    [
        (CHINESE, "13a", 0.0),  # three words of one sentence each, or so it seems
        (CHINESE, "zh", 100.0),
        (THAI, "13a", 0.0),
        (THAI, "char", 100.0),
        (REFERENCES, "13a", 100.0),
        (REFERENCES, "intl", 100.0),
    ],
)
def test_words_are_split_as_asked_for(texts, tokenize, score) -> None:
    found = bleu(texts, texts, n_bootstrap=0, tokenize=tokenize)
    assert found.value == pytest.approx(score)
    assert f"|tok:{tokenize}|" in found.signature
    assert lacks_spaces(texts) == (texts in (CHINESE, THAI))
    assert not lacks_spaces(APART) and not lacks_spaces(["한국어 문장에는 공백이 있다"])


def test_a_tokenization_that_is_not_there_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "MeCab", None)
    with pytest.raises(ValueError, match="one of none, zh, 13a, .* not 'nope'"):
        bleu(THAI, THAI, tokenize="nope")
    with pytest.raises(ImportError, match=r"install sacrebleu\[ja\]$") as caught:
        bleu(THAI, THAI, tokenize="ja-mecab")
    assert "\n" not in str(caught.value)


def test_an_interval_ends_where_the_scale_does() -> None:
    """Of two sentences, one of them right, they ran to 107.6."""
    for metric in bleu, chrf:
        few = metric([REFERENCES[0], "x y"], REFERENCES[:2])
        assert 0 < few.low < few.value < few.high == 100
    assert bleu(["a b c d e"], ["a b c d e"]).value == 100


@pytest.mark.parametrize("score", [bleu, chrf, exact_match])
def test_unequal_or_empty_lists_are_refused(score) -> None:
    with pytest.raises(ValueError, match="4 translations and 3 references"):
        score(HYPOTHESES, REFERENCES[:3])
    with pytest.raises(ValueError, match="0 translations and 0 references"):
        score([], [])


def test_nats_per_token_are_the_surprise_at_the_right_token() -> None:
    pairs = [([3, 4, 2], [5, 2]), ([6, 2], [4, 3, 5, 2]), ([6, 2], [3, 2])]
    model = make_model(dropout=0.5)
    whole, first, rest = (
        make_batch(part, bos_id=1, pad_id=0) for part in (pairs, pairs[:1], pairs[1:])
    )
    logits = model(whole.src, whole.tgt_in).transpose(1, 2)
    loss = cross_entropy(logits, whole.tgt_out, ignore_index=0).item()
    expected = pytest.approx(loss, 1e-12)
    assert nats_per_token(model.train(), [whole]) == expected
    assert nats_per_token(model, [first, rest]) == expected
    assert model.training  # and yet dropout was off


def test_numbers_of_few_bits_are_added_up_in_many() -> None:
    model = constant_model(torch.zeros(7)).bfloat16()  # every token is equally likely
    batch = make_batch([([3, 2], [4, 5, 2])], bos_id=1, pad_id=0)
    assert nats_per_token(model, [batch]) == pytest.approx(math.log(7), rel=1e-6)


def test_groups_hold_every_sentence_once() -> None:
    names = "below 10", "10 to below 20", "20 to below 23", "23 and above"
    groups = group_by([3, 10, 25, 9.5, 20], [10, 20, 23])
    assert groups == [*zip(names, ([0, 3], [1], [4], [2]), strict=True)]
    assert group_by([1], np.array([10, 20])) == [("below 10", [0])]  # no empty ones
    with pytest.raises(ValueError, match="bounds must rise"):
        group_by([1, 2], [10, 10])


def test_overlap_is_with_one_training_sentence_at_most() -> None:
    training = ["The Cat sleeps", "A dog sees a dog"]
    sentences = ["The cat", "the dog", "the cat sees a dog", "milk"]
    assert word_overlap(sentences, training) == [1.0, 0.5, 3 / 5, 0.0]


def test_a_card_has_the_scores_of_each_search() -> None:
    card = read_card("grammar")
    for scores in card.values():
        assert [score.name for score in scores] == ["BLEU", "BLEU", "chrF2"]
        assert all(score.low <= score.value <= score.high for score in scores)
        assert "case:lc" in scores[1].signature
    assert 1 in card and len(card) > 1


# --- BLEU as counts that add up, and the bootstrap ------------------------------------

RIGHT = [
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
    return np.array([*map(bleu_counts, hypotheses, RIGHT)])


@pytest.mark.parametrize("hypotheses", [FIRST, SECOND, RIGHT, ["snow"] * 20])
def test_the_sum_of_the_counts_gives_sacrebleus_score(hypotheses) -> None:
    found = bleu_from_counts(counted(hypotheses).sum(axis=0))
    known = BLEU(smooth_method="none").corpus_score(hypotheses, [RIGHT]).score
    assert found == pytest.approx(known, rel=1e-9)


def test_the_draws_are_sacrebleus() -> None:
    result = BLEU().corpus_score(FIRST, [RIGHT], n_bootstrap=1000)
    scores = bootstrap(counted(FIRST))
    assert scores.mean() == pytest.approx(result._mean, rel=1e-6)
    low, high = interval(scores)
    assert (high - low) / 2 == pytest.approx(result._ci, rel=0.02)


@pytest.mark.parametrize("metric", [BLEU(), CHRF()])
def test_draws_of_any_score_are_sacrebleus(metric) -> None:
    result = metric.corpus_score(FIRST, [RIGHT], n_bootstrap=1000)
    scores = draw_scores(metric, FIRST, RIGHT)
    assert scores.mean() == pytest.approx(result._mean, rel=1e-6)


def test_a_group_is_drawn_whole() -> None:
    metric = CHRF()
    alone = [[row] for row in range(20)]
    for groups, same in ((alone, True), ([range(20)], False)):
        scores = draw_scores(metric, FIRST, RIGHT, groups, n_draws=9)
        single = draw_scores(metric, FIRST, RIGHT, n_draws=9)
        assert np.allclose(scores, single) == same
    whole = metric.corpus_score(FIRST, [RIGHT]).score
    assert scores == pytest.approx([whole] * 9)  # the one group, every time


def test_the_paired_differences_give_sacrebleus_p_value() -> None:
    first, second = counted(FIRST), counted(SECOND)
    assert not paired_bootstrap(first, first).any()
    size = np.abs(paired_bootstrap(first, second))
    real = abs(bleu_from_counts(first.sum(0)) - bleu_from_counts(second.sum(0)))
    p_value = ((size - size.mean() > real).sum() + 1) / (len(size) + 1)
    metrics = {"BLEU": BLEU(references=[RIGHT])}
    named = [("first", FIRST), ("second", SECOND)]
    test = PairedTest(named, metrics, None, test_type="bs", n_samples=1000)
    assert p_value == pytest.approx(test()[1]["BLEU"][1].p_value, abs=0.003)


def test_the_interval_of_a_median_holds_it_in_95_of_100_experiments() -> None:
    # Of 30 values, fewer than 10 are below the median in 2.1 % of all cases.
    assert median_interval(range(30, 0, -1)) == (15.5, 10, 21)
    assert median_interval([3, 1, 2, 5, 6, 4]) == (3.5, 1, 6)
    experiments = np.random.default_rng(0).exponential(size=(2000, 15))
    found = [median_interval(values) for values in experiments]
    share = np.mean([low <= np.log(2) <= high for _, low, high in found])
    assert 0.95 <= share < 0.98
    with pytest.raises(ValueError, match="6 values at least, not 5"):
        median_interval(range(5))
