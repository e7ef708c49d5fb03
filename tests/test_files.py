"""A file is the old one or the new one, never a half."""

import errno
import os

import pytest

from transformer_lib.files import remove_leftovers, replacing, write_bytes, write_text


def test_written_is_read_and_replaced(tmp_path) -> None:
    path = tmp_path / "new" / "file.txt"
    write_text(path, "müde\n")
    assert path.read_bytes() == "müde\n".encode()
    write_bytes(path, b"other")
    assert path.read_bytes() == b"other"
    assert os.listdir(path.parent) == ["file.txt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_alone(tmp_path, monkeypatch, step) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_permissions_are_those_of_any_new_file(tmp_path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    write_text(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == plain.stat().st_mode


def test_a_file_appears_when_it_is_whole(tmp_path) -> None:
    path = tmp_path / "file"
    with replacing(path) as file:
        file.write(b"first ")
        assert not path.exists()
        file.write(b"second")
    assert path.read_bytes() == b"first second"
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"third")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"first second"
    assert os.listdir(tmp_path) == ["file"]


def test_leftovers_are_removed_and_nothing_else(tmp_path) -> None:
    for name in (".file.x1y2.tmp", "file.tmp", ".hidden"):
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".hidden", "file.tmp"]
