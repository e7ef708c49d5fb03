"""The same parameter under other names: state dicts renamed by one table.

The table is `names.tsv`, a row for each of our parameters and a column for each
library. N stands for the number of a layer, {a, b} for several last words, in the same
order in every column. [:d], [d:2d] and [2d:] are rows of a matrix that holds three of
ours, d being d_model; [2:] leaves out two rows that serve no position.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

import torch
from torch import Tensor

Names = Mapping[str, str]  # dialect -> key, or "" where it has none

with (resources.files(__package__) / "names.tsv").open(encoding="utf-8") as table:
    WEIGHT_NAMES: list[Names] = list(csv.DictReader(table, delimiter="\t"))


def convert_weights(
    state: Mapping[str, Tensor],
    source: str,
    target: str,
    strict: bool = False,
    names: Sequence[Names] = WEIGHT_NAMES,
) -> dict[str, Tensor]:
    """Rename the parameters of a state dict from one dialect into another's.

    Args:
        state: key -> tensor, in the dialect `source`.
        source: "transformer_lib", "torch.nn", "fairseq" or "Hugging Face".
        target: another.
        strict: refuse keys that have no name in both dialects, instead of leaving
            them out.
        names: the table, for dialects of your own.

    Returns:
        key -> tensor, in the dialect `target`. Matrices are cut up or joined where
        one dialect keeps in one tensor what the other keeps in three.

    Raises:
        ValueError: a dialect has no names, or strict and a key has no other name.
    """
    for dialect in (source, target):
        if not any(row.get(dialect) for row in names):
            raise ValueError(f"the table has no names of weights in {dialect!r}")
    pieces: dict[str, list[Tensor]] = {}
    left = dict.fromkeys(state)
    for row in names:
        pairs = zip(
            spread(row.get(source, "")), spread(row.get(target, "")), strict=False
        )
        for theirs, ours in pairs:
            for key, layer, tensor in _matches(state, theirs):
                left.pop(key, None)
                name = ours.partition("[")[0].replace(".N.", f".{layer}.")
                pieces.setdefault(name, []).append(tensor)
    if strict and left:
        raise ValueError(f"{', '.join(left)} of {source} have no name in {target}")
    return {k: p[0] if len(p) == 1 else torch.cat(p) for k, p in pieces.items()}


def spread(key: str) -> list[str]:
    """Write the braces out: x.{a, b}[:d] becomes x.a[:d] and x.b[:d]."""
    if match := re.fullmatch(r"(.*)\{(.*)\}(.*)", key):
        return [f"{match[1]}{word}{match[3]}" for word in match[2].split(", ")]
    return [key] if key else []


def _matches(
    state: Mapping[str, Tensor], name: str
) -> Iterator[tuple[str, str, Tensor]]:
    """Yield (key, layer number or "", rows) for all that a name stands for."""
    name, _, rows = name.partition("[")
    pattern = re.compile(re.escape(name).replace(r"\.N\.", r"\.(\d+)\."))
    for key, tensor in state.items():
        if match := pattern.fullmatch(key):
            d = len(tensor) // 3
            thirds = {":d]": (0, d), "d:2d]": (d, 2 * d), "2d:]": (2 * d, 3 * d)}
            bounds = {"": (0, None), "2:]": (2, None)} | thirds
            yield key, "".join(match.groups()), tensor[slice(*bounds[rows])]
