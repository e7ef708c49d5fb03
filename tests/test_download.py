"""Downloads from a server on this machine: cut, resumed, checked, never half."""

import hashlib
import random
from pathlib import Path

import pytest
from file_server import serving

from transformer_lib.data.corpora import download
from transformer_lib.data.corpora.download import cache_folder, fetch

CONTENT = random.Random(0).randbytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server():
    with serving({"/data.gz": CONTENT}) as state:
        yield state


@pytest.fixture
def into(tmp_path):
    return tmp_path / "cache" / "data.gz"


def files(into) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in into.parent.iterdir()}


def test_a_file_is_fetched_once(server, into) -> None:
    for _ in range(2):
        assert fetch(f"{server.url}/data.gz", SHA256, into) == into
        assert files(into) == {"data.gz": CONTENT}
    assert len(server.asked) == 1


def test_a_damaged_file_is_fetched_anew(server, into) -> None:
    into.parent.mkdir()
    into.write_bytes(CONTENT[:-1])
    fetch(f"{server.url}/data.gz", SHA256, into)
    assert files(into) == {"data.gz": CONTENT}


def test_after_a_cut_only_the_rest_is_asked_for(server, into) -> None:
    server.cuts = [100_000, 50_000]
    fetch(f"{server.url}/data.gz", SHA256, into)
    assert files(into) == {"data.gz": CONTENT}
    ranges = [wanted for _, wanted in server.asked]
    assert ranges == [None, "bytes=100000-", "bytes=150000-"]


def test_after_too_many_cuts_the_next_call_goes_on(server, into) -> None:
    server.cuts = [100_000, 50_000, 0]
    with pytest.raises(ConnectionError, match=r"150000 of 300000 bytes\. 150000 bytes"):
        fetch(f"{server.url}/data.gz", SHA256, into)
    assert files(into) == {"data.gz.part": CONTENT[:150_000]}
    fetch(f"{server.url}/data.gz", SHA256, into)
    assert server.asked[-1][1] == "bytes=150000-"
    assert files(into) == {"data.gz": CONTENT}


def test_a_server_without_ranges_sends_all_of_it_again(server, into) -> None:
    server.ranges, server.cuts = False, [100_000]
    fetch(f"{server.url}/data.gz", SHA256, into)
    assert files(into) == {"data.gz": CONTENT}
    assert len(server.asked) == 2


def test_a_whole_part_needs_no_byte_more(server, into) -> None:
    into.parent.mkdir()
    into.with_name("data.gz.part").write_bytes(CONTENT)
    fetch(f"{server.url}/data.gz", SHA256, into)
    assert files(into) == {"data.gz": CONTENT}


@pytest.mark.parametrize("have", [b"", b"another file", CONTENT + b"too long"])
def test_a_wrong_checksum_is_refused_and_nothing_kept(server, into, have) -> None:
    into.parent.mkdir()
    into.with_name("data.gz.part").write_bytes(have)
    wrong = SHA256 if have else "0" * 64
    with pytest.raises(ValueError, match=rf"data\.gz: sha256 is .*, not {wrong}"):
        fetch(f"{server.url}/data.gz", wrong, into)
    assert files(into) == {}
    fetch(f"{server.url}/data.gz", SHA256, into)
    assert files(into) == {"data.gz": CONTENT}


def test_the_old_file_stays_until_the_new_one_is_right(server, into) -> None:
    into.parent.mkdir()
    into.write_bytes(b"old")
    with pytest.raises(ValueError, match="sha256"):
        fetch(f"{server.url}/data.gz", "0" * 64, into)
    assert files(into) == {"data.gz": b"old"}


def test_what_does_not_answer_is_named(server, into) -> None:
    with pytest.raises(ConnectionError, match=r"/none\.gz: HTTP Error 404: Not Found"):
        fetch(f"{server.url}/none.gz", SHA256, into)
    assert len(server.asked) == 1  # asking again would not help
    with serving({}) as gone:
        pass
    with pytest.raises(ConnectionError, match=r"/data\.gz: .*refused.* 0 bytes"):
        fetch(f"{gone.url}/data.gz", SHA256, into)


def test_a_full_disk_loses_nothing(server, into, monkeypatch) -> None:
    def full(*_args):
        raise OSError(28, "No space left on device")

    into.parent.mkdir()
    into.write_bytes(b"old")
    monkeypatch.setattr(download.os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        fetch(f"{server.url}/data.gz", SHA256, into)
    assert files(into) == {"data.gz": b"old", "data.gz.part": CONTENT}


def test_a_bar_is_shown_on_demand_only(server, into, capsys) -> None:
    fetch(f"{server.url}/data.gz", SHA256, into)
    assert capsys.readouterr().err == ""
    into.unlink()
    fetch(f"{server.url}/data.gz", SHA256, into, progress=True)
    assert "300k/300k" in capsys.readouterr().err


def test_the_cache_is_where_the_reader_says(monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/home/reader")
    monkeypatch.delenv("TRANSFORMER_LIB_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path("/home/reader/.cache/transformer_lib")
    monkeypatch.setenv("XDG_CACHE_HOME", "/big")
    assert cache_folder() == Path("/big/transformer_lib")
    monkeypatch.setenv("TRANSFORMER_LIB_DATA", "~/here")
    assert cache_folder() == Path("/home/reader/here")
