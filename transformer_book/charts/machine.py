"""The machine in a page: the whole model as one picture that opens down to one weight.

    trace = trace_translation(load("multi30k-de-en"), "Im Schnee spielt ein Hund.")
    show_machine(trace, at="/decoder/1/cross_attn/3", step=1)

The web page runs the model itself, in JavaScript (book/machine). Until its weights are
loaded it shows this trace, which the library has computed. Where no script runs, in
notebooks and on paper, there is a picture, drawn by the same script without a page.
"""

import json
import re
from base64 import b64decode
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from transformer_book.diagrams.canvas import display_bundle, still
from transformer_lib.plots.palette import LIGHT

MIME = "application/vnd.transformer-book.machine+json"
OPTIONS = {"step": int, "word": int, "search_step": int, "shares": bool, "play": bool}
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
        options: step of the translation or word of the source that is looked at, and
            search_step, all counted from 0; shares=True lets the page keep the
            reader's changes in its address; play=True plays once.

    Raises:
        ValueError: there is no option of this name; the page would ignore it.
    """
    for name in options:
        if name not in OPTIONS:
            raise ValueError(f"options are {', '.join(OPTIONS)}, not {name!r}")
    # As text: a notebook would give each of its numbers a line.
    text = json.dumps(
        {"trace": trace, "edited": edited}, ensure_ascii=False, separators=(",", ":")
    )
    picture, alt = draw(text, at, options), describe(edited or trace, at)
    bundle = {MIME: {"at": at, "alt": alt, "options": options, "stored": text}}
    display_bundle(
        bundle | {"text/plain": alt} | still(framed(picture["svg"]), scale=1)
    )


def describe(trace: Trace, at: str) -> str:
    """Say in a sentence what is shown."""
    what = (
        at.strip("/").replace("/", ", ").replace("_attn", "-attention") or "the whole"
    )
    return (
        f"The machine ({what}) translates “{trace['source']}” into “{trace['text']}”."
    )


@cache
def _engine() -> Any:
    from py_mini_racer import MiniRacer

    engine = MiniRacer()
    script = files("transformer_book.charts") / "machine_still.js"
    engine.eval(script.read_text("utf-8"))
    return engine


def draw(
    stored: str, at: str, options: dict[str, Any], tall: bool = False
) -> dict[str, str]:
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
        for kept in trace["heads"].values():  # the bare engine knows no base64
            vectors = {which: b64decode(kept[which]) for which in "qkv"}
            kept |= {
                k: np.frombuffer(v, "float32").tolist() for k, v in vectors.items()
            }
    sizes = json.dumps(_sizes(known["trace"]))
    how = {"at": at, "step": 0, "word": 0, "tall": tall, **options}
    stored = json.dumps(known)
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
    stacks = {
        f"n_{stack}_layers": sum(name.startswith(stack) for name in maps) // n
        for stack, n in (("encoder", 1), ("decoder", 2))
    }
    return {**stacks, "n_heads": len(next(iter(maps.values()))), **trace["sizes"]}


# What the page's style sheet does with rows of the target
ROWS = ".to-come,.past .asks,.now .written,.door-ground{display:none}.past{opacity:0.4}"


def framed(svg: str) -> str:
    """Put the color of the page behind a picture, and hide what is not there yet."""
    start = svg.index(">") + 1
    ground = (
        f'<style>{ROWS}</style><rect width="100%" height="100%" fill="{LIGHT.page}"/>'
    )
    opened = svg[:start].replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return opened + ground + svg[start:]
