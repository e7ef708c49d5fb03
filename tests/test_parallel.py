"""Sentence pairs from files: lines stay with their translations or are refused."""

import gzip

import pytest

from transformer_lib.data.corpora import NAMES, load
from transformer_lib.data.corpora.grammar import generate
from transformer_lib.data.corpora.parallel import PARTS, ParallelCorpus, read_lines

FILES = {
    "train.en": "one\ntwo\nthree\n",
    "train.de": "eins\nzwei\ndrei\n",
    "val.en": "four\n",
    "val.de": "vier\n",
    "test.en": "five\nsix",  # the last line need not end
    "test.de": "fünf\nsechs\n",
}
NUMBERS = ("train", "val", "test")


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_lines_become_pairs(folder) -> None:
    corpus = ParallelCorpus.from_folder(folder, "numbers", parts=NUMBERS)
    assert (corpus.name, corpus.src_lang, corpus.tgt_lang) == ("numbers", "en", "de")
    assert corpus.train == (("one", "eins"), ("two", "zwei"), ("three", "drei"))
    assert corpus.valid == (("four", "vier"),)
    assert corpus.test == (("five", "fünf"), ("six", "sechs"))


def test_packed_files_are_read_alike(folder) -> None:
    plain = ParallelCorpus.from_folder(folder, "numbers", parts=NUMBERS)
    for name in FILES:
        path = folder / name
        path.with_name(f"{name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert ParallelCorpus.from_folder(folder, "numbers", parts=NUMBERS) == plain


def test_the_other_direction(folder) -> None:
    corpus = ParallelCorpus.from_folder(folder, "numbers", parts=NUMBERS)
    assert corpus.reversed().train[0] == ("eins", "one")
    assert (corpus.reversed().src_lang, corpus.reversed().tgt_lang) == ("de", "en")
    assert corpus.reversed().reversed() == corpus
    turned = ParallelCorpus.from_folder(folder, "numbers", ("de", "en"), NUMBERS)
    assert turned == corpus.reversed()


def test_only_a_line_feed_ends_a_line(tmp_path) -> None:
    path = tmp_path / "a"
    path.write_bytes("one\u2028two\x85\x0cthree\rfour\r\nfive".encode())
    assert read_lines(path) == ["one\u2028two\x85\x0cthree\rfour", "five"]


def test_unequal_line_counts_name_both_numbers(folder) -> None:
    (folder / "train.de").write_text("eins\nzwei\n")
    with pytest.raises(ValueError, match=r"train\.en has 3 lines, but train\.de has 2"):
        ParallelCorpus.from_folder(folder, "numbers", parts=NUMBERS)


def test_broken_utf8_names_file_and_line(folder) -> None:
    (folder / "test.de").write_bytes("fünf\nsechs\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"test\.de, line 1: no UTF-8"):
        ParallelCorpus.from_folder(folder, "numbers", parts=NUMBERS)
    (folder / "test.de").write_bytes(b"f\nsechs \xff\n")
    with pytest.raises(ValueError, match=r"test\.de, line 2: no UTF-8"):
        ParallelCorpus.from_folder(folder, "numbers", parts=NUMBERS)


def test_empty_files_and_sentences_are_refused(folder) -> None:
    (folder / "train.en").write_text("one\n \nthree\n")
    with pytest.raises(ValueError, match=r"'train', line 2: \('', 'zwei'\)"):
        ParallelCorpus.from_folder(folder, "numbers", parts=NUMBERS)
    for name in ("val.en", "val.de"):
        (folder / name).write_text("")
    (folder / "train.en").write_text(FILES["train.en"])
    with pytest.raises(ValueError, match="corpus 'numbers': part 'valid' is empty"):
        ParallelCorpus.from_folder(folder, "numbers", parts=NUMBERS)


def test_a_missing_file_is_named(folder) -> None:
    (folder / "val.de").unlink()
    with pytest.raises(FileNotFoundError, match=r"neither val\.de nor val\.de\.gz is"):
        ParallelCorpus.from_folder(folder, "numbers", parts=NUMBERS)


@pytest.mark.parametrize("damage", ["truncate", "flip", "foreign"])
def test_a_broken_gzip_file_is_named(tmp_path, damage) -> None:
    content = bytearray(gzip.compress(b"one\ntwo\n" * 50))
    if damage == "flip":
        content[-6] ^= 1
    path = tmp_path / "train.en.gz"
    path.write_bytes({"truncate": content[:-9], "foreign": b"PK"}.get(damage, content))
    with pytest.raises(ValueError, match=r"train\.en\.gz: broken gzip file"):
        read_lines(path)


def test_the_generated_corpus_has_a_fixed_split() -> None:
    corpus = load("grammar")
    sizes = [len(corpus.train), len(corpus.valid), len(corpus.test)]
    assert sizes == [20_000, 500, 1_000]
    train, held_out = set(corpus.train), set(corpus.valid + corpus.test)
    assert len(train) + len(held_out) == sum(sizes)
    assert not train & held_out
    first = generate(3, seed=0)
    assert corpus.train[:3] == tuple((each.english, each.german) for each in first)


def test_an_unknown_corpus_is_refused() -> None:
    with pytest.raises(ValueError, match=f"one of {', '.join(NAMES)}, not 'wmt14'"):
        load("wmt14")


# --- two files of one's own -----------------------------------------------------------


@pytest.fixture
def own_files(tmp_path):
    """200 pairs, the first 50 sources twice."""
    numbers = [*range(150), *range(50)]
    source, target = tmp_path / "mine.fr", tmp_path / "mine.es"
    source.write_text("".join(f"numéro {n}\n" for n in numbers), encoding="utf-8")
    target.write_text("".join(f"número {n}\n" for n in numbers), encoding="utf-8")
    return source, target


def test_two_files_are_split_and_no_sentence_is_in_two_parts(own_files) -> None:
    corpus = ParallelCorpus.from_files(*own_files)
    assert (corpus.name, corpus.src_lang, corpus.tgt_lang) == ("mine", "fr", "es")
    sources = [{src for src, _ in getattr(corpus, part)} for part in PARTS]
    assert [len(part) for part in sources] == [136, 7, 7]
    assert len(set.union(*sources)) == 150
    assert sum(len(getattr(corpus, part)) for part in PARTS) == 200
    assert all(src[7:] == tgt[7:] for src, tgt in corpus.train)
    assert corpus == ParallelCorpus.from_files(*own_files)
    assert corpus.test != ParallelCorpus.from_files(*own_files, seed=1).test


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text + "más\n", r"mine\.fr has 200 lines, but mine\.es has 201"),
        (
            lambda text: text.replace("número 7\n", " \n", 1),
            r"mine\.es, line 8 is empt",
        ),
    ],
)
def test_two_files_that_do_not_fit_are_refused(own_files, change, message) -> None:
    target = own_files[1]
    target.write_text(change(target.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        ParallelCorpus.from_files(*own_files)


def test_too_few_sentences_to_hold_some_out_are_refused(tmp_path) -> None:
    for name in ("a.fr", "a.es"):
        (tmp_path / name).write_text("un\ndeux\n" * 30, encoding="utf-8")
    with pytest.raises(ValueError, match=r"2 different sentences, but at least 20"):
        ParallelCorpus.from_files(tmp_path / "a.fr", tmp_path / "a.es")


def test_a_file_that_is_not_there_is_named(own_files) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*other\.es"):
        ParallelCorpus.from_files(own_files[0], own_files[1].with_name("other.es"))
