"""IMDb from small archives in its layout and from a server on this machine."""

import hashlib
import io
import tarfile

import pytest
from file_server import serving

from transformer_lib.data.corpora import imdb
from transformer_lib.data.corpora.imdb import load_imdb, read_archive

FILES = {
    f"aclImdb/{part}/{kind}/{number}_{stars}.txt": (
        f"{part} {kind} {number}<br /><br />don&#39;t know"
    ).encode()
    for part in ("train", "test")
    for kind, stars in (("neg", 2), ("pos", 9))
    for number in range(10)
}
OTHERS = {
    "aclImdb/train/unsup/0_0.txt": b"no label",
    "aclImdb/train/urls_pos.txt": b"an address",
    "aclImdb/README": b"read me",
}


def pack(files: dict[str, bytes | None], path=None) -> bytes:
    """Pack files; None makes a symbolic link out of the archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "../../etc/passwd"
            else:
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content or b""))
    if path:
        path.write_bytes(packed.getvalue())
    return packed.getvalue()


@pytest.fixture(autouse=True)
def no_archive_of_the_reader(monkeypatch, tmp_path):
    monkeypatch.delenv("TRANSFORMER_LIB_IMDB", raising=False)
    monkeypatch.setenv("TRANSFORMER_LIB_DATA", str(tmp_path / "cache"))


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "aclImdb_v1.tar.gz"
    pack(FILES | OTHERS, path)
    return path


@pytest.fixture
def server(monkeypatch):
    content = pack(FILES | OTHERS)
    with serving({"/aclImdb_v1.tar.gz": content}) as state:
        monkeypatch.setattr(imdb, "ADDRESS", f"{state.url}/aclImdb_v1.tar.gz")
        monkeypatch.setattr(imdb, "SHA256", hashlib.sha256(content).hexdigest())
        yield state


def test_labels_come_from_the_folders_and_markup_goes(archive) -> None:
    parts = read_archive(archive)
    assert {part: len(rows) for part, rows in parts.items()} == {
        "train": 20,
        "test": 20,
    }
    assert ("train pos 3 don't know", 1) in parts["train"]
    assert ("test neg 7 don't know", 0) in parts["test"]


def test_a_tenth_of_training_is_held_out(archive) -> None:
    corpus = load_imdb(archive)
    sizes = [len(rows) for rows in (corpus.train, corpus.valid, corpus.test)]
    assert sizes == [18, 2, 20]
    assert corpus.classes == ("negative", "positive")
    assert set(corpus.train) | set(corpus.valid) == set(read_archive(archive)["train"])


def test_the_split_does_not_depend_on_the_order_in_the_archive(tmp_path) -> None:
    corpora = []
    for number, names in enumerate((sorted(FILES), sorted(FILES, reverse=True))):
        path = tmp_path / f"{number}.tar.gz"
        pack({name: FILES[name] for name in names}, path)
        corpora.append(load_imdb(path))
    assert corpora[0].train == corpora[1].train
    assert corpora[0].valid == corpora[1].valid


def test_it_is_downloaded_once(server, tmp_path) -> None:
    assert load_imdb() == load_imdb()
    assert server.asked == ["/aclImdb_v1.tar.gz"]
    kept = [path.name for path in (tmp_path / "cache").rglob("*")]
    assert kept == ["imdb", "aclImdb_v1.tar.gz"]


def test_another_checksum_is_refused(server, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(imdb, "SHA256", "0" * 64)
    with pytest.raises(ValueError, match=r"\(aclImdb_v1\.tar\.gz\) does not match"):
        load_imdb()
    assert not list((tmp_path / "cache" / "imdb").iterdir())


def test_a_copy_can_be_named(archive, monkeypatch) -> None:
    monkeypatch.setenv("TRANSFORMER_LIB_IMDB", str(archive))
    assert load_imdb() == load_imdb(archive)
    with pytest.raises(FileNotFoundError):
        load_imdb(archive.with_name("none.tar.gz"))


def test_nothing_is_unpacked(archive, tmp_path) -> None:
    before = sorted(tmp_path.rglob("*"))
    load_imdb(archive)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("size", [10, 100, -200, -1])
def test_a_cut_archive_is_refused(archive, size) -> None:
    archive.write_bytes(archive.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"aclImdb_v1\.tar\.gz: broken archive: "):
        load_imdb(archive)


def test_what_is_no_archive_is_refused(archive) -> None:
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 255
    for broken in (b"", b"no archive", bytes(content)):
        archive.write_bytes(broken)
        with pytest.raises(ValueError, match="broken archive"):
            load_imdb(archive)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"../evil.txt": b"x"}, r"'\.\./evil\.txt' leads out of the archive"),
        ({"aclImdb/train/pos/../../../x": b"x"}, "leads out of the archive"),
        ({"/etc/passwd": b"x"}, "'/etc/passwd' leads out of the archive"),
        ({"aclImdb/train/pos/0_9.txt": None}, r"pos/0_9\.txt is no plain file"),
        ({"aclImdb/train/pos/0_9.txt": b"\xff"}, r"0_9\.txt: no UTF-8"),
        (
            {"aclImdb/train/pos/0_9.txt": b"x" * 2_000_000},
            "2,000,000 bytes, more than 1,000,000",
        ),
        ({"aclImdb/train/pos/0_9.txt": b" <br />"}, "incomplete: .* text is empty"),
    ],
)
def test_an_unsafe_or_damaged_member_is_refused(tmp_path, files, message) -> None:
    path = tmp_path / "bad.tar.gz"
    pack(FILES | files, path)
    with pytest.raises(ValueError, match=message):
        load_imdb(path)


def test_a_missing_part_or_class_is_named(tmp_path) -> None:
    path = tmp_path / "part.tar.gz"
    pack({n: c for n, c in FILES.items() if "/test/" not in n}, path)
    with pytest.raises(ValueError, match=r"part\.tar\.gz is incomplete: .* 'test' is"):
        load_imdb(path)
    pack({n: c for n, c in FILES.items() if "train/neg" not in n}, path)
    with pytest.raises(ValueError, match="incomplete: .*'negative' never occurs"):
        load_imdb(path)


def test_bars_are_shown_on_demand_only(archive, capsys) -> None:
    load_imdb(archive)
    assert capsys.readouterr().err == ""
    load_imdb(archive, progress=True)
    assert "aclImdb_v1.tar.gz" in capsys.readouterr().err
