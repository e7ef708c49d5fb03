"""The machine in a page: the whole model as one picture that opens down to one weight.

    trace = trace_translation(load("multi30k-de-en"), "Im Schnee spielt ein Hund.")
    show_machine(trace, at="/decoder/1/cross_attn/3", step=1)

The web page runs the model itself, in JavaScript (book/machine). Until its weights are
loaded it shows this trace, which the library has computed. Where no script runs, in
notebooks and on paper, there is a picture, drawn by the same script without a page.
"""

import gzip
import json
import re
import tomllib
from base64 import b64decode
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from transformer_book.diagrams.canvas import display_bundle, still
from transformer_book.gloss import gloss, meaning
from transformer_lib.plots.palette import LIGHT

MIME = "application/vnd.transformer-book.machine+json"
OPTIONS = ("step", "word", "shares", "play")
Trace = dict[str, Any]


def show_machine(
    trace: Trace, *, at: str = "", edited: Trace | None = None, **options: int | bool
) -> None:
    """Display the machine: alive on the web page, elsewhere a picture.

    Args:
        trace: from `trace_translation`.
        at: where it is open: "" for the whole, "/decoder/1" for a layer, then the
            attention and the head, then a key: "/decoder/1/cross_attn/3/0"; or one of
            "/search", "/cache", "/operate".
        edited: a trace of the same sentence with edits: what is shown first, beside
            what the untouched model does.
        options: step of the translation or of a search, or word of the source, that is
            looked at, counted from 0; shares=True lets the page keep the reader's
            changes in its address; play=True plays once.

    Raises:
        ValueError: there is no option of this name; the page would ignore it.
    """
    if unknown := [name for name in options if name not in OPTIONS]:
        raise ValueError(f"options are {', '.join(OPTIONS)}, not {unknown[0]!r}")
    # As text: a notebook would give each of its numbers a line.
    both = {"trace": trace, "edited": edited}
    text = json.dumps(both, ensure_ascii=False, separators=(",", ":"))
    picture, alt = draw(text, at, options), describe(edited or trace, at)
    live = {"at": at, "alt": alt, "options": options, "stored": text}
    shown = still(framed(picture["svg"]), scale=1)
    display_bundle({MIME: live, "text/plain": alt, **shown})


def read_choices() -> list[dict[str, Any]]:
    """Return what a reader can choose with one tap: choices.toml."""
    text = files("transformer_book").joinpath("choices.toml").read_text("utf-8")
    return tomllib.loads(text)["choices"]


def meanings(sentences: Iterable[str]) -> dict[str, Any]:
    """Return what those mean that the book knows: as a whole, and word by word."""
    known = {each: meaning(each) for each in sentences}
    return {
        sentence: {"whole": whole, "words": gloss(sentence)}
        for sentence, whole in known.items()
        if whole
    }


def describe(trace: Trace, at: str) -> str:
    """Say in a sentence what is shown; layers, heads and words are counted from 1."""
    numbers = iter(("layer", "head", "word"))
    parts = [
        f"{next(numbers)} {int(part) + 1}" if part.isdecimal() else part
        for part in at.strip("/").split("/")
    ]
    what = ", ".join(parts).replace("_attn", "-attention") or "the whole"
    said, written = trace["source"], trace["text"]
    return f"The machine ({what}) translates “{said}” into “{written}”"


@cache
def _engine() -> Any:
    from py_mini_racer import MiniRacer

    engine = MiniRacer()
    script = files("transformer_book.charts") / "machine_still.js.gz"
    engine.eval(gzip.decompress(script.read_bytes()).decode("utf-8"))
    return engine


def draw(stored: str, at: str, options: dict, tall: bool = False) -> dict[str, str]:
    """Draw a stored trace without a page.

    Args:
        stored: JSON of "trace" and "edited".
        at: where the machine is open.
        options: step and word, as in `show_machine`.
        tall: upright, for a phone.

    Returns:
        "svg"; "words" that lead to its rows, for the whole; and "table" with the same
        numbers.

    Raises:
        ValueError: the trace does not hold this head.
    """
    known = json.loads(stored)
    for trace in filter(None, known.values()):
        source = trace["source"]
        trace["gloss"] = meanings([source]).get(source, {}).get("words", [])
        for kept in trace["heads"].values():  # the bare engine knows no base64
            raw = {name: b64decode(kept[name]) for name in "qkv"}
            kept |= {name: np.frombuffer(raw[name], "float32").tolist() for name in raw}
    sizes, stored = json.dumps(_sizes(known["trace"])), json.dumps(known)
    how = {"at": at, "step": 0, "word": 0, "tall": tall, **options}
    from py_mini_racer import JSEvalException

    try:
        drawn = json.loads(_engine().call("machine_still", stored, sizes, how))
    except JSEvalException as error:  # its message holds the whole script
        raise ValueError(str(error).partition("\n")[0]) from None
    # Its ways down lead somewhere only where the page is alive.
    svg = re.sub(r'<a href="[^"]*"', "<g", drawn["svg"]).replace("</a>", "</g>")
    return {**drawn, "svg": svg}


def _sizes(trace: Trace) -> dict[str, int]:
    """Return what the drawings need to know of the model."""
    maps = trace["maps"]
    counts = [sum(part in name for name in maps) for part in ("encoder", "cross")]
    stacks = dict(zip(("n_encoder_layers", "n_decoder_layers"), counts, strict=True))
    return {**stacks, "n_heads": len(next(iter(maps.values()))), **trace["sizes"]}


# What the page's style sheet does with rows of the target
ROWS = ".to-come,.past .asks,.now .written,.door-ground{display:none}.past{opacity:0.4}"


def framed(svg: str) -> str:
    """Put the color of the page behind a picture, and hide what is not there yet."""
    ground = f'<rect width="100%" height="100%" fill="{LIGHT.page}"/>'
    svg = svg.replace(">", f"><style>{ROWS}</style>{ground}", 1)
    return svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
