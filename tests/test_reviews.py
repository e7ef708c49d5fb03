"""The rated sentences: split without near-copies, with their terms."""

import gzip
import re

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from transformer_lib.data.corpora import load_labelled
from transformer_lib.data.corpora.labelled import (
    REVIEWS_FILE,
    LabelledCorpus,
    Review,
    label,
    load_reviews,
    read_reviews,
)
from transformer_lib.data.corpora.parallel import PARTS

CORPUS = load_reviews()


def texts(part: str) -> list[str]:
    return [text for text, _ in getattr(CORPUS, part)]


def test_the_parts_have_fixed_sizes_and_share_no_sentence() -> None:
    assert [len(texts(part)) for part in PARTS] == [6000, 500, 1500]
    every = {text for part in PARTS for text in texts(part)}
    assert len(every) == 8000 == len(read_reviews())


def test_the_classes_are_about_as_frequent_in_every_part() -> None:
    for part in PARTS:
        rows = getattr(CORPUS, part)
        assert sum(found for _, found in rows) / len(rows) == pytest.approx(
            0.5, abs=0.04
        )


def test_no_test_sentence_is_a_near_copy_of_a_training_sentence() -> None:
    count = CountVectorizer(binary=True, token_pattern=r"\w+(?:['’]\w+)*", dtype=int)
    every = count.fit_transform(texts("train") + texts("test"))
    train, test = every[:6000], every[6000:]
    shared = (test @ train.T).toarray()  # words that both have
    sizes = np.asarray(every.sum(axis=1)).ravel()
    share = shared / (sizes[6000:, None] + sizes[:6000] - shared)
    assert 0.4 < share.max() < 0.5  # of the words of either


def test_the_label_is_the_sign_of_a_clear_rating() -> None:
    assert label(Review(0.5, "good")) == ("good", 1)
    assert label(Review(-0.5, "bad")) == ("bad", 0)
    assert min(abs(review.rating) for review in read_reviews()) >= 0.5
    assert max(abs(review.rating) for review in read_reviews()) <= 4
    assert CORPUS.test[0] == label(read_reviews()[0])


def test_sentences_are_cleaned_and_of_moderate_length() -> None:
    for review in read_reviews():
        assert 3 <= len(review.text.split()) <= 40, review
        assert not re.search(r"\s\s|^\s|\s$|''", review.text), review


def test_the_notice_names_source_and_authors() -> None:
    notice = (REVIEWS_FILE.parent / "NOTICE.md").read_text(encoding="utf-8")
    assert f"{len(read_reviews()):,} sentences" in notice
    assert re.search(r"sha256 [0-9a-f]{64}\)", notice)
    assert "Hutto" in notice
    assert "Pang" in notice
    license_text = (REVIEWS_FILE.parent / "LICENSE").read_text(encoding="utf-8")
    assert license_text.startswith("The MIT License")


def test_it_is_small_enough_to_be_shipped() -> None:
    content = REVIEWS_FILE.read_bytes()
    assert len(content) < 600_000
    assert content[4:8] == bytes(4)  # no time in the head of the packed file
    assert gzip.decompress(content).endswith(b"\n")


GOOD = (("fine", 1), ("dull", 0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test": ()}, "corpus 'tiny': part 'test' is empty"),
        ({"valid": (*GOOD, (" ", 1))}, "part 'valid', line 3: the text is empty"),
        ({"test": (("fine", 2),)}, "line 1: label 2 is none of the 2 classes no, yes"),
        ({"test": (("fine", -1),)}, "label -1 is none"),
        ({"train": (("fine", 1),)}, "class 'no' never occurs among 1 training texts"),
    ],
)
def test_texts_that_teach_nothing_are_refused(changes, message) -> None:
    parts = {"train": GOOD, "valid": GOOD, "test": GOOD}
    LabelledCorpus("tiny", ("no", "yes"), **parts)
    with pytest.raises(ValueError, match=message):
        LabelledCorpus("tiny", ("no", "yes"), **{**parts, **changes})


def test_labelled_corpora_are_found_by_name() -> None:
    assert load_labelled("reviews") == CORPUS
    with pytest.raises(ValueError, match="must be one of reviews, imdb, not 'grammar'"):
        load_labelled("grammar")
