"""Files fetched once from the web, checked, and kept in a cache folder."""

import os
from pathlib import Path
from typing import Any, BinaryIO

import pooch
import requests

MOST_BYTES = 200_000_000  # of a download; the largest that the book needs is 84 MB


def cache_folder() -> Path:
    """Return where downloads are kept.

    The folder that the variable TRANSFORMER_LIB_DATA names, else `transformer_lib` in
    the user's cache folder.
    """
    chosen = os.environ.get("TRANSFORMER_LIB_DATA") or pooch.os_cache("transformer_lib")
    return Path(chosen).expanduser()


def fetch(url: str, sha256: str, into: Path, progress: bool = False) -> Path:
    """Download a file, unless it is there already with the right checksum.

    `into` is replaced only by a whole file whose checksum is right.

    Args:
        url: where the file is.
        sha256: its checksum, in hexadecimal digits.
        into: where to keep it.
        progress: show a bar.

    Returns:
        into.

    Raises:
        ConnectionError: the download fails; the message names the address, and the
            folder into which the file can be put by hand.
        ValueError: the file has another checksum, or goes on for more than
            MOST_BYTES; it is not kept.
    """

    def download(url: str, path: str, _pooch: Any) -> None:
        with open(path, "wb") as file:
            pooch.HTTPDownloader(progressbar=progress)(url, _Bounded(file), None)

    pooch.get_logger().setLevel("WARNING")  # the bar says enough
    try:
        pooch.retrieve(
            url, f"sha256:{sha256}", into.name, into.parent, downloader=download
        )
    except requests.RequestException as error:
        raise ConnectionError(
            f"{url} could not be downloaded ({error}). Try again, or put a copy of "
            f"{into.name} into {into.parent}"
        ) from None
    return into


class _Bounded:
    """A file that is written up to MOST_BYTES, whatever the other side sends."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.flush = file, file.flush

    def write(self, chunk: bytes) -> None:
        if self.file.tell() + len(chunk) > MOST_BYTES:
            raise ValueError(f"a download is larger than {MOST_BYTES:,} bytes")
        self.file.write(chunk)
