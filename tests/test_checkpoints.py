"""Checkpoints come back equal and replace each other as a whole, or are refused."""

import errno
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from transformer_lib.training import checkpoint as checkpoints
from transformer_lib.training.checkpoint import (
    keep_last,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)


def make_content(number: int = 1) -> dict:
    shared = torch.full((3, 5), float(number))
    return {
        "weights": {"first": shared, "second": shared, "half": shared.half()},
        "optimizer": {0: {"step": torch.tensor(7), "betas": (0.9, 0.98)}},
        "empty": torch.zeros(0),
        "rest": [None, True, 1, 0.1, "é", {}],
    }


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_is_loaded_is_what_was_saved(tmp_path) -> None:
    save_checkpoint(tmp_path / "a", make_content())
    loaded, expected = load_checkpoint(tmp_path / "a"), make_content()
    for name, tensor in expected["weights"].items():
        assert torch.equal(loaded["weights"][name], tensor)
        assert loaded["weights"][name].dtype == tensor.dtype
    assert loaded["optimizer"][0]["step"] == 7  # the key is a number, not a text
    assert loaded["optimizer"][0]["betas"] == (0.9, 0.98)
    assert loaded["empty"].shape == (0,)
    assert loaded["rest"] == expected["rest"]


def test_the_state_of_a_trained_optimizer_comes_back(tmp_path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    save_checkpoint(tmp_path, {"optimizer": optimizer.state_dict()})
    other = torch.optim.Adam(model.parameters(), 0.2)
    other.load_state_dict(load_checkpoint(tmp_path)["optimizer"])
    assert other.param_groups[0]["lr"] == 0.1
    for mine, theirs in zip(
        other.state.values(), optimizer.state.values(), strict=True
    ):
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def test_tied_weights_are_stored_once(tmp_path) -> None:
    big = torch.zeros(50_000)
    save_checkpoint(tmp_path, {"a": big, "b": big, "c": big[:10]})
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 1.1 * 4 * 50_000
    assert load_checkpoint(tmp_path)["c"].shape == (10,)


def test_a_new_checkpoint_replaces_the_old_one(tmp_path) -> None:
    save_checkpoint(tmp_path, make_content(1))
    save_checkpoint(tmp_path, make_content(2))
    assert (load_checkpoint(tmp_path)["weights"]["first"] == 2).all()
    assert len(files(tmp_path)) == 2  # nothing of the old one is left
    save_checkpoint(tmp_path, make_content(2))  # the same once more
    assert (load_checkpoint(tmp_path)["weights"]["first"] == 2).all()


@pytest.mark.parametrize("failing_write", [0, 1], ids=["tensors", "index"])
def test_a_full_disk_leaves_the_old_checkpoint(
    tmp_path, monkeypatch, failing_write
) -> None:
    save_checkpoint(tmp_path, make_content(1))
    before, writes = files(tmp_path), []
    rename = checkpoints._rename

    def fail(source: Path, target: Path) -> None:
        writes.append(target)
        if len(writes) > failing_write:
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(checkpoints, "_rename", fail)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(tmp_path, make_content(2))
    assert files(tmp_path) == before
    assert (load_checkpoint(tmp_path)["weights"]["first"] == 1).all()


def test_a_disk_that_fills_up_while_tensors_are_written(tmp_path) -> None:
    save_checkpoint(tmp_path, make_content(1))
    before = files(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))  # 1 MiB a file
    try:
        with pytest.raises(OSError, match="could not be written"):
            save_checkpoint(tmp_path, {"big": torch.zeros(1 << 20)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files(tmp_path) == before
    assert (load_checkpoint(tmp_path)["weights"]["first"] == 1).all()


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from transformer_lib.training import checkpoint as checkpoints
rename, left = checkpoints._rename, [int(sys.argv[2])]
def kill(source, target):
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    rename(source, target)
checkpoints._rename = kill
checkpoints.save_checkpoint(sys.argv[1], {"number": 2, "tensor": torch.ones(3)})
"""


@pytest.mark.parametrize("done", [0, 1], ids=["tensors", "index"])
def test_a_killed_writer_leaves_the_old_checkpoint(tmp_path, done) -> None:
    save_checkpoint(tmp_path, {"number": 1, "tensor": torch.zeros(3)})
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(done)]
    assert subprocess.run(command, check=False).returncode == -9
    assert len(files(tmp_path)) == 3 + done  # half a checkpoint lies about
    assert load_checkpoint(tmp_path)["number"] == 1
    save_checkpoint(tmp_path, {"number": 3})
    assert load_checkpoint(tmp_path)["number"] == 3
    assert len(files(tmp_path)) == 2


def test_a_truncated_or_changed_file_is_refused(tmp_path) -> None:
    save_checkpoint(tmp_path, make_content())
    [file] = tmp_path.glob("*.safetensors")
    data = file.read_bytes()
    file.write_bytes(data[:-1])
    with pytest.raises(
        ValueError, match=f"has {len(data) - 1} bytes, but {len(data)} were written"
    ):
        load_checkpoint(tmp_path)
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ValueError, match="is damaged"):
        load_checkpoint(tmp_path)
    file.unlink()
    with pytest.raises(ValueError, match="is incomplete: tensors-"):
        load_checkpoint(tmp_path)


def test_what_is_no_checkpoint_is_refused(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no checkpoint"):
        load_checkpoint(tmp_path)
    index = tmp_path / "checkpoint.json"
    index.write_text('{"format": ')
    with pytest.raises(ValueError, match="is no JSON text"):
        load_checkpoint(tmp_path)
    for text, found in (('{"format": "x 2"}', "'x 2'"), ("[]", "None")):
        index.write_text(text)
        with pytest.raises(ValueError, match=f"has the format {found}, not"):
            load_checkpoint(tmp_path)


def test_what_a_checkpoint_cannot_hold_is_refused(tmp_path) -> None:
    with pytest.raises(TypeError, match="can't hold /a/b: it is a Path|PosixPath"):
        save_checkpoint(tmp_path, {"a": {"b": tmp_path}})
    assert not files(tmp_path)


def test_a_writer_that_reports_a_full_disk_in_its_own_way(
    tmp_path, monkeypatch
) -> None:
    def fail(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(checkpoints, "save_file", fail)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(tmp_path, make_content())


def test_the_newest_are_kept(tmp_path) -> None:
    for step in (900, 1000, 1100):
        save_checkpoint(tmp_path / f"step-{step:08d}", {"step": step})
    (tmp_path / "step-00001200").mkdir()  # cut off before its index was written
    (tmp_path / "step-00001200" / ".writing-1").touch()
    keep_last(tmp_path, 2)
    kept = [load_checkpoint(folder)["step"] for folder in list_checkpoints(tmp_path)]
    assert kept == [1000, 1100]
    with pytest.raises(ValueError, match="at least 1 .* not 0"):
        keep_last(tmp_path, 0)


def test_the_index_is_readable_text(tmp_path) -> None:
    save_checkpoint(tmp_path, {"step": 3, "weights": torch.zeros(2)})
    index = json.loads((tmp_path / "checkpoint.json").read_text())
    assert index["content"]["dict"][0] == ["step", 3]
