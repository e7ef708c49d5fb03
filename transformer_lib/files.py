"""Files written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` once the block has ended without an error.

    The file is written under another name in the same folder, flushed to the disk, and
    then renamed in one step. A reader finds the old file or the new one, never half of
    one. If writing fails (a full disk), the old file stays and nothing else is left; a
    killed process leaves `.NAME.….tmp` behind, which `remove_leftovers` deletes.

    Args:
        path: the file; its folder is made if it is missing.

    Yields:
        The new file, open for writing bytes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"
    )
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all; see `replacing`."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def remove_leftovers(folder: Path) -> None:
    """Delete what killed processes left of files that they had not finished."""
    for file in folder.glob(".*.tmp"):
        file.unlink(missing_ok=True)


def _umask() -> int:
    """Return the permissions that new files don't get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
