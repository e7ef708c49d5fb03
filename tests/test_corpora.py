"""Corpora: what is shipped is split without leakage, what is downloaded is checked."""

import gzip
import hashlib
import io
import itertools
import json
import random
import tarfile
from pathlib import Path

import numpy as np
import pytest
from file_server import serving
from sklearn.feature_extraction.text import CountVectorizer

from transformer_lib.data import part_of, read_entries, read_lines, read_reviews
from transformer_lib.data.corpora import labelled, load, load_labelled, multi30k
from transformer_lib.data.corpora.download import cache_folder, fetch
from transformer_lib.data.corpora.home_assistant import PAIRS_FILE, last_part
from transformer_lib.data.corpora.labelled import REVIEWS_FILE, load_imdb
from transformer_lib.data.corpora.multi30k import SHA256, load_multi30k
from transformer_lib.data.corpora.parallel import (
    PARTS,
    ParallelCorpus,
    RowsChecksum,
    _count_lines,
)
from transformer_lib.data.normalize import normalize

PUBLISHED = cache_folder() / "multi30k"


@pytest.fixture(autouse=True)
def nothing_of_the_reader(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_LIB_DATA", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("corpus", "sizes", "total"),
    [
        (load("home-assistant"), [10_844, 512, 1_098], len(read_entries())),
        (load("home-assistant-random"), [10_844, 512, 1_098], len(read_entries())),
        (load("grammar"), [20_000, 500, 1_000], 21_500),
        (load_labelled("reviews"), [6_000, 500, 1_500], len(read_reviews())),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_parts_have_fixed_sizes_and_share_no_sentence(corpus, sizes, total) -> None:
    assert [len(getattr(corpus, part)) for part in PARTS] == sizes
    texts = {row[0] for part in PARTS for row in getattr(corpus, part)}
    assert len(texts) == sum(sizes) == total
    # A tokenizer changes none of them, so scores of models hold.
    assert all(text == normalize(text) for text in texts)


# --- Home Assistant -------------------------------------------------------------------


def test_no_component_is_learned_and_tested() -> None:
    corpus = load("home-assistant")
    part = {pair[0]: name for name in PARTS for pair in getattr(corpus, name)}
    for entry in read_entries():
        shown_in = [part_of(component) for component in entry.components]
        assert part[entry.english] == last_part(shown_in)
        assert ("train" in shown_in) == (part[entry.english] == "train")
    assert {*part.values()} == {*PARTS}
    assert last_part(["test", "valid"]) == "valid"


# --- reviews --------------------------------------------------------------------------


def test_no_test_sentence_is_a_near_copy_of_a_training_sentence() -> None:
    corpus = load_labelled("reviews")
    texts = [text for part in ("train", "test") for text, _ in getattr(corpus, part)]
    count = CountVectorizer(binary=True, token_pattern=r"\w+(?:['’]\w+)*", dtype=int)
    every = count.fit_transform(texts)
    train, test = every[:6000], every[6000:]
    shared = (test @ train.T).toarray()  # words that both have
    sizes = np.asarray(every.sum(axis=1)).ravel()
    share = shared / (sizes[6000:, None] + sizes[:6000] - shared)
    assert 0.4 < share.max() < 0.5  # of the words of either


def test_the_label_is_the_sign_of_a_clear_rating() -> None:
    corpus, reviews = load_labelled("reviews"), read_reviews()
    assert {0.5 <= abs(review.rating) <= 4 for review in reviews} == {True}
    labels = {review.text: int(review.rating > 0) for review in reviews}
    for part in PARTS:
        rows = dict(getattr(corpus, part))
        assert rows.items() <= labels.items()
        assert sum(rows.values()) / len(rows) == pytest.approx(0.5, abs=0.04)


def test_terms_lie_beside_the_data() -> None:
    for path, license_, entries in (
        (PAIRS_FILE, "Apache License", read_entries()),
        (REVIEWS_FILE, "The MIT License", read_reviews()),
    ):
        terms, notice = (path.parent / name for name in ("LICENSE", "NOTICE.md"))
        assert license_ in terms.read_text(encoding="utf-8")[:200]
        assert f"{len(entries):,} sentences" in notice.read_text(encoding="utf-8")
        assert path.read_bytes()[4:8] == bytes(4)  # no time in the packed file's head


# --- names ----------------------------------------------------------------------------


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="one of reviews, imdb, not 'grammar'"):
        load_labelled("grammar")
    with pytest.raises(ValueError, match="must be one of grammar, .* not 'imdb'"):
        load("imdb")


# --- sentences of one's own -----------------------------------------------------------


def test_two_files_are_split_so_that_no_test_source_is_in_training(tmp_path) -> None:
    pairs = [(f"s{n % 60}", f"t{n}") for n in range(90)]  # of 60 sources 30 are twice
    for name, side in zip(
        ("mine.en", "mine.de"), zip(*pairs, strict=True), strict=True
    ):
        (tmp_path / name).write_text("\n".join(side) + "\n")
    corpus = ParallelCorpus.from_files(tmp_path / "mine.en", tmp_path / "mine.de")
    assert corpus.name == "mine"
    sources = [{src for src, _ in getattr(corpus, part)} for part in PARTS]
    assert [len(found) for found in sources] == [54, 3, 3]
    assert {pair for part in PARTS for pair in getattr(corpus, part)} == set(pairs)
    assert corpus.reversed().reversed() == corpus
    assert corpus.reversed().test[0] == corpus.test[0][::-1]


def test_another_line_moves_one_source_of_each_part_at_most(tmp_path) -> None:
    """Nearly all test sentences of yesterday were trained on today."""
    files = tmp_path / "a.en", tmp_path / "a.de"
    held = []
    for n in range(300, 340):
        for path in files:
            path.write_text("".join(f"{path.suffix} {k}\n" for k in range(n)))
        corpus = ParallelCorpus.from_files(*files)
        held.append([{*corpus.test}, {*corpus.test, *corpus.valid}])
    for before, after in itertools.pairwise(held):
        for one, other in zip(before, after, strict=True):
            assert len(one - other) <= 1
    assert held[0] != held[-1]  # the test can fail


def test_of_many_sources_a_thousand_are_held_out_and_no_more(tmp_path) -> None:
    """Only the smallest checksums are remembered, and the number of others isn't."""
    sources = [f"s {n}" for n in range(30_000)]
    for name in "a.en", "a.de":
        (tmp_path / name).write_text("".join(f"{text}\n" for text in 2 * sources))
    corpus = ParallelCorpus.from_files(tmp_path / "a.en", tmp_path / "a.de")

    def checksum(text: str) -> bytes:
        return hashlib.blake2b(text.encode(), digest_size=8).digest()

    ranked = sorted(sources, key=checksum)
    for pairs, chosen in (
        (corpus.test, ranked[:1000]),
        (corpus.valid, ranked[1000:2000]),
        (corpus.train, ranked[2000:]),
    ):
        assert len(pairs) == 2 * len(chosen)
        assert {src for src, _ in pairs} == {*chosen}


@pytest.mark.parametrize("n", [0, 1, 999, 1000, 2001])
def test_a_checksum_of_rows_is_that_of_their_json(n) -> None:
    rows, checksum = tuple((f"ä {row}", row) for row in range(n)), RowsChecksum()
    for row in rows:
        checksum.add(row)
        if row[1] == 1234:
            checksum.hexdigest()  # may be asked for in between
    text = json.dumps(rows).encode()
    assert checksum.hexdigest() == hashlib.sha256(text).hexdigest()


def test_sources_that_look_the_same_are_in_the_same_part(tmp_path) -> None:
    """Twins with another space or another form of a letter were learned and tested."""
    sources = [f"ä {n}" for n in range(40)]
    twins = [text.replace("ä ", "a\u0308\u00a0 ") for text in sources]
    (tmp_path / "mine.de").write_text("\n".join([*sources, *twins]) + "\n")
    (tmp_path / "mine.en").write_text("x\n" * 80)
    corpus = ParallelCorpus.from_files(tmp_path / "mine.de", tmp_path / "mine.en")
    for part, n in zip(PARTS, (36, 2, 2), strict=True):
        found = [src for src, _ in getattr(corpus, part)]
        assert len(found) == 2 * n == 2 * len({*map(normalize, found)})
        assert {*found} <= {*sources, *twins}  # as they are in the file


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path) -> None:
    for name in "mine.en", "mine.de":
        text = "".join(f"{name} {n}\n" for n in range(30))
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = tmp_path / "mine.en", tmp_path / "mine.de"
    without = ParallelCorpus.from_files(*files)
    for file in files:
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert ParallelCorpus.from_files(*files) == without
    (tmp_path / "mine.de").write_text("\ufeff\n" + "a\n" * 29, encoding="utf-8")
    with pytest.raises(ValueError, match=r"mine\.de, line 1 is empty"):
        ParallelCorpus.from_files(*files)


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        (["a\n"] * 29, ValueError, r"mine\.en has 30 lines, but mine\.de has 29"),
        (["a\n"] * 29 + ["\n"], ValueError, r"mine\.de, line 30 is empty"),
        (["a\n"] * 29 + ["\u200b\n"], ValueError, r"mine\.de, line 30 is empty"),
        (["a\n"] * 30, ValueError, "1 different sentences, but at least 20"),
        (None, FileNotFoundError, r"No such file .*mine\.de"),
    ],
)
def test_two_files_that_do_not_fit_are_refused(tmp_path, lines, error, message) -> None:
    (tmp_path / "mine.en").write_text("a\n" * 30)
    if lines:
        (tmp_path / "mine.de").write_text("".join(lines))
    with pytest.raises(error, match=message):
        ParallelCorpus.from_files(tmp_path / "mine.en", tmp_path / "mine.de")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\xff\n", r"text\.en, line 1: no UTF-8"),
        (gzip.compress(b"a\n" * 99, mtime=0)[:-9], r"text\.en\.gz: broken gzip file"),
        (b"no gzip", r"text\.en\.gz: broken gzip file"),
    ],
)
def test_a_damaged_file_is_named_with_the_line(tmp_path, content, message) -> None:
    path = tmp_path / ("text.en.gz" if "gz" in message else "text.en")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_lines(path)


