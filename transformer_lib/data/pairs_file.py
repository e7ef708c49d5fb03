"""A corpus of two files as one file of ids, mapped into memory.

    head       what the file is, and the version of its format
    ids        of each training pair those of the source, then those of the target
    starts     where each pair begins among the ids
    lengths    of source and target, in tokens
    footer     JSON: what it was made of, the tokenizer, what is held out of training
    end        size of the footer, and the SHA-256 of all before

The operating system reads of it what is used, and all processes of a run share that.
Nothing of it is copied into the memory of a process but the batch at hand.
"""

import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from transformer_lib.data.corpora.parallel import (
    MOST_LEARNED,
    Gathered,
    HeldOut,
    OwnFiles,
    show,
)
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.files import naming, writing

# Another number for other contents, another split into parts among them.
HEAD = b"transformer_lib pairs 1".ljust(31) + b"\n"
CHUNK = 2048  # pairs that are tokenized together
START, SIZE, SUM = np.dtype("<u8"), 8, 32  # bytes of the last two, which end the file


class MappedPairs(Sequence):
    """Pairs of ids in a mapped file; a pair is read when it is asked for.

    Attributes:
        lengths: (n_pairs, 2), source and target length of each pair, in tokens.
        digest: tells this file from others.
    """

    def __init__(
        self, ids: np.ndarray, starts: np.ndarray, lengths: np.ndarray, digest: str
    ) -> None:
        self._ids, self._starts = ids, starts
        self.lengths, self.digest = lengths, digest

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, row: int) -> tuple[list[int], list[int]]:
        start, (n_src, n_tgt) = int(self._starts[row]), self.lengths[row].tolist()
        ids = self._ids[start : start + n_src + n_tgt].tolist()
        return ids[:n_src], ids[n_src:]


@dataclass(frozen=True)
class PairsFile:
    """What a file holds.

    Attributes:
        key: what it was made of: settings and checksums of the two files.
        pairs: for training, ids of source and target, both ending with eos.
        tokenizer: learned from the training sentences of both languages.
        held_out: test and validation, as text.
        n_train: training pairs in the two files.
        n_learned: those of them that the tokenizer has learned from.
        first_long: line of the first that is left out, as it is too long; or None.
    """

    key: dict[str, Any]
    pairs: MappedPairs
    tokenizer: Tokenizer
    held_out: HeldOut
    n_train: int
    n_learned: int
    first_long: int | None


