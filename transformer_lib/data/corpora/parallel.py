"""Sentence pairs in three parts, read from files and checked."""

import codecs
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from transformer_lib.data.normalize import normalize

Pair = tuple[str, str]
PARTS = ("train", "valid", "test")
MOST_LEARNED = 500_000  # pairs that a vocabulary is learned from
_ONE_IN = 20  # of so many different sources, one is held out for each part
_MOST_HELD = 1000


@dataclass(frozen=True)
class ParallelCorpus:
    """Sentences and their translations: to train on, to tune on, to test on.

    Attributes:
        name: what it is called in logs and messages.
        train, valid, test: (source, target) pairs.
    """

    name: str
    train: tuple[Pair, ...]
    valid: tuple[Pair, ...]
    test: tuple[Pair, ...]

    @classmethod
    def from_files(cls, source: str | Path, target: str | Path) -> "ParallelCorpus":
        """Read two files, one sentence a line, and hold some of the pairs out.

        Which ones, `OwnFiles` says.

        Args:
            source: file of the sentences.
            target: file with the translation of each in the same line.

        Raises:
            FileNotFoundError: a file is missing; which one.
            ValueError: as `OwnFiles.read`.
        """
        files = OwnFiles.read(Path(source), Path(target))
        pairs: dict[str, list[Pair]] = {part: [] for part in PARTS}
        for part, pair in files:
            pairs[part].append(pair)
        return cls(files.name, *map(tuple, pairs.values()))

    def reversed(self) -> "ParallelCorpus":
        """Return the corpus in the other direction."""
        turned = {p: tuple(pair[::-1] for pair in getattr(self, p)) for p in PARTS}
        return replace(self, **turned)


@dataclass(frozen=True)
class HeldOut:
    """What is left of two files without their training part, which may be millions.

    Attributes:
        name: what it is called in logs and messages.
        valid, test: (source, target) pairs.
        checksums: of each part, the training part too.
    """

    name: str
    valid: tuple[Pair, ...]
    test: tuple[Pair, ...]
    checksums: dict[str, str]


class Gathered:
    """Pairs that are held out, gathered while the files are read, and checksums."""

    def __init__(self) -> None:
        self.pairs: dict[str, list[Pair]] = {"valid": [], "test": []}
        self.sums = {part: RowsChecksum() for part in PARTS}

    def add(self, part: str, pair: Pair) -> None:
        """Take a pair."""
        self.sums[part].add(pair)
        if part in self.pairs:
            self.pairs[part].append(pair)

    def held_out(self, name: str) -> HeldOut:
        """Return what was gathered."""
        parts = {part: tuple(pairs) for part, pairs in self.pairs.items()}
        sums = {part: rows.hexdigest() for part, rows in self.sums.items()}
        return HeldOut(name, **parts, checksums=sums)


