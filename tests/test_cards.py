"""Cards are read as they were written, and only those of translators."""

import json

import pytest

from transformer_lib.evaluation import cards
from transformer_lib.training.evaluate import score_translations


@pytest.fixture
def models(tmp_path, monkeypatch):
    """Two translators, a classifier, and a folder without a card."""
    said, right = ["das Licht ist an", "ja"], ["das Licht ist aus", "ja"]
    search = {"n_beams": 1, **score_translations(said, right)}
    other = {"n_beams": 4, **score_translations(right, right)}
    for name, content in {
        "second": {"searches": [search, other]},
        "first": {"searches": [search]},
        "classifier": {"accuracy": 0.8},
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "scores.json").write_text(json.dumps(content))
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(cards, "MODELS", tmp_path)


def test_translators_are_listed(models) -> None:
    assert cards.shipped_translators() == ["first", "second"]


def test_scores_are_read_by_search(models) -> None:
    card = cards.read_card("second")
    assert list(card) == [1, 4]
    assert [score.name for score in card[1]] == ["BLEU", "BLEU", "chrF2"]
    assert card[4][0].value == pytest.approx(100)
    assert card[1][0].value < 100
    assert "case:lc" in card[1][1].signature
    assert card[1][2].n_sentences == 2


@pytest.mark.parametrize("name", ["classifier", "empty", "none"])
def test_a_model_without_such_a_card_is_refused(models, name) -> None:
    with pytest.raises(ValueError, match=rf"'{name}' is none of .*first.*second"):
        cards.read_card(name)


def test_the_shipped_cards_can_be_read() -> None:
    names = cards.shipped_translators()
    assert "grammar" in names
    for name in names:
        for scores in cards.read_card(name).values():
            assert all(s.low <= s.value <= s.high for s in scores)
