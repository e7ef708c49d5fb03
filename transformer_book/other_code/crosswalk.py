"""The crosswalk: one thing, and its name in nine dialects.

Rows are read from `names.toml` (parameters, arguments, masks) and from the library's
table of weights. `look_up` looks names up in real objects.
"""

import inspect
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from torch import nn
from torch.overrides import get_testing_overrides

from transformer_lib import Transformer, TransformerConfig
from transformer_lib.convert import WEIGHT_NAMES
from transformer_lib.convert.weights import spread
from transformer_lib.interpret import recording
from transformer_lib.model import attention, causal_mask, padding_mask

DIALECTS = (
    "paper", "transformer_lib", "torch.nn", "fairseq", "Hugging Face",
    "lecture", "post", "dummies", "revisited",
)  # fmt: skip
WEIGHTS = "Weights"
Things = Mapping[str, Any]

_FILE = resources.files(__package__) / "names.toml"
_NAMES = tomllib.loads(_FILE.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Row:
    """One thing that several dialects have a name for.

    Attributes:
        topic: the table it belongs to.
        term: what it is, in plain words.
        names: dialect -> its names; a dialect without one is missing. What follows
            " | " in a name is a fact about it.
    """

    topic: str
    term: str
    names: Mapping[str, list[str]]

    def bare_names(self, *dialects: str) -> list[str]:
        """The names in some dialects, or in all, without facts about them."""
        cells = [self.names.get(dialect, []) for dialect in dialects or self.names]
        return [name.partition(" | ")[0] for names in cells for name in names]


def read_rows() -> list[Row]:
    """Return all rows, topic by topic; weights come last."""
    rows = []
    for topic, terms in _NAMES.items():
        for term, cells in terms.items() if topic != WEIGHTS else ():
            names = {d: [n] if isinstance(n, str) else n for d, n in cells.items()}
            rows.append(Row(topic, term, names))
    for row in weight_names():
        names = {d: [row[d]] for d in DIALECTS if row.get(d)}
        rows.append(Row(WEIGHTS, row["term"], names))
    return rows


def weight_names() -> list[dict[str, str]]:
    """Return the library's table of weights with columns for the texts."""
    texts = _NAMES[WEIGHTS]
    return [{**row, **texts.get(row["term"], {})} for row in WEIGHT_NAMES]


def find_rows(word: str) -> list[Row]:
    """Return the rows in which a dialect uses this word, whole, upper or lower case."""
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)

    def is_used(row: Row) -> bool:
        texts = (text for name in row.bare_names() for text in spread(name))
        return any(map(pattern.search, texts))

    return [*filter(is_used, read_rows())]


def to_markdown(rows: list[Row]) -> str:
    """Write rows as Markdown, one table a topic, without dialects that it lacks."""
    tables = []
    for topic in dict.fromkeys(row.topic for row in rows):
        of_topic = [row for row in rows if row.topic == topic]
        used = [d for d in DIALECTS if any(d in row.names for row in of_topic)]
        lines = [["", *used], ["---"] * (len(used) + 1)]
        for row in of_topic:
            lines.append([row.term, *(_cell(row.names.get(d, [])) for d in used)])
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        tables.append(f"**{topic}**\n\n{table}")
    return "\n\n".join(tables)


def _cell(names: list[str]) -> str:
    parts = []
    for name in names:
        text, _, fact = name.partition(" | ")
        text = text if "$" in text else f"`{text}`"
        parts.append(f"{text}: {fact}" if fact else text)
    return "; ".join(parts) or "–"


def look_up(known: Mapping[str, Things]) -> dict[str, tuple[list[str], list[str]]]:
    """Look every name of these dialects up, weights apart.

    Args:
        known: dialect -> the objects that its names may begin with.

    Returns:
        dialect -> the names that were found, and those that name no object (formulas
        and variables).

    Raises:
        LookupError: a name is wrong, see `is_found`.
    """
    result = {}
    rows = [row for row in read_rows() if row.topic != WEIGHTS]
    for dialect, things in known.items():
        names = [name for row in rows for name in row.bare_names(dialect)]
        found = [name for name in names if is_found(name, things)]
        result[dialect] = (found, [name for name in names if name not in found])
    return result


def is_found(name: str, things: Things) -> bool:
    """Look a name up in real objects.

    Args:
        name: `Thing.attribute`, or `Thing(first, second=default)`.
        things: the objects that a name may begin with.

    Returns:
        True if it was found; False if it names none of the things (a formula, say).

    Raises:
        LookupError: the thing has no such attribute or parameter, its parameters come
            in another order, or the default is another.
    """
    match = re.fullmatch(r"([\w.]+)(?:\((.*)\))?", name)
    heads = [h for h in things if match and f"{match[1]}.".startswith(f"{h}.")]
    if not heads:
        return False
    head = max(heads, key=len)
    thing = things[head]
    for attribute in match[1][len(head) :].split(".")[1:]:
        if not hasattr(thing, attribute):
            raise LookupError(f"{name}: {type(thing).__name__} has no {attribute!r}")
        thing = getattr(thing, attribute)
    if match[2] is not None:
        known = _parameters(thing)
        following = iter(known)
        for part in match[2].split(", "):
            if not any(part in (each, each.partition("=")[0]) for each in following):
                raise LookupError(f"{name}: no {part!r} in this place of {known}")
    return True


def _parameters(thing: Any) -> list[str]:
    """Return the parameters of a function or class, such as "dropout=0.1"."""
    is_callable = inspect.isroutine(thing) or inspect.isclass(thing)
    function = thing if is_callable else type(thing)
    # A function in C has no signature, but PyTorch knows what may stand in for it.
    function = get_testing_overrides().get(function, function)
    return [
        name if each.default is each.empty else f"{name}={each.default!r}"
        for name, each in inspect.signature(function).parameters.items()
    ]


def find_parts(*things: Any, prefix: str = "") -> dict[str, Any]:
    """Name things as the crosswalk does.

    Args:
        things: modules, which stand for all their parts, one of each class; functions
            and classes.
        prefix: what to leave out where a name begins with it.

    Returns:
        name of the class or function -> the thing.
    """
    found = {}
    for thing in things:
        if isinstance(thing, nn.Module):
            found |= {type(part).__name__: part for part in thing.modules()}
        else:
            found[thing.__name__] = thing
    return {name.removeprefix(prefix): thing for name, thing in found.items()}


def own_things() -> dict[str, Any]:
    """Return what names of this library may begin with."""
    sizes = {"d_model": 4, "n_heads": 2, "d_ff": 4, "norm_first": True}
    small = TransformerConfig(src_vocab_size=5, tgt_vocab_size=5, **sizes)
    recorders = recording.record_attention, recording.record_hidden_states
    functions = attention.scaled_dot_product_attention, causal_mask, padding_mask
    return find_parts(Transformer(small), TransformerConfig, *functions, *recorders)
