"""Files written whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file beside its place, then move it there in one step.

    Whoever reads meanwhile finds the old file or the new one, never a half. If writing
    fails (a full disk), the old file stays and nothing is left beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def _umask() -> int:
    """Return the permissions that new files don't get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
