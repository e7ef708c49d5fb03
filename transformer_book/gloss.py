"""What the German of the book means, word by word and as a whole: gloss.toml.

    gloss("Im Schnee spielt ein Hund.")
    [("Im", "in the"), ("Schnee", "snow"), ("spielt", "plays"), ("ein", "a"), ...]
    meaning("Im Schnee spielt ein Hund.")  # "A dog is playing in the snow."

A sentence is found whatever its capitals and its full stop.
"""

import re
import tomllib
from functools import cache
from importlib.resources import files

WORD = re.compile(r"[^\W\d_]+")  # of letters; "Tür-Sensors" has two


@cache
def _book() -> dict[str, dict]:
    text = files("transformer_book").joinpath("gloss.toml").read_text("utf-8")
    known = tomllib.loads(text)
    by_key = {name: _keyed(known[name]) for name in ("sentences", "here")}
    return {"words": known["words"], **by_key}


def _key(sentence: str) -> str:
    return " ".join(WORD.findall(sentence)).lower()


def _keyed(table: dict) -> dict:
    return {_key(sentence): value for sentence, value in table.items()}


def gloss(sentence: str) -> list[tuple[str, str]]:
    """Return each German word of a sentence with what it means there, in their order.

    Raises:
        KeyError: a word has no entry in gloss.toml.
    """
    book = _book()
    here = book["words"] | book["here"].get(_key(sentence), {})
    return [(word, here[word.lower()]) for word in WORD.findall(sentence)]


def meaning(sentence: str) -> str:
    """Return a sentence of the book in English, or "" where it has none as a whole."""
    return _book()["sentences"].get(_key(sentence), "")