def digests(source: Path, target: Path) -> dict[str, str]:
    """Return the SHA-256 of two files."""
    sums = {}
    for name, path in (("source", source), ("target", target)):
        with naming(path), path.open("rb") as file:
            sums[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return sums


def read_pairs_file(path: Path, key: dict[str, Any] | None = None) -> PairsFile:
    """Map a file that `write_pairs_file` wrote.

    Args:
        path: of the file.
        key: what it should have been made of; None for anything.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is of another version, made of something else, or damaged.
    """
    with naming(path):
        raw = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    end = len(raw) - SUM
    if raw[: len(HEAD)].tobytes() != HEAD:
        raise ValueError(f"{path} holds no pairs, or those of another version")
    if hashlib.sha256(raw[:end]).digest() != raw[end:].tobytes():
        raise ValueError(f"{path} is damaged")
    footer_at = end - SIZE - int.from_bytes(raw[end - SIZE : end], "little")
    footer = json.loads(raw[footer_at : end - SIZE].tobytes())
    if key is not None and footer["key"] != key:
        raise ValueError(f"{path} was made of something else")
    ids_type, lengths_type = map(np.dtype, footer["types"])
    n_pairs = footer["n_pairs"]
    lengths_at = footer_at - 2 * n_pairs * lengths_type.itemsize
    starts_at = lengths_at - n_pairs * START.itemsize
    pairs = MappedPairs(
        raw[len(HEAD) : starts_at].view(ids_type),
        raw[starts_at:lengths_at].view(START),
        raw[lengths_at:footer_at].view(lengths_type).reshape(n_pairs, 2),
        raw[end:].tobytes().hex(),
    )
    held = footer["held_out"]
    for part in ("valid", "test"):
        held[part] = tuple(map(tuple, held[part]))
    return PairsFile(
        footer["key"],
        pairs,
        Tokenizer.from_json(footer["tokenizer"]),
        HeldOut(**held),
        *(footer[name] for name in ("n_train", "n_learned", "first_long")),
    )


def read_held_out(path: Path, source: Path, target: Path) -> HeldOut:
    """Return what of two files is held out: from the file of ids if it is theirs.

    Without such a file, the two are read, and nothing is tokenized.

    Raises:
        ValueError: see `OwnFiles.read`.
    """
    try:
        mapped = read_pairs_file(path)
    except (FileNotFoundError, ValueError):
        pass
    else:
        if digests(source, target).items() <= mapped.key.items():
            return mapped.held_out
    return OwnFiles.read(source, target).held_out()


def write_pairs_file(
    path: Path,
    files: OwnFiles,
    key: dict[str, Any],
    learn: Callable[[Iterable[str]], Tokenizer],
    progress: bool = False,
) -> None:
    """Learn a tokenizer from two files and write their ids, whole or not at all.

    Args:
        path: of the file of ids; its folder is made if it is missing.
        files: what is read, line by line.
        key: what the file is made of: `digests` of the files, `max_len`, the most
            tokens of a side, and what else the ids depend on.
        learn: makes the tokenizer of texts.
        progress: show progress bars.

    Raises:
        ValueError: no pair is short enough, or the files have changed meanwhile.
        OSError: the disk is full, for example.
    """
    with writing(path) as file:
        _write(file, files, key, learn, progress)
        if not digests(files.source, files.target).items() <= key.items():
            raise ValueError(
                f"{files.source} or {files.target} changed while it was read"
            )


def _write(
    file: BinaryIO,
    files: OwnFiles,
    key: dict[str, Any],
    learn: Callable[[Iterable[str]], Tokenizer],
    progress: bool,
) -> None:
    """Learn the tokenizer and write the ids as they come."""
    digest = hashlib.sha256()

    def put(content: Any) -> None:
        digest.update(content)
        file.write(content)

    put(HEAD)
    n_learned = 0

    def texts() -> Iterator[str]:
        nonlocal n_learned
        n_most = min(files.n_pairs, MOST_LEARNED)
        for pair in show(files.sample(), n_most, "learning tokens", progress):
            n_learned += 1
            yield from pair

    tokenizer = learn(texts())
    ids_type, lengths_type = map(_type_for, (len(tokenizer) - 1, key["max_len"]))
    lengths, gathered = array(lengths_type.char), Gathered()
    n_train, first_long = 0, None
    lines = iter(show(enumerate(files, 1), files.n_pairs, "tokenizing", progress))
    while chunk := list(islice(lines, CHUNK)):
        for _, (part, pair) in chunk:
            gathered.add(part, pair)
        train = [(line, pair) for line, (part, pair) in chunk if part == "train"]
        rows = tokenizer.encode_all([text for _, pair in train for text in pair])
        n_train, ids = n_train + len(train), []
        for (line, _), src, tgt in zip(train, rows[::2], rows[1::2], strict=True):
            if max(len(src), len(tgt)) > key["max_len"]:
                first_long = first_long or line
                continue
            lengths.extend((len(src), len(tgt)))
            ids += src + tgt
        put(np.array(ids, dtype=ids_type))
    if not lengths:
        raise ValueError(f"none of {n_train} pairs fits into max_len {key['max_len']}")
    put(bytes(-file.tell() % START.itemsize))  # numbers begin at multiples of theirs
    sizes, start = np.frombuffer(lengths, dtype=lengths_type).reshape(-1, 2), 0
    for some in np.array_split(sizes, len(sizes) // CHUNK + 1):
        ends = start + np.cumsum(some.sum(axis=1, dtype=START))
        put(ends - some.sum(axis=1))
        start = ends[-1]
    put(sizes)
    footer = {
        "key": key,
        "n_pairs": len(sizes),
        "types": [ids_type.str, lengths_type.str],
        "n_train": n_train,
        "n_learned": n_learned,
        "first_long": first_long,
        "held_out": asdict(gathered.held_out(files.name)),
        "tokenizer": tokenizer.to_json(),
    }
    text = json.dumps(footer).encode()
    put(text)
    put(len(text).to_bytes(SIZE, "little"))
    file.write(digest.digest())


def _type_for(largest: int) -> np.dtype:
    """Return the type of numbers up to this one: of 16 bits, or of 32."""
    return np.dtype("<u2" if largest < 1 << 16 else "<u4")
