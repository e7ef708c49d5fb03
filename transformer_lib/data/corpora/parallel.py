"""Sentence pairs in three parts, read from files and checked."""

import codecs
import gzip
import random
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

from transformer_lib.data.normalize import normalize

Pair = tuple[str, str]
PARTS = ("train", "valid", "test")
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

        A twentieth of the different source sentences, 1,000 at most, is for validation
        and as many for the test. All pairs with the same source stay together, so that
        no test sentence is in the training part; sources that `normalize` makes equal
        are the same.

        Args:
            source: file of the sentences.
            target: file with the translation of each in the same line.

        Raises:
            FileNotFoundError: a file is missing; which one.
            ValueError: as `read_pairs`, or there are fewer than 20 different sources.
        """
        pairs = read_pairs(Path(source), Path(target))
        sources = sorted({normalize(src) for src, _ in pairs})
        if len(sources) < _ONE_IN:
            raise ValueError(
                f"{source} has {len(sources)} different sentences, but at least "
                f"{_ONE_IN} are needed to hold some out"
            )
        random.Random(0).shuffle(sources)
        n = min(len(sources) // _ONE_IN, _MOST_HELD)
        shares = sources[2 * n :], sources[n : 2 * n], sources[:n]  # as in PARTS
        parts = [
            tuple(pair for pair in pairs if normalize(pair[0]) in chosen)
            for chosen in map(set, shares)
        ]
        return cls(Path(source).stem, *parts)

    def reversed(self) -> "ParallelCorpus":
        """Return the corpus in the other direction."""
        turned = {p: tuple(pair[::-1] for pair in getattr(self, p)) for p in PARTS}
        return replace(self, **turned)


def read_lines(path: Path) -> list[str]:
    """Read a text file, one sentence a line; a name ending with .gz is unpacked.

    A byte-order mark, which some editors put in front, is no part of the first line.

    Raises:
        ValueError: the file is no gzip file or a truncated one, or a line is no UTF-8.
    """
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: broken gzip file: {error}") from None
    content = content.removeprefix(codecs.BOM_UTF8)
    lines = []
    # Only a line feed ends a line: texts contain other characters that Python's
    # splitlines takes for ends, and one too many shifts all pairs below it.
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n"), start=1):
        try:
            lines.append(line.decode("utf-8").strip())
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: no UTF-8: {error}") from None
    return lines if content else []


def read_pairs(source: Path, target: Path) -> tuple[Pair, ...]:
    """Read a file and its translation, one sentence a line.

    Raises:
        ValueError: one of them is broken, a line is empty or holds nothing that is
            seen, or their numbers of lines differ.
    """
    src, tgt = read_lines(source), read_lines(target)
    if len(src) != len(tgt):
        raise ValueError(
            f"{source} has {len(src)} lines, but {target.name} has {len(tgt)}"
        )
    pairs = tuple(zip(src, tgt, strict=True))
    for line, pair in enumerate(pairs, start=1):
        for path, text in zip((source, target), pair, strict=True):
            if not normalize(text):
                raise ValueError(f"{path}, line {line} is empty")
    return pairs
