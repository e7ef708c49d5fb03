"""Files written whole or not at all, with errors that say which file it was."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

RECIPE = "recipe.json"  # in the folder of a run or of a model


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of the operating system name the file: a full disk's does not."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Open a file to be written, whole or not at all; its folder is made if missing.

    The file is written under another name in the same folder, flushed to the disk, and
    then renamed in one step. A reader finds the old file or the new one, never half of
    one. If writing fails (a full disk), the old file stays and nothing else is left; a
    killed process leaves `.NAME.….tmp` behind, which `remove_leftovers` deletes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with naming(path), unfinished.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all; see `writing`."""
    with writing(path) as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def remove_leftovers(folder: Path) -> None:
    """Delete what killed processes left of files that they had not finished."""
    for file in folder.glob(".*.tmp"):
        file.unlink(missing_ok=True)
