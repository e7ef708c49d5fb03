"""Multi30k from a folder and from a server on this machine; its text is not here."""

import gzip
import hashlib
import os
from pathlib import Path

import pooch
import pytest
from file_server import serving

from transformer_lib.data.corpora import load, multi30k
from transformer_lib.data.corpora.download import cache_folder
from transformer_lib.data.corpora.multi30k import SHA256, load_multi30k

PUBLISHED = Path(
    os.environ.get("TRANSFORMER_LIB_MULTI30K") or cache_folder() / "multi30k"
)
FILES = {
    name: gzip.compress(f"{name[:-3]} one\n{name[:-3]} two\n".encode())
    for name in SHA256
}


@pytest.fixture(autouse=True)
def no_folder_of_the_reader(monkeypatch, tmp_path):
    monkeypatch.delenv("TRANSFORMER_LIB_MULTI30K", raising=False)
    monkeypatch.setenv("TRANSFORMER_LIB_DATA", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.fixture
def server(monkeypatch):
    with serving({f"/{name}": content for name, content in FILES.items()}) as state:
        sums = {name: hashlib.sha256(text).hexdigest() for name, text in FILES.items()}
        monkeypatch.setattr(multi30k, "ADDRESS", state.url)
        monkeypatch.setattr(multi30k, "SHA256", sums)
        yield state


def test_a_folder_is_read(folder) -> None:
    corpus = load_multi30k(folder)
    assert corpus.train == (
        ("train.en one", "train.de one"),
        ("train.en two", "train.de two"),
    )
    assert corpus.valid[0] == ("val.en one", "val.de one")
    assert corpus.test[0][0] == "test_2016_flickr.en one"
    later = load_multi30k(folder, test="test_2017_flickr")
    assert later.test[0][0] == "test_2017_flickr.en one"
    assert later.train == corpus.train


def test_unpacked_files_are_read(folder) -> None:
    packed = load_multi30k(folder)
    (folder / "train.en").write_text("train.en one\ntrain.en two\n")
    (folder / "train.en.gz").unlink()
    assert load_multi30k(folder) == packed


def test_the_variable_names_a_folder(folder, monkeypatch) -> None:
    monkeypatch.setenv("TRANSFORMER_LIB_MULTI30K", str(folder))
    assert load_multi30k() == load("multi30k") == load_multi30k(folder)


def test_it_is_downloaded_once_into_the_cache(server, folder) -> None:
    for _ in range(2):
        assert load_multi30k() == load_multi30k(folder)
    assert server.asked == [
        f"/{part}.{language}.gz"
        for part in ("train", "val", "test_2016_flickr")
        for language in ("en", "de")
    ]
    cached = {path.name for path in (folder / "cache" / "multi30k").iterdir()}
    assert cached == {path.removeprefix("/") for path in server.asked}


def test_what_was_downloaded_is_kept_if_a_later_file_fails(server, folder) -> None:
    missing = server.files.pop("/val.de.gz")
    with pytest.raises(ConnectionError, match=r"/val\.de\.gz could not be downloaded"):
        load_multi30k()
    server.files["/val.de.gz"] = missing
    assert load_multi30k() == load_multi30k(folder)
    assert len(server.asked) == len(set(server.asked)) + 1


def test_changed_files_are_refused(server) -> None:
    server.files["/val.de.gz"] = FILES["val.en.gz"]
    with pytest.raises(ValueError, match=r"\(val\.de\.gz\) does not match"):
        load_multi30k()


def test_a_folder_without_the_files_is_named(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"neither train\.en nor train\.en\.gz"):
        load_multi30k(tmp_path)


def test_an_unknown_test_set_is_refused() -> None:
    with pytest.raises(ValueError, match="one of test_2016_flickr, .* not 'test'"):
        load_multi30k(test="test")


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason=f"no Multi30k in {PUBLISHED}")
def test_the_published_files_have_the_checksums_and_sizes() -> None:
    for name, sha256 in SHA256.items():
        assert pooch.file_hash(PUBLISHED / name) == sha256
    for test in multi30k.TESTS:
        corpus = load_multi30k(PUBLISHED, test)
        sizes = [len(corpus.train), len(corpus.valid), len(corpus.test)]
        assert sizes == [29_000, 1_014, 1_000]
