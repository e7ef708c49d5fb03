"""IMDb: 50,000 movie reviews, half of them praise (Maas et al. 2011).

The corpus of the lecture's classifier. Its text has no license, so none of it is part
of this project: the archive of 84 MB is downloaded once, or you name a copy. It is read
as it is; nothing is ever unpacked to the disk.
"""

import gzip
import hashlib
import html
import os
import re
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from tqdm.auto import tqdm

from transformer_lib.data.corpora.download import cache_folder, fetch
from transformer_lib.data.corpora.labelled import Labelled, LabelledCorpus
from transformer_lib.files import BoundedGzip

ADDRESS = "http://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
SHA256 = "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe"
CLASSES = ("negative", "positive")
MOST_BYTES = 1_000_000  # of a review; the longest has 14,000
MOST_UNPACKED = 2_000_000_000  # of the archive, which has a quarter of it
REVIEW = re.compile(r"aclImdb/(train|test)/(neg|pos)/\d+_\d+\.txt")


def load_imdb(
    archive: str | Path | None = None, progress: bool = False
) -> LabelledCorpus:
    """Return the corpus: 22,500 reviews to train on, 2,500 and 25,000 to test on.

    As in the lecture, a tenth of the published 25,000 for training is held out for
    validation; the reviews' checksums say which. A film has up to 30 reviews, so it
    may be in both of these parts. Training and test share no film.

    Args:
        archive: a copy of aclImdb_v1.tar.gz. If None: the file that the variable
            TRANSFORMER_LIB_IMDB names, else the cache, filled by a download the first
            time.
        progress: show a bar for the download and one for reading.

    Raises:
        FileNotFoundError: there is no such archive.
        ConnectionError: the download fails; the message says where to put a copy.
        ValueError: the download has another checksum, or the archive is broken,
            unsafe or incomplete.
    """
    archive = archive or os.environ.get("TRANSFORMER_LIB_IMDB")
    if not archive:
        into = cache_folder() / "imdb" / "aclImdb_v1.tar.gz"
        archive = fetch(ADDRESS, SHA256, into, progress)
    parts = read_archive(Path(archive), progress)
    # In the order of checksums, the classes are mixed and a tenth is a fair sample.
    train = sorted(parts["train"], key=lambda row: _checksum(row[0]))
    n_valid = len(train) // 10
    try:
        return LabelledCorpus(
            "imdb", CLASSES, tuple(train[n_valid:]), tuple(train[:n_valid]),
            tuple(parts["test"])
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{archive} is incomplete: {error}") from None


def read_archive(path: Path, progress: bool = False) -> dict[str, list[Labelled]]:
    """Read the labelled reviews of an archive in the published layout.

    Args:
        path: a gzipped tar file with `aclImdb/train/pos/0_9.txt` and so on. Files with
            other names (reviews without a label, lists of addresses) are skipped.
        progress: show a bar.

    Returns:
        Texts and labels of "train" and "test", in the archive's order.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no gzipped tar file, a truncated one or one that unpacks to
            more than two gigabytes; a member's name leads out of the archive; or a
            review is a link, too large, or no UTF-8.
    """
    parts: dict[str, list[Labelled]] = {"train": [], "test": []}
    try:
        with (
            BoundedGzip(path, MOST_UNPACKED) as file,
            tarfile.open(path, "r:", file) as archive,
            tqdm(desc=path.name, unit="file", disable=not progress) as bar,
        ):
            for member in archive:
                bar.update()
                _refuse_way_out(path, member.name)
                match = REVIEW.fullmatch(member.name)
                if not match:
                    continue
                if not member.isfile():
                    raise ValueError(f"{path}: {member.name} is no plain file")
                if member.size > MOST_BYTES:
                    raise ValueError(
                        f"{path}: {member.name} has {member.size:,} bytes, more than "
                        f"{MOST_BYTES:,}"
                    )
                part, kind = match.groups()
                content = archive.extractfile(member).read()
                text = _text(content, f"{path}: {member.name}")
                parts[part].append((text, ("neg", "pos").index(kind)))
            while file.read(MOST_BYTES):
                pass  # to the very end, where gzip keeps its checksum
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: broken archive: {error}") from None
    return parts


def _refuse_way_out(path: Path, name: str) -> None:
    """Refuse names that no honest archive has; nothing is written here in any case."""
    member = PurePosixPath(name)
    if member.is_absolute() or ".." in member.parts:
        raise ValueError(f"{path}: {name!r} leads out of the archive; it is not safe")


def _text(content: bytes, where: str) -> str:
    """Return the review without markup: line breaks become spaces."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: no UTF-8: {error}") from None
    return " ".join(html.unescape(re.sub(r"<br\s*/?>", " ", text)).split())


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
