r"""Makes the review corpus of the package from a release of vaderSentiment.

    python -m pip download --no-deps --no-binary :all: vaderSentiment==3.3.2
    python -m book_tools.extract_reviews vaderSentiment-3.3.2.tar.gz

The release is no dependency of the book: this runs once, and its result is stored in
`transformer_lib/corpora/data/reviews/`. The same release gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from transformer_lib.data.corpora.reviews import REVIEWS_FILE, Review
from transformer_lib.data.examples import split_words
from transformer_lib.files import write_bytes

RELEASE_SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
LICENSE = "vaderSentiment-3.3.2/LICENSE.txt"
RATINGS = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
TABLE = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"
CLEAR = 0.5  # ratings nearer to 0 have no clear sign
WORDS = range(3, 41)
N_KEPT = 8000  # a part of the 10,605: the sentences are from published reviews
NEAR_COPY = 0.5  # words shared, of all words of both


def parse(table: str) -> Iterator[Review]:
    """Yield the rows of the published table: number, mean rating, sentence."""
    for line in table.rstrip("\n").split("\n"):
        _, rating, text = line.split("\t")
        yield Review(float(rating), clean(text))


def clean(text: str) -> str:
    """Join runs of white space, where a dash was lost, and write quotes as one sign."""
    return re.sub(r"\s+", " ", text.replace("''", '"')).strip()


def is_wanted(review: Review) -> bool:
    """Keep sentences of moderate length with a clear sign."""
    return abs(review.rating) >= CLEAR and len(review.text.split()) in WORDS


def checksum(review: Review) -> str:
    """Return what decides the place of a sentence: its text alone."""
    return hashlib.sha256(review.text.encode("utf-8")).hexdigest()


def without_near_copies(reviews: Iterable[Review]) -> Iterator[Review]:
    """Leave out what shares half of its words with a sentence before it.

    The measure is the share of words in both among words in either; case and
    punctuation don't count.
    """
    kept: list[set[str]] = []
    rows: dict[str, list[int]] = defaultdict(list)  # of each word: who has it
    for review in reviews:
        words = {word.lower() for word in split_words(review.text) if word[0].isalnum()}
        shared: dict[int, int] = defaultdict(int)
        for word in words:
            for row in rows[word]:
                shared[row] += 1
        if any(n >= NEAR_COPY * len(words | kept[row]) for row, n in shared.items()):
            continue
        for word in words:
            rows[word].append(len(kept))
        kept.append(words)
        yield review


def table(reviews: Iterable[Review]) -> str:
    """Return a line for each sentence: mean rating, text; in order of checksums."""
    wanted = sorted(filter(is_wanted, reviews), key=checksum)
    kept = list(without_near_copies(wanted))[:N_KEPT]
    return "".join(f"{review.rating:.2f}\t{review.text}\n" for review in kept)


def main(path: str) -> None:
    """Extract the corpus from the release at `path`."""
    content = Path(path).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != RELEASE_SHA256:
        sys.exit(f"{path}: sha256 is {found}, not {RELEASE_SHA256}: another release")
    release = _files(content, [LICENSE, RATINGS])
    ratings = _files(release[RATINGS], [TABLE])[TABLE]
    text = table(parse(ratings.decode("utf-8")))
    # Without time and name in its head, the packed file depends on the text alone.
    write_bytes(REVIEWS_FILE, gzip.compress(text.encode("utf-8"), 9, mtime=0))
    write_bytes(REVIEWS_FILE.parent / "LICENSE", release[LICENSE])
    print(f"{text.count(chr(10)):,} sentences in {REVIEWS_FILE}")


def _files(archive: bytes, names: list[str]) -> dict[str, bytes]:
    """Read files of an archive in memory."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {name: opened.extractfile(name).read() for name in names}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
