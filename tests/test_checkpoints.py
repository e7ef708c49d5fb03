"""Checkpoints come back equal and replace each other as a whole, or are refused."""

import json
import os
import resource
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from transformer_lib.training.checkpoint import (
    checkpoint_name,
    checkpoint_step,
    keep_only,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)

OLD_RUN = Path(__file__).parent / "old_run"  # written by the first edition's code


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


@pytest.fixture
def saved(tmp_path) -> Path:
    """A checkpoint that holds the number 1, alone in its folder."""
    save_checkpoint(tmp_path / "a.pt", make_content(1))
    return tmp_path / "a.pt"


def number_in(path: Path) -> float:
    return load_checkpoint(path)["weights"]["first"][0, 0].item()


def test_what_is_loaded_is_what_was_saved(saved) -> None:
    loaded, expected = load_checkpoint(saved), make_content()
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
    save_checkpoint(tmp_path / "a.pt", {"optimizer": optimizer.state_dict()})
    other = torch.optim.Adam(model.parameters(), 0.2)
    other.load_state_dict(load_checkpoint(tmp_path / "a.pt")["optimizer"])
    assert other.param_groups[0]["lr"] == 0.1
    for mine, theirs in zip(
        other.state.values(), optimizer.state.values(), strict=True
    ):
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def test_tied_weights_are_stored_once(tmp_path) -> None:
    big, path = torch.zeros(50_000), tmp_path / "a.pt"
    save_checkpoint(path, {"a": big, "b": big, "c": big[:10]})
    assert path.stat().st_size < 1.1 * 4 * 50_000
    assert load_checkpoint(path)["c"].shape == (10,)


def test_a_new_checkpoint_replaces_the_old_one(saved) -> None:
    save_checkpoint(saved, make_content(2))
    assert number_in(saved) == 2
    assert files(saved.parent) == {"a.pt"}


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_checkpoint(saved, monkeypatch, step) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(saved, make_content(2))
    assert files(saved.parent) == {"a.pt"}
    assert number_in(saved) == 1


