"""The rated sentences: as extracted, split without near-copies, with their terms."""

import gzip
import hashlib
import io
import tarfile

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from book_tools import extract_reviews as extraction
from transformer_lib.data.corpora import load_labelled
from transformer_lib.data.corpora.labelled import LabelledCorpus
from transformer_lib.data.corpora.parallel import PARTS
from transformer_lib.data.corpora.reviews import (
    REVIEWS_FILE,
    Review,
    label,
    load_reviews,
    read_reviews,
)

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
    assert 0.4 < share.max() < extraction.NEAR_COPY  # of the words of either


def test_the_label_is_the_sign_of_a_clear_rating() -> None:
    assert label(Review(0.5, "good")) == ("good", 1)
    assert label(Review(-0.5, "bad")) == ("bad", 0)
    assert min(abs(review.rating) for review in read_reviews()) >= 0.5
    assert max(abs(review.rating) for review in read_reviews()) <= 4
    assert CORPUS.test[0] == label(read_reviews()[0])


def test_the_notice_names_source_and_authors() -> None:
    notice = (REVIEWS_FILE.parent / "NOTICE.md").read_text(encoding="utf-8")
    assert f"{len(read_reviews()):,} sentences" in notice
    assert extraction.RELEASE_SHA256 in notice
    assert "Hutto" in notice
    assert "Pang" in notice
    license_text = (REVIEWS_FILE.parent / "LICENSE").read_text(encoding="utf-8")
    assert license_text.startswith("The MIT License")


def test_it_is_small_enough_to_be_shipped() -> None:
    content = REVIEWS_FILE.read_bytes()
    assert len(content) < 600_000
    assert content[4:8] == bytes(4)  # no time in the head of the packed file
    assert gzip.decompress(content).endswith(b"\n")


TABLE = """1\t2.26666666667\tA  film to  ''see''.
2\t0.4\tNeither good nor bad here.
3\t-0.5\tA bad film it is.
4\t3.0\tToo short.
5\t-3.0\tIt is a bad film!"""


def pack(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def test_rows_are_cleaned_and_near_copies_left_out() -> None:
    lines = extraction.table(extraction.parse(TABLE)).splitlines()
    assert len(lines) == 2
    assert '2.27\tA film to "see".' in lines
    [bad] = [line for line in lines if line != '2.27\tA film to "see".']
    assert bad in ("-0.50\tA bad film it is.", "-3.00\tIt is a bad film!")


def test_half_of_the_words_make_a_near_copy() -> None:
    reviews = [Review(1, "a b c d"), Review(1, "a b x y"), Review(1, "A, b: c x!")]
    kept = list(extraction.without_near_copies(reviews))
    assert kept == reviews[:2]  # 2 of 6 words are shared, then 3 of 5


def test_extraction_writes_the_same_bytes_again(tmp_path, monkeypatch) -> None:
    ratings = pack({extraction.TABLE: TABLE.encode()})
    release = tmp_path / "release.tar.gz"
    release.write_bytes(pack({extraction.RATINGS: ratings, extraction.LICENSE: b"MIT"}))
    digest = hashlib.sha256(release.read_bytes()).hexdigest()
    monkeypatch.setattr(extraction, "RELEASE_SHA256", digest)
    written = []
    for number in range(2):
        target = tmp_path / str(number) / "reviews.tsv.gz"
        monkeypatch.setattr(extraction, "REVIEWS_FILE", target)
        extraction.main(str(release))
        written.append(target.read_bytes())
        assert (target.parent / "LICENSE").read_bytes() == b"MIT"
    assert written[0] == written[1]


def test_another_release_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(extraction, "REVIEWS_FILE", tmp_path / "new" / "reviews.tsv.gz")
    (tmp_path / "other.tar.gz").write_bytes(b"another")
    with pytest.raises(SystemExit, match="sha256 is .*, not 5d7c06e0"):
        extraction.main(str(tmp_path / "other.tar.gz"))
    assert not (tmp_path / "new").exists()


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
