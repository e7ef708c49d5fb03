"""Checkpoints: folders that hold the old state or the new one, never half of either.

    step-00000400/
        checkpoint.json               everything but the tensors, and the tensors' file
        tensors-5f0c….safetensors     named after its own contents

The tensors are written first, under a name of their own. Then `checkpoint.json`, which
names them, is replaced by one rename. Whatever stops the writing, a full disk or
a killed process, the folder still holds what it held before. Nothing in it is a pickle:
loading a checkpoint runs no code that came with it.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

FORMAT = "transformer_lib checkpoint 1"
INDEX = "checkpoint.json"


def save_checkpoint(folder: str | Path, content: dict[Any, Any]) -> None:
    """Write a checkpoint; an older one in the same folder is replaced.

    Args:
        folder: where; made if it is missing.
        content: dictionaries, lists and tuples of tensors, numbers, texts, None.

    Raises:
        TypeError: content holds something else.
        OSError: the disk is full, say. The older checkpoint is still there.
    """
    folder = Path(folder)
    packer = _Packer()
    tree = packer.pack(content, "")
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / f".writing-{os.getpid()}"
    try:
        save_file(packer.tensors, written)
        digest = _digest(written)
        file = folder / f"tensors-{digest[:16]}.safetensors"
        size = written.stat().st_size
        _rename(written, file)
        index = {"format": FORMAT, "tensors": file.name, "bytes": size,
                 "sha256": digest, "content": tree}  # fmt: skip
        written.write_text(json.dumps(index), encoding="utf-8")
        _rename(written, folder / INDEX)
    except SafetensorError as error:  # it reports a full disk in its own way
        raise OSError(f"{folder} could not be written: {error}") from error
    finally:
        written.unlink(missing_ok=True)
        _remove_leftovers(folder)


def load_checkpoint(folder: str | Path) -> dict[Any, Any]:
    """Read a checkpoint back, on the CPU; equal to what was saved.

    Raises:
        FileNotFoundError: there is no checkpoint in the folder.
        ValueError: it was not written by `save_checkpoint`, or is damaged.
    """
    folder = Path(folder)
    index = _read_index(folder)
    file = folder / index["tensors"]
    if not file.is_file():
        raise ValueError(f"{folder} is incomplete: {file.name} is missing")
    size = file.stat().st_size
    if size != index["bytes"]:
        raise ValueError(
            f"{file} has {size} bytes, but {index['bytes']} were written: it is "
            "truncated or was changed"
        )
    if _digest(file) != index["sha256"]:
        raise ValueError(f"{file} is damaged: its checksum is not the one noted")
    return _unpack(index["content"], load_file(file))


def list_checkpoints(run: str | Path) -> list[Path]:
    """Return the folders `step-…` of a run that hold a whole checkpoint, oldest first.

    A folder whose writing was cut off has no index and is passed over.
    """
    return sorted(path.parent for path in Path(run).glob(f"step-*/{INDEX}"))


def keep_last(run: str | Path, number: int) -> None:
    """Remove all checkpoints of a run but the newest ones.

    Raises:
        ValueError: number is below 1.
    """
    if number < 1:
        raise ValueError(f"at least 1 checkpoint must be kept, not {number}")
    for folder in list_checkpoints(run)[:-number]:
        (folder / INDEX).unlink()  # from here on it is no checkpoint any more
        shutil.rmtree(folder)


class _Packer:
    """Moves the tensors out of a tree, so that JSON can hold the rest."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._names: dict[tuple, str] = {}
        self._memory: set[int] = set()

    def pack(self, value: Any, path: str) -> Any:
        if isinstance(value, Tensor):
            # Tied weights lie in the same memory and are stored once.
            key = (value.data_ptr(), value.dtype, value.shape, value.stride())
            name = self._names.get(key, path) if value.numel() else path
            if name == path:
                self._names[key] = name
                self.tensors[name] = self._alone(value.detach().contiguous())
            return {"tensor": name}
        if isinstance(value, dict):
            items = value.items()
            return {"dict": [[self.pack(key, path), self.pack(item, f"{path}/{key}")]
                             for key, item in items]}  # fmt: skip
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            items = enumerate(value)
            return {kind: [self.pack(item, f"{path}/{i}") for i, item in items]}
        if value is None or type(value) in (bool, int, float, str):
            return value
        kind = type(value).__name__
        raise TypeError(f"a checkpoint can't hold {path or 'this'}: it is a {kind}")

    def _alone(self, tensor: Tensor) -> Tensor:
        """Copy a tensor that is a part of another: the format wants them apart."""
        memory = tensor.untyped_storage().data_ptr()
        if memory in self._memory:
            return tensor.clone()
        self._memory.add(memory)
        return tensor


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


def _read_index(folder: Path) -> dict[str, Any]:
    path = folder / INDEX
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no checkpoint: {INDEX} is missing")
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON text: {error}") from error
    found = index.get("format") if isinstance(index, dict) else None
    if found != FORMAT:
        raise ValueError(f"{path} has the format {found!r}, not {FORMAT!r}")
    return index


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _rename(source: Path, target: Path) -> None:
    """Rename a file that has reached the disk."""
    with source.open("rb+") as file:
        os.fsync(file.fileno())
    source.replace(target)


def _remove_leftovers(folder: Path) -> None:
    """Remove the files of earlier checkpoints and of attempts that were cut off."""
    try:
        named = _read_index(folder)["tensors"]
    except FileNotFoundError:
        named = None
    except ValueError:  # somebody else's folder
        return
    for pattern in ("tensors-*.safetensors", ".writing-*"):
        for file in folder.glob(pattern):
            if file.name != named:
                file.unlink()