def test_a_disk_that_fills_up_while_tensors_are_written(saved) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))  # 1 MiB a file
    try:
        with pytest.raises(OSError, match=r"a\.pt could not be written"):
            save_checkpoint(saved, {"big": torch.zeros(1 << 20)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files(saved.parent) == {"a.pt"}
    assert number_in(saved) == 1


KILLED = """
import os, signal, sys, torch
from transformer_lib.training.checkpoint import save_checkpoint
setattr(os, sys.argv[2], lambda *_: os.kill(os.getpid(), signal.SIGKILL))
save_checkpoint(sys.argv[1], {"number": 2, "tensor": torch.ones(3)})
"""


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_killed_writer_leaves_the_old_checkpoint(tmp_path, step) -> None:
    path = tmp_path / checkpoint_name(1)
    save_checkpoint(path, make_content(1))
    command = [sys.executable, "-c", KILLED, str(path), step]
    assert subprocess.run(command, check=False).returncode == -9
    assert len(files(tmp_path)) == 2  # an unfinished file lies about
    assert number_in(path) == 1
    assert list_checkpoints(tmp_path) == [path]
    keep_only(tmp_path, [path])
    assert files(tmp_path) == {path.name}


def test_a_truncated_or_changed_file_is_refused(saved) -> None:
    data = saved.read_bytes()
    for rest in (data[:-1], data[: len(data) // 2], b""):
        saved.write_bytes(rest)
        with pytest.raises(ValueError, match=r"a\.pt is no checkpoint, .*truncated"):
            load_checkpoint(saved)
    place = data.index(torch.ones(15).numpy().tobytes())  # one bit of one weight
    changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    saved.write_bytes(changed)
    torch.load(saved, weights_only=True)  # torch itself doesn't notice
    with pytest.raises(ValueError, match=r"a\.pt is damaged: the checksum of archive"):
        load_checkpoint(saved)


class Trap:
    def __reduce__(self):
        return Path.touch, (Path("sprung"),)


def test_code_in_a_file_is_not_run(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"weights": Trap()}, "trap.pt")
    with pytest.raises(
        ValueError, match=r"trap\.pt is no checkpoint: it holds more than"
    ):
        load_checkpoint("trap.pt")
    assert files(tmp_path) == {"trap.pt"}
    torch.load("trap.pt", weights_only=False)  # the trap does work
    assert "sprung" in files(tmp_path)


def test_what_is_no_checkpoint_is_refused(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.pt"):
        load_checkpoint(tmp_path / "none.pt")
    other = tmp_path / "other.pt"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("name", "text")
    with pytest.raises(ValueError, match=r"other\.pt is no checkpoint: "):
        load_checkpoint(other)
    for content, found in (({"format": "x 2"}, "'x 2'"), ([1], "None")):
        torch.save(content, other)
        with pytest.raises(ValueError, match=rf"other\.pt has the format {found}, not"):
            load_checkpoint(other)


def test_what_a_checkpoint_cannot_hold_is_refused(tmp_path) -> None:
    for value in (tmp_path, torch.Size([1]), {1, 2}):
        kind = type(value).__name__
        with pytest.raises(TypeError, match=f"can't hold /a/b/1: it is a {kind}"):
            save_checkpoint(tmp_path / "a.pt", {"a": {"b": [0, value]}})
    with pytest.raises(TypeError, match="can't hold /a: it is a PosixPath"):
        save_checkpoint(tmp_path / "a.pt", {"a": {tmp_path: 0}})
    assert not files(tmp_path)


def test_the_newest_are_kept(tmp_path) -> None:
    shutil.copytree(OLD_RUN / "checkpoints", tmp_path, dirs_exist_ok=True)
    for step in (900, 1000, 1100):
        save_checkpoint(tmp_path / checkpoint_name(step), {"step": step})
    steps = [load_checkpoint(path)["step"] for path in list_checkpoints(tmp_path)]
    assert steps == [4, 900, 1000, 1100]
    assert [checkpoint_step(path) for path in list_checkpoints(tmp_path)] == steps
    keep_only(tmp_path, list_checkpoints(tmp_path)[-2:])
    assert files(tmp_path) == {checkpoint_name(1000), checkpoint_name(1100)}
    with pytest.raises(ValueError, match="at least 1 .* not 0"):
        keep_only(tmp_path, [])


def test_the_first_edition_kept_lists_tuples_and_a_scaler(tmp_path) -> None:
    save_file({"t": torch.ones(3)}, tmp_path / "tensors.safetensors")
    weights = {"dict": [["model.head", {"tensor": "t"}]]}
    content = {
        "state_dict": weights,
        "global_step": 7,
        "optimizer_states": {"list": [{"dict": [["betas", {"tuple": [0.9, 0.98]}]]}]},
        "MixedPrecision": {"dict": [["scale", 8.0]]},
    }
    index = {"format": "transformer_lib checkpoint 1", "tensors": "tensors.safetensors"}
    index["content"] = {"dict": list(content.items())}
    (tmp_path / "checkpoint.json").write_text(json.dumps(index))
    found = load_checkpoint(tmp_path)
    assert torch.equal(found["model"].pop("head"), torch.ones(3))
    assert found == {
        "step": 7,
        "model": {},
        "optimizer": {"betas": (0.9, 0.98)},
        "scaler": {"scale": 8.0},
    }
    index["content"] = {"list": [1, {"list": []}]}
    (tmp_path / "checkpoint.json").write_text(json.dumps(index))
    assert load_checkpoint(tmp_path) == [1, []]


def test_a_damaged_checkpoint_of_the_first_edition_is_refused(tmp_path) -> None:
    folder = tmp_path / "step-00000004"
    shutil.copytree(OLD_RUN / "checkpoints" / folder.name, folder)
    assert load_checkpoint(folder)["step"] == 4
    [tensors] = folder.glob("*.safetensors")
    tensors.write_bytes(tensors.read_bytes()[:-1])
    with pytest.raises(ValueError, match="step-00000004 holds no whole checkpoint"):
        load_checkpoint(folder)
    (folder / "checkpoint.json").write_text('{"format": "x 2"}')
    with pytest.raises(ValueError, match="unknown format 'x 2'"):
        load_checkpoint(folder)
    (folder / "checkpoint.json").unlink()
    with pytest.raises(ValueError, match="holds no whole checkpoint: FileNotFound"):
        load_checkpoint(folder)