@pytest.mark.parametrize("name", ["a", "a.gz"])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("one\x85two\u2028three\n\nfour\n", ["one\x85two\u2028three", "", "four"]),
        ("\ufeffone\r\n two", ["one", "two"]),
        ("\n", [""]),
        ("\ufeff\n\n", ["", ""]),
        ("\ufeff", []),
        ("é", ["é"]),
        ("", []),
    ],
)
def test_only_a_line_feed_ends_a_line(tmp_path, name, content, lines) -> None:
    path, raw = tmp_path / name, content.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix else raw)
    assert read_lines(path) == lines
    assert _count_lines(path) == len(lines)


# --- downloads ------------------------------------------------------------------------

CONTENT = random.Random(0).randbytes(300_000)
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.parametrize(
    ("path", "checksum", "cuts", "error", "message"),
    [
        ("/data.gz", CHECKSUM, [1000], ConnectionError, "could not be downloaded"),
        ("/data.gz", "0" * 64, [], ValueError, rf"expected .*0000 but got {CHECKSUM}"),
        ("/no", CHECKSUM, [], ConnectionError, r"no could .* \(404 .*data\.gz into /"),
    ],
)
def test_a_file_is_kept_whole_and_right_or_not_at_all(
    tmp_path, path, checksum, cuts, error, message
) -> None:
    into = tmp_path / "kept" / "data.gz"
    with serving({"/data.gz": CONTENT}) as server:
        server.cuts = list(cuts)
        with pytest.raises(error, match=message):
            fetch(server.url + path, checksum, into)
        assert not list(into.parent.glob("*"))
        server.cuts = []
        fetch(f"{server.url}/data.gz", CHECKSUM, into)
    # Without a network, what was fetched or put there by hand does.
    assert fetch(f"{server.url}/data.gz", CHECKSUM, into).read_bytes() == CONTENT


