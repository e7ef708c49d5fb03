"""Downloads from a server on this machine: checked, kept, never half."""

import functools
import hashlib
import random
from pathlib import Path

import pooch
import pytest
from file_server import serving
from tqdm import tqdm

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
    assert server.asked == ["/data.gz"]


def test_a_damaged_file_is_fetched_anew(server, into) -> None:
    into.parent.mkdir()
    into.write_bytes(CONTENT[:-1])
    fetch(f"{server.url}/data.gz", SHA256, into)
    assert files(into) == {"data.gz": CONTENT}


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_truncated_download_leaves_everything_as_it_was(server, into, old) -> None:
    into.parent.mkdir()
    if old:
        into.write_bytes(old)
    before = files(into)
    server.cuts = [100_000]
    with pytest.raises(ConnectionError, match=r"/data\.gz could not be downloaded"):
        fetch(f"{server.url}/data.gz", SHA256, into)
    assert files(into) == before
    fetch(f"{server.url}/data.gz", SHA256, into)
    assert files(into) == {"data.gz": CONTENT}


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_wrong_checksum_is_refused_and_nothing_kept(server, into, old) -> None:
    into.parent.mkdir()
    if old:
        into.write_bytes(old)
    before = files(into)
    with pytest.raises(
        ValueError, match=rf"data\.gz.* expected .*0000 but got {SHA256}"
    ):
        fetch(f"{server.url}/data.gz", "0" * 64, into)
    assert files(into) == before


def test_a_download_without_end_is_cut_off(server, into, monkeypatch) -> None:
    monkeypatch.setattr(download, "MOST_BYTES", len(CONTENT) - 1)
    with pytest.raises(ValueError, match="a download is larger than 299,999 bytes"):
        fetch(f"{server.url}/data.gz", SHA256, into)
    assert files(into) == {}
    monkeypatch.setattr(download, "MOST_BYTES", len(CONTENT))
    assert fetch(f"{server.url}/data.gz", SHA256, into).read_bytes() == CONTENT


def test_an_address_without_the_file_is_named(server, into) -> None:
    with pytest.raises(ConnectionError, match=r"/none\.gz could .* \(404 .*Not Found"):
        fetch(f"{server.url}/none.gz", SHA256, into)


def test_without_a_network_a_file_can_be_put_by_hand(into) -> None:
    with serving({}) as gone:
        address = f"{gone.url}/data.gz"
    with pytest.raises(ConnectionError) as caught:
        fetch(address, SHA256, into)
    for named in (address, "data.gz into", str(into.parent)):
        assert named in str(caught.value)
    into.write_bytes(CONTENT)
    assert fetch(address, SHA256, into) == into


def test_a_bar_is_shown_on_demand_only(server, into, capsys, monkeypatch) -> None:
    shown = functools.partial(tqdm, disable=False)  # tests run with TQDM_DISABLE=1
    monkeypatch.setattr(pooch.downloaders, "tqdm", shown)
    fetch(f"{server.url}/data.gz", SHA256, into)
    assert capsys.readouterr().err == ""
    into.unlink()
    fetch(f"{server.url}/data.gz", SHA256, into, progress=True)
    assert "300k/300k" in capsys.readouterr().err


def test_the_cache_is_where_the_reader_says(monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/home/reader")
    monkeypatch.setenv("TRANSFORMER_LIB_DATA", "~/here")
    assert cache_folder() == Path("/home/reader/here")
    monkeypatch.delenv("TRANSFORMER_LIB_DATA")
    assert cache_folder() == Path(pooch.os_cache("transformer_lib"))
