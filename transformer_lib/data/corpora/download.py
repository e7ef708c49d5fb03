"""Downloads that can be cut at any byte and go on from there, checked at the end."""

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path

from tqdm.auto import tqdm

CHUNK = 1 << 16
TIMEOUT = 30.0  # seconds without a byte
ATTEMPTS = 3


def cache_folder() -> Path:
    """Return where downloads are kept.

    The folder that the variable TRANSFORMER_LIB_DATA names, else `transformer_lib` in
    the user's cache folder.
    """
    chosen = os.environ.get("TRANSFORMER_LIB_DATA")
    if chosen:
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "transformer_lib"


def fetch(url: str, sha256: str, into: Path, progress: bool = False) -> Path:
    """Download a file once; if it is there and right, do nothing.

    What arrives is kept beside `into`, in a file ending with .part, until it is whole
    and its checksum is right: `into` never holds a half. After a cut, three attempts
    go on where the last one ended, and so does the next call.

    Args:
        url: where the file is.
        sha256: its checksum, in hexadecimal digits.
        into: where it shall be.
        progress: show a bar.

    Returns:
        into.

    Raises:
        ConnectionError: the address does not answer, refuses, or the connection was
            cut again and again; calling once more goes on.
        ValueError: the file has another checksum; it is not kept.
    """
    if into.is_file() and checksum(into) == sha256:
        return into
    into.parent.mkdir(parents=True, exist_ok=True)
    part = into.with_name(into.name + ".part")
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _append(url, part, progress)
            break
        except urllib.error.HTTPError as error:  # an answer, and it is no
            raise ConnectionError(f"{url}: {error}") from None
        except (OSError, http.client.HTTPException) as error:
            if attempt == ATTEMPTS:
                got = part.stat().st_size if part.exists() else 0
                raise ConnectionError(
                    f"{url}: {error}. {got} bytes are kept in {part}; the next call "
                    "goes on from there"
                ) from None
    found = checksum(part)
    if found != sha256:
        part.unlink()
        raise ValueError(f"{url}: sha256 is {found}, not {sha256}; nothing is kept")
    os.replace(part, into)
    return into


def checksum(path: Path) -> str:
    """Return a file's sha256 in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _append(url: str, part: Path, progress: bool) -> None:
    """Bring the partial file to its end, from where it ends now."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url)
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE or not have:
            raise
        # Nothing follows: the file is whole already, or it is none of this address.
        # The checksum knows.
        return
    with response:
        resumed = response.status == http.client.PARTIAL_CONTENT
        if not resumed:  # the server sends all of it, from the start
            have = 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with (
            part.open("ab" if resumed else "wb") as file,
            tqdm(
                desc=part.stem,
                initial=have,
                total=total,
                unit="B",
                unit_scale=True,
                disable=not progress,
            ) as bar,
        ):
            while chunk := response.read(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    size = part.stat().st_size
    if total is not None and size < total:
        raise ConnectionError(f"cut after {size} of {total} bytes")