# --- Multi30k -------------------------------------------------------------------------

CAPTIONS = {
    name: gzip.compress(f"{name[:-3]} one\n{name[:-3]} two\n".encode())
    for name in SHA256
}


@pytest.fixture
def folder(tmp_path):
    for name, content in CAPTIONS.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_multi30k_is_read_from_a_folder_packed_or_not(folder) -> None:
    corpus = load_multi30k(folder)
    assert corpus.train[1] == ("train.en two", "train.de two")
    assert corpus.valid[0] == ("val.en one", "val.de one")
    assert corpus.test[0][0] == "test_2016_flickr.en one"
    (folder / "train.en").write_text("train.en one\ntrain.en two\n")
    (folder / "train.en.gz").unlink()
    assert load_multi30k(folder) == corpus
    (folder / "train.en").unlink()
    with pytest.raises(FileNotFoundError, match=r"neither train\.en nor train\.en\.gz"):
        load_multi30k(folder)


@pytest.mark.skipif(
    not all((PUBLISHED / name).is_file() for name in SHA256),
    reason=f"Multi30k is not in {PUBLISHED}",
)
def test_the_published_files_have_the_checksums_and_sizes() -> None:
    for name, sha256 in SHA256.items():
        assert hashlib.sha256((PUBLISHED / name).read_bytes()).hexdigest() == sha256
    corpus = load_multi30k(PUBLISHED)
    assert [len(getattr(corpus, part)) for part in PARTS] == [29_000, 1_014, 1_000]


