"""Checkpoints: one file each, which holds the old state or the new one, never half.

A file is read with `weights_only=True`, which accepts tensors, numbers, texts and
containers of them, and runs no code that came with the file. The checksums of the
archive are verified, which `torch.load` alone does not do.
"""

import io
import zipfile
from pathlib import Path
from typing import Any

import torch

from transformer_lib.files import remove_leftovers, write_bytes

FORMAT = "transformer_lib checkpoint 3"


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint; an older file of this name is replaced.

    Args:
        path: the file; its folder is made if it is missing.
        content: dictionaries, lists and tuples of tensors, numbers, texts, None.

    Raises:
        OSError: the disk is full, for example. The older file is still there.
    """
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, "content": content}, buffer)
    write_bytes(path, buffer.getbuffer())


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint back, on the CPU; equal to what was saved.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it was not written by `save_checkpoint`, or it is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise ValueError(f"the checksum of {damaged} is wrong")
        stored = torch.load(path, map_location="cpu", weights_only=True)
        if stored["format"] != FORMAT:
            raise ValueError(f"its format is {stored['format']!r}, not {FORMAT!r}")
        return stored["content"]
    except OSError:
        raise
    except Exception as error:  # a damaged file raises almost anything
        first = str(error).partition("\n")[0] or repr(error)
        raise ValueError(f"{path} is no checkpoint, or damaged: {first}") from None


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, oldest first."""
    return sorted(folder.glob("step-*.pt"))


def keep_newest(folder: Path, n: int) -> None:
    """Remove all other checkpoints of a run, and what killed writes left."""
    remove_leftovers(folder)
    for path in list_checkpoints(folder)[:-n]:
        path.unlink()
