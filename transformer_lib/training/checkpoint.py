"""Checkpoints: one file each, which holds the old state or the new one, never half.

A file is written by `torch.save` under another name and then renamed. It is read with
`weights_only=True`, which accepts tensors, numbers, texts and containers of them, and
runs no code that came with the file. The checksums of the archive are verified, which
`torch.load` alone does not do.

A folder `step-00000400` is a checkpoint of the first edition, and is still read.
"""

import pickle
import shutil
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from transformer_lib.files import read_json, remove_leftovers, replacing

FORMAT = "transformer_lib checkpoint 2"
SUFFIX = ".pt"


def save_checkpoint(path: str | Path, content: dict[str, Any]) -> None:
    """Write a checkpoint; an older file of this name is replaced.

    Args:
        path: the file; its folder is made if it is missing.
        content: dictionaries, lists and tuples of tensors, numbers, texts, None.

    Raises:
        TypeError: content holds something else.
        OSError: the disk is full, for example. The older file is still there.
    """
    path = Path(path)
    _check_plain(content, "")
    with replacing(path) as file:
        try:
            torch.save({"format": FORMAT, "content": content}, file)
        except RuntimeError as error:  # how torch reports that a write failed
            raise OSError(f"{path} could not be written: {error}") from error


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint back, on the CPU; equal to what was saved.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it was not written by `save_checkpoint`, or it is damaged.
    """
    path = Path(path)
    if path.is_dir():
        return _load_folder(path)
    try:
        if damaged := _damaged_member(path):
            content = None
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except zipfile.BadZipFile as error:
        raise ValueError(
            f"{path} is no checkpoint, or it is truncated: {error}"
        ) from None
    except pickle.UnpicklingError:  # torch's message explains how to read it unsafely
        raise ValueError(
            f"{path} is no checkpoint: it holds more than tensors, numbers and texts, "
            "which could run code"
        ) from None
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # a damaged file raises almost anything
        raise ValueError(f"{path} is no checkpoint: {error!r}") from None
    if damaged:
        raise ValueError(f"{path} is damaged: the checksum of {damaged} is wrong")
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT or not isinstance(content.get("content"), dict):
        raise ValueError(f"{path} has the format {found!r}, not {FORMAT!r}")
    return content["content"]


def checkpoint_name(step: int) -> str:
    """Return the name of a run's checkpoint after so many steps."""
    return f"step-{step:08d}{SUFFIX}"


def checkpoint_step(path: Path) -> int:
    """Return the step after which a checkpoint was saved."""
    return int(path.stem.removeprefix("step-"))


def list_checkpoints(folder: str | Path) -> list[Path]:
    """Return the checkpoints in a folder, oldest first."""
    files = Path(folder).glob(f"step-*{SUFFIX}")
    folders = (index.parent for index in Path(folder).glob(f"step-*/{_INDEX}"))
    return sorted([*files, *folders], key=lambda path: path.stem)


def keep_only(folder: str | Path, kept: Collection[Path]) -> None:
    """Remove all other checkpoints of a run, and what killed writes left.

    Raises:
        ValueError: none would be kept.
    """
    if not kept:
        raise ValueError("at least 1 checkpoint must be kept, not 0")
    remove_leftovers(Path(folder))
    for path in list_checkpoints(folder):
        if path in kept:
            continue
        if path.is_dir():
            (path / _INDEX).unlink()  # from here on it is no checkpoint
            shutil.rmtree(path)
        else:
            path.unlink()


def _damaged_member(path: Path) -> str | None:
    """Return what has a wrong checksum; refuse what would unpack to more than it is."""
    n_bytes = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        claimed = sum(member.file_size for member in archive.infolist())
        if claimed > n_bytes:  # torch does not compress
            raise ValueError(f"its {n_bytes:,} bytes claim to unpack to {claimed:,}")
        return archive.testzip()


def _check_plain(value: Any, path: str) -> None:
    """Refuse what `load_checkpoint` could not read back."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_plain(key, path)
            _check_plain(item, f"{path}/{key}")
    elif type(value) in (list, tuple):
        for index, item in enumerate(value):
            _check_plain(item, f"{path}/{index}")
    elif not isinstance(value, Tensor) and type(value) not in _PLAIN:
        kind = type(value).__name__
        raise TypeError(f"a checkpoint can't hold {path or 'this'}: it is a {kind}")


_PLAIN = (bool, int, float, str, type(None))


# The first edition: a folder with the tensors in one file and all else in an index.

_INDEX = "checkpoint.json"


def _load_folder(folder: Path) -> dict[str, Any]:
    try:
        index = read_json(folder / _INDEX)
        if index["format"] != "transformer_lib checkpoint 1":
            raise ValueError(f"unknown format {index['format']!r}")
        content = _unpack(index["content"], load_file(folder / index["tensors"]))
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
        SafetensorError,
    ) as error:
        raise ValueError(f"{folder} holds no whole checkpoint: {error!r}") from None
    if "state_dict" not in content:
        return content
    weights = content["state_dict"].items()  # a run's, written by Lightning's Trainer
    return {
        "step": content["global_step"],
        "model": {name.removeprefix("model."): tensor for name, tensor in weights},
        "optimizer": content["optimizer_states"][0],
        "scaler": content.get("MixedPrecision", {}),
    }


def _unpack(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    [(kind, items)] = value.items()
    if kind == "tensor":
        return tensors[items]
    if kind == "dict":
        return {_unpack(key, tensors): _unpack(item, tensors) for key, item in items}
    unpacked = [_unpack(item, tensors) for item in items]
    return unpacked if kind == "list" else tuple(unpacked)
