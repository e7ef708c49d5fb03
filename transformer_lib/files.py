"""Files written whole or not at all, and read only as far as there is room."""

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

MOST_TEXT = 100_000_000  # bytes of a configuration, a tokenizer, a recipe


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


def read_text(path: Path) -> str:
    """Read a text file in UTF-8.

    Raises:
        ValueError: it is no UTF-8, or larger than any that the library writes; whoever
            calls names the file.
    """
    if (n_bytes := path.stat().st_size) > MOST_TEXT:
        raise ValueError(f"{n_bytes:,} bytes are more than {MOST_TEXT:,}")
    return path.read_text(encoding="utf-8")


def read_json(path: Path, loads: Callable[[str], Any] = json.loads) -> Any:
    """Read a file of JSON, or of what `loads` understands.

    Raises:
        ValueError: it is no such file, or too large or nested too deeply for one.
    """
    try:
        return loads(read_text(path))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class BoundedGzip(gzip.GzipFile):
    """A packed file to be read, of which no more is unpacked than expected.

    A file of a megabyte can claim to be a gigabyte, all of it zeros.

    Args:
        path: the packed file.
        most: bytes that it may have unpacked; what reads on gets a ValueError.
    """

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(path)
        self.most = most

    def read(self, size: int | None = -1) -> bytes:
        """Read as any file does, up to the bound."""
        left = self.most + 1 - self.tell()
        content = super().read(left if size is None or size < 0 else min(size, left))
        self._check(self.tell())
        return content

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go where a file is read next, within the bound."""
        self._check(offset)
        return super().seek(offset, whence)

    def _check(self, position: int) -> None:
        if position > self.most:
            raise ValueError(f"{self.name} unpacks to more than {self.most:,} bytes")


def remove_leftovers(folder: Path) -> None:
    """Delete what killed processes left of files that they had not finished."""
    for file in folder.glob(".*.tmp"):
        file.unlink(missing_ok=True)


def _umask() -> int:
    """Return the permissions that new files don't get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
