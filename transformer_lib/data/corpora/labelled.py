"""Texts with a label each: rated sentences in the package, and IMDb, downloaded once.

Reviews: sentences from movie reviews, each rated by at least 20 people from -4,
extremely negative, to 4 (Hutto and Gilbert 2014; the sentences are from the collection
of Pang and Lee 2005). A sentence rated within half a point of 0 has no clear sign and
is left out, and so is a near-copy of another one; terms and details are in a notice
beside the data. The films aren't known, so one may be praised in training and in the
test, in other words.

IMDb: 50,000 movie reviews, half of them praise (Maas et al. 2011). Its text has no
license, so none of it is part of this project.
"""

import hashlib
import html
import re
import tarfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from transformer_lib.data.corpora.download import cache_folder, fetch
from transformer_lib.data.corpora.parallel import read_lines

Labelled = tuple[str, int]
CLASSES = ("negative", "positive")
REVIEWS_FILE = Path(__file__).parent / "data" / "reviews" / "reviews.tsv.gz"
N_TEST, N_VALID = 1500, 500
IMDB = "http://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
IMDB_SHA256 = "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe"
_IMDB_NAME = re.compile(r"aclImdb/(train|test)/(neg|pos)/\d+_\d+\.txt")


@dataclass(frozen=True)
class LabelledCorpus:
    """Texts and their classes: to train on, to tune on, to test on.

    Attributes:
        name: what it is called in logs and messages.
        classes: what each label means: label i is classes[i].
        train, valid, test: (text, label).
    """

    name: str
    classes: tuple[str, ...]
    train: tuple[Labelled, ...]
    valid: tuple[Labelled, ...]
    test: tuple[Labelled, ...]


class Review(NamedTuple):
    """A sentence and its mean rating, from -4 to 4."""

    rating: float
    text: str


@lru_cache(maxsize=1)
def read_reviews() -> tuple[Review, ...]:
    """Return all rated sentences, in the order of their checksums: no order at all."""
    rows = (line.split("\t") for line in read_lines(REVIEWS_FILE))
    return tuple(Review(float(rating), text) for rating, text in rows)


def load_reviews() -> LabelledCorpus:
    """Return the rated sentences: 6,000 to train on, 500 and 1,500 to test on.

    The label is the sign of the mean rating.
    """
    rows = tuple((review.text, int(review.rating > 0)) for review in read_reviews())
    parts = rows[N_TEST + N_VALID :], rows[N_TEST:][:N_VALID], rows[:N_TEST]
    return LabelledCorpus("reviews", CLASSES, *parts)


def load_imdb(archive: str | Path | None = None) -> LabelledCorpus:
    """Return IMDb: 22,500 reviews to train on, 2,500 and 25,000 to test on.

    As in the lecture, a tenth of the published 25,000 for training is held out for
    validation; the reviews' checksums say which. A film has up to 30 reviews, so it
    may be in both of these parts. Training and test share no film.

    Args:
        archive: a copy of aclImdb_v1.tar.gz. If None: the one in the cache, filled by a
            download of 84 MB the first time. It is read as it is; nothing is unpacked
            to the disk.

    Raises:
        FileNotFoundError: there is no such archive.
        ConnectionError: the download fails; the message says where to put a copy.
        ValueError: the archive is broken or incomplete.
    """
    if not archive:
        into = cache_folder() / "imdb" / "aclImdb_v1.tar.gz"
        archive = fetch(IMDB, IMDB_SHA256, into)
    try:
        parts = _read_imdb(Path(archive))
        # In the order of checksums, the classes are mixed; a tenth is a fair sample.
        train, test = tuple(sorted(parts["train"], key=_checksum)), parts["test"]
        if {label for _, label in train} != {0, 1} or not test:
            raise ValueError("reviews are missing")
        n = len(train) // 10
        return LabelledCorpus("imdb", CLASSES, train[n:], train[:n], tuple(test))
    except (tarfile.TarError, EOFError, zlib.error, ValueError) as error:
        raise ValueError(f"{archive} is broken or incomplete: {error}") from None


def _read_imdb(path: Path) -> dict[str, list[Labelled]]:
    """Return texts and labels of "train" and "test", in the archive's order."""
    parts: dict[str, list[Labelled]] = {"train": [], "test": []}
    with tarfile.open(path, "r:gz") as archive:
        for member in archive:
            # Other files are reviews without a label, and lists of addresses.
            if match := _IMDB_NAME.fullmatch(member.name):
                part, kind = match.groups()
                text = archive.extractfile(member).read().decode("utf-8")
                text = html.unescape(re.sub(r"<br\s*/?>", " ", text))
                parts[part].append((" ".join(text.split()), int(kind == "pos")))
    return parts


def _checksum(row: Labelled) -> str:
    return hashlib.sha256(row[0].encode("utf-8")).hexdigest()
