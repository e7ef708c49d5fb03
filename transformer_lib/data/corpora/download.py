"""Files fetched once from the web, checked, and kept in a cache folder."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return where downloads are kept.

    The folder that the variable TRANSFORMER_LIB_DATA names, else `transformer_lib` in
    the user's cache folder.
    """
    if chosen := os.environ.get("TRANSFORMER_LIB_DATA"):
        return Path(chosen).expanduser()
    import pooch

    return Path(pooch.os_cache("transformer_lib"))


def fetch(url: str, sha256: str, into: Path) -> Path:
    """Download a file, with a bar, unless it is there with the right checksum.

    Args:
        url: where the file is.
        sha256: its checksum, in hexadecimal digits.
        into: where to keep it.

    Returns:
        into.

    Raises:
        ConnectionError: the download fails; the message names the address, and the
            folder into which the file can be put by hand.
        ValueError: the file has another checksum; it is not kept.
    """
    import pooch

    pooch.get_logger().setLevel("WARNING")  # the bar says enough
    known = f"sha256:{sha256}"
    try:
        pooch.retrieve(url, known, into.name, into.parent, progressbar=True)
    except OSError as error:
        raise ConnectionError(
            f"{url} could not be downloaded ({error}). Try again, or put a copy of "
            f"{into.name} into {into.parent}"
        ) from None
    return into