class RowsChecksum:
    """The SHA-256 of rows written as one list in JSON, which is never in memory."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._rows: list[tuple] = []
        self._before = "["

    def add(self, row: tuple) -> None:
        """Take the next row."""
        self._rows.append(row)
        if len(self._rows) == 1000:
            self._write()

    def hexdigest(self) -> str:
        """Return the checksum of all rows so far."""
        self._write()
        whole = self._hash.copy()
        whole.update(b"[]" if self._before == "[" else b"]")
        return whole.hexdigest()

    def _write(self) -> None:
        if self._rows:
            text = json.dumps(self._rows)[1:-1]
            self._hash.update(f"{self._before}{text}".encode())
            self._rows, self._before = [], ", "


@dataclass(frozen=True)
class OwnFiles:
    """Two files, one sentence a line, and what of them is held out of training.

    They are read line by line, as often as somebody asks for their pairs, and never
    as a whole. Of the different source sentences a twentieth, 1,000 at most, is for the
    test and as many for validation: those whose checksums are smallest. So with another
    line, nearly all pairs stay where they were. All pairs with the same source are in
    the same part; sources that `normalize` makes equal are the same.

    Attributes:
        source, target: the files.
        n_pairs: lines of each.
        last_test, last_valid: largest checksum of a source in the test, in validation.
    """

    source: Path
    target: Path
    n_pairs: int
    last_test: int
    last_valid: int

    @classmethod
    def read(cls, source: Path, target: Path, progress: bool = False) -> "OwnFiles":
        """Check all lines, and find out what is held out.

        Args:
            source: file of the sentences; a name ending with .gz is unpacked.
            target: file with the translation of each in the same line.
            progress: show a progress bar.

        Raises:
            FileNotFoundError: a file is missing; which one.
            ValueError: as `read_pairs`, or there are fewer than 20 different sources.
        """
        n_pairs = _count_pairs(source, target)
        smallest: set[int] = set()
        below = 1 << 64
        pairs = _checked_pairs(source, target)
        for _, seen in show(pairs, n_pairs, "reading", progress):
            number = _checksum(seen)
            if number < below:
                smallest.add(number)
                if len(smallest) == _ONE_IN * _MOST_HELD:  # all that matters of many
                    smallest = set(sorted(smallest)[: 2 * _MOST_HELD])
                    below = max(smallest)
        n_held = _MOST_HELD if below < 1 << 64 else len(smallest) // _ONE_IN
        if n_held == 0:
            raise ValueError(
                f"{source} has {len(smallest)} different sentences, but at least "
                f"{_ONE_IN} are needed to hold some out"
            )
        ranked = sorted(smallest)
        return cls(source, target, n_pairs, ranked[n_held - 1], ranked[2 * n_held - 1])

    @property
    def name(self) -> str:
        """What the corpus is called in logs and messages."""
        return self.source.stem

    def __iter__(self) -> Iterator[tuple[str, Pair]]:
        """Yield the part that each pair belongs to, and the pair."""
        for pair in self._pairs():
            yield self._part_of(pair), pair

    def held_out(self) -> HeldOut:
        """Return test, validation and checksums, without the training pairs."""
        gathered = Gathered()
        for part, pair in self:
            gathered.add(part, pair)
        return gathered.held_out(self.name)

    def sample(self) -> Iterator[Pair]:
        """Yield training pairs to learn a vocabulary from, 500,000 at most.

        Of a longer file it is every second, third, … line.
        """
        pairs = islice(self._pairs(), 0, None, -(-self.n_pairs // MOST_LEARNED))
        return (pair for pair in pairs if self._part_of(pair) == "train")

    def _pairs(self) -> Iterator[Pair]:
        return zip(iter_lines(self.source), iter_lines(self.target), strict=True)

    def _part_of(self, pair: Pair) -> str:
        number = _checksum(normalize(pair[0]))
        if number <= self.last_test:
            return "test"
        return "valid" if number <= self.last_valid else "train"


def iter_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file, one at a time; as `read_lines`."""
    with _opened(path) as file:
        # Only a line feed ends a line: texts contain other characters that Python's
        # splitlines takes for ends, and one too many shifts all pairs below it.
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8").strip()
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: no UTF-8: {error}") from None
            yield text


def read_lines(path: Path) -> list[str]:
    """Read a text file, one sentence a line; a name ending with .gz is unpacked.

    A byte-order mark, which some editors put in front, is no part of the first line.

    Raises:
        ValueError: the file is no gzip file or a truncated one, or a line is no UTF-8.
    """
    return list(iter_lines(path))


def read_pairs(source: Path, target: Path) -> tuple[Pair, ...]:
    """Read a file and its translation, one sentence a line.

    Raises:
        ValueError: one of them is broken, a line is empty or holds nothing that is
            seen, or their numbers of lines differ.
    """
    _count_pairs(source, target)
    return tuple(pair for pair, _ in _checked_pairs(source, target))


def show(rows: Iterable[Any], n: int, what: str, progress: bool) -> Iterable[Any]:
    """Go through pairs with a progress bar, if one is wanted.

    Args:
        rows: anything, a row for each pair.
        n: how many there are.
        what: what is done, for the bar.
        progress: show it.
    """
    if not progress:
        return rows
    from tqdm.auto import tqdm

    return tqdm(rows, desc=what, total=n, unit=" pairs", unit_scale=True)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a text file behind its byte-order mark; unpack it if its name says so."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
                file.seek(0)
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: broken gzip file: {error}") from None


def _count_pairs(source: Path, target: Path) -> int:
    """Return how many lines two files have, or refuse them: each has its own number."""
    n_src, n_tgt = _count_lines(source), _count_lines(target)
    if n_src != n_tgt:
        raise ValueError(f"{source} has {n_src} lines, but {target.name} has {n_tgt}")
    return n_src


def _count_lines(path: Path) -> int:
    n, end = 0, b"\n"
    with _opened(path) as file:
        while block := file.read(1 << 20):
            n, end = n + block.count(b"\n"), block[-1:]
    return n + (end != b"\n")  # the last line may have no end


def _checked_pairs(source: Path, target: Path) -> Iterator[tuple[Pair, str]]:
    """Yield pairs, none of them empty, with what is seen of the source."""
    pairs = zip(iter_lines(source), iter_lines(target), strict=True)
    for line, pair in enumerate(pairs, start=1):
        seen = [normalize(text) for text in pair]
        if not all(seen):
            path = target if seen[0] else source
            raise ValueError(f"{path}, line {line} is empty")
        yield pair, seen[0]


def _checksum(text: str) -> int:
    """Return a number of 64 bits that depends on the text alone."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