# --- IMDb -----------------------------------------------------------------------------

REVIEWS = {
    f"aclImdb/{part}/{kind}/{number}_{stars}.txt": (
        f"{part} {kind} {number}<br /><br />don&#39;t know"
    ).encode()
    for part in ("train", "test")
    for kind, stars in (("neg", 2), ("pos", 9))
    for number in range(10)
}
OTHERS = {"aclImdb/train/unsup/0_0.txt": b"no label", "aclImdb/README": b"read me"}


def pack(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def test_imdb_is_read_from_an_archive_in_any_order(tmp_path) -> None:
    corpus = load_imdb(pack(tmp_path / "a.tar.gz", REVIEWS | OTHERS))
    assert [len(getattr(corpus, part)) for part in PARTS] == [18, 2, 20]
    assert corpus.classes == ("negative", "positive")
    known = {*corpus.train, *corpus.valid}
    assert ("train pos 3 don't know", 1) in known and len(known) == 20
    assert ("test neg 7 don't know", 0) in corpus.test
    other = pack(tmp_path / "b.tar.gz", dict(sorted(REVIEWS.items(), reverse=True)))
    assert load_imdb(other).train == corpus.train
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "b.tar.gz"]


def without(part: str) -> dict[str, bytes]:
    return {name: text for name, text in REVIEWS.items() if part not in name}


@pytest.mark.parametrize(
    ("files", "size", "message"),
    [
        (REVIEWS, 10, "ended"),
        (REVIEWS, -200, "ended"),
        (without("/test/"), None, "reviews are missing"),
        (without("train/neg"), None, "reviews are missing"),
        (REVIEWS | {"aclImdb/train/pos/0_9.txt": b"\xff"}, None, "utf-8"),
    ],
)
def test_a_broken_archive_is_named(tmp_path, files, size, message) -> None:
    path = pack(tmp_path / "bad.tar.gz", files)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=rf"bad\.tar\.gz is broken .*{message}"):
        load_imdb(path)


# --- each downloaded once -------------------------------------------------------------


def test_a_corpus_is_downloaded_once(folder, monkeypatch) -> None:
    sums = {name: hashlib.sha256(text).hexdigest() for name, text in CAPTIONS.items()}
    packed = pack(folder / "a.tar.gz", REVIEWS).read_bytes()
    pages = {f"/{name}": text for name, text in CAPTIONS.items()}
    with serving(pages | {"/a.tar.gz": packed}) as server:
        monkeypatch.setattr(multi30k, "ADDRESS", server.url)
        monkeypatch.setattr(multi30k, "SHA256", sums)
        monkeypatch.setattr(labelled, "IMDB", f"{server.url}/a.tar.gz")
        sha256 = hashlib.sha256(packed).hexdigest()
        monkeypatch.setattr(labelled, "IMDB_SHA256", sha256)
        for _ in range(2):
            assert load("multi30k") == load_multi30k(folder)
            assert load_labelled("imdb") == load_imdb(folder / "a.tar.gz")
    assert len(server.asked) == len(set(server.asked)) == 7
