"""The cross-walk: one thing, and its name in nine dialects.

Rows come from `crosswalk_names` (parameters, arguments, masks) and from
`crosswalk_weights` (keys of state dicts). `convert_weights` renames the parameters of
one dialect into another's; `crosswalk_lookup` looks names up in real objects.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_lib.convert.key_mapping import weight_rows
from transformer_lib.convert.names import NAMES
from transformer_lib.model.checks import check_kind, check_tensors

DIALECTS = (
    "paper",
    "transformer_lib",
    "torch.nn",
    "fairseq",
    "Hugging Face",
    "lecture",
    "post",
    "dummies",
    "revisited",
)
WEIGHTS = "Weights"


@dataclass(frozen=True)
class Name:
    """One name, and a fact about it ("True = ignore"), which may be empty."""

    text: str
    fact: str = ""


@dataclass(frozen=True)
class Row:
    """One thing that several dialects have a name for.

    Attributes:
        topic: the table it belongs to.
        term: what it is, in plain words.
        names: dialect -> its names; a dialect without one is missing.
    """

    topic: str
    term: str
    names: Mapping[str, tuple[Name, ...]]


def read_rows() -> list[Row]:
    """Return all rows, topic by topic; weights come last."""
    rows = list(_parse(NAMES))
    for term, keys in weight_rows():
        names = {dialect: (Name(key),) for dialect, key in keys.items()}
        rows.append(Row(WEIGHTS, term, names))
    return rows


def find(word: str) -> list[Row]:
    """Return the rows in which a dialect uses this word, whole, upper or lower case."""
    check_kind(str, word=word)
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    return [
        row
        for row in read_rows()
        if any(
            pattern.search(text)
            for names in row.names.values()
            for name in names
            for text in _spread(name.text)
        )
    ]


def to_markdown(rows: list[Row]) -> str:
    """Write rows as Markdown, one table a topic, without dialects that it lacks."""
    tables = []
    for topic in dict.fromkeys(row.topic for row in rows):
        of_topic = [row for row in rows if row.topic == topic]
        used = [d for d in DIALECTS if any(d in row.names for row in of_topic)]
        lines = [f"**{topic}**", ""]
        lines.append("| " + " | ".join(["", *used]) + " |")
        lines.append("| --- " * (len(used) + 1) + "|")
        for row in of_topic:
            cells = [_cell(row.names.get(dialect, ())) for dialect in used]
            lines.append("| " + " | ".join([row.term, *cells]) + " |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def convert_weights(
    state: Mapping[str, Tensor], source: str, target: str, strict: bool = False
) -> dict[str, Tensor]:
    """Rename the parameters of a state dict from one dialect into another's.

    Args:
        state: key -> tensor, in the dialect `source`.
        source: one of DIALECTS.
        target: another.
        strict: refuse keys that have no name in both dialects, instead of leaving
            them out.

    Returns:
        key -> tensor, in the dialect `target`. Matrices are cut up or joined where
        one dialect keeps in one tensor what the other keeps in three.

    Raises:
        ValueError: a dialect is unknown or has no weights, or strict and a key has no
            other name.
    """
    check_kind(Mapping, state=state)
    check_tensors(**state)
    rows = [keys for _, keys in weight_rows()]
    for dialect in (source, target):
        known = sorted({name for keys in rows for name in keys})
        if dialect not in known:
            raise ValueError(
                f"dialect {dialect!r} has no weights; known are {', '.join(known)}"
            )
    pieces: dict[str, list[Tensor]] = {}
    left = dict.fromkeys(state)
    for keys in rows:
        if source not in keys or target not in keys:
            continue
        pairs = zip(_spread(keys[source]), _spread(keys[target]), strict=False)
        for their_key, our_key in pairs:
            for found, layer, tensor in _matches(state, their_key):
                left.pop(found, None)
                key = our_key.split("[")[0].replace(".N.", f".{layer}.")
                pieces.setdefault(key, []).append(tensor)
    if strict and left:
        raise ValueError(f"{', '.join(left)} of {source} have no name in {target}")
    return {k: p[0] if len(p) == 1 else torch.cat(p) for k, p in pieces.items()}


def _matches(
    state: Mapping[str, Tensor], key: str
) -> Iterator[tuple[str, str, Tensor]]:
    """Yield (its key, layer number or "", rows) for all that the key stands for."""
    name, _, bounds = key.partition("[")
    start, _, stop = bounds.rstrip("]").partition(":")
    pattern = re.compile(re.escape(name).replace(r"\.N\.", r"\.(\d+)\."))
    for found, tensor in state.items():
        if match := pattern.fullmatch(found):
            d = len(tensor) // 3
            rows = tensor[_bound(start, d) : _bound(stop, d)]
            yield found, "".join(match.groups()), rows


def _bound(text: str, d: int) -> int | None:
    """Read the end of a slice: nothing is None, 2 is 2, d is d, and 2d is twice d."""
    if not text.endswith("d"):
        return int(text) if text else None
    return d * int(text[:-1] or 1)


def _spread(key: str) -> list[str]:
    """Write the braces out: x.{a, b}[:d] becomes x.a[:d] and x.b[:d]."""
    match = re.fullmatch(r"(.*)\{(.*)\}(.*)", key)
    if not match:
        return [key]
    return [f"{match[1]}{word}{match[3]}" for word in match[2].split(", ")]


def _parse(text: str) -> Iterator[Row]:
    topic, term, names = "", "", {}
    for line in [*text.splitlines(), ""]:
        depth = len(line) - len(line.lstrip())
        if depth < 4 and names:
            yield Row(topic, term, names)
            names = {}
        if depth == 4:
            dialect, _, cell = line.strip().partition(": ")
            if dialect not in DIALECTS:
                raise ValueError(f"{term}: {dialect!r} is none of {DIALECTS}")
            parts = (part.partition(" | ") for part in cell.split("; "))
            found = tuple(Name(name, fact) for name, _, fact in parts)
            names[dialect] = names.get(dialect, ()) + found
        elif depth == 2:
            term = line.strip()
        elif line:
            topic = line


def _cell(names: tuple[Name, ...]) -> str:
    parts = []
    for name in names:
        text = name.text if "$" in name.text else f"`{name.text}`"
        parts.append(f"{text}: {name.fact}" if name.fact else text)
    return "; ".join(parts) or "–"
