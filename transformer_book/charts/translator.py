"""The translator in the page: what it shows before a reader loads its model.

    trace = trace_translation(load("multi30k-de-en"), "Im Schnee spielt ein Hund.")
    show_part("heads", trace, block="encoder.layers.0.self_attn")

The web page runs the model itself, in JavaScript (book/_static/translator). Until its
weights are loaded it shows this trace, which the library has computed; where no script
runs, in notebooks and on paper, there is a picture of it.
"""

import io
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure

from transformer_book.diagrams.canvas import Canvas, display_bundle, still
from transformer_book.diagrams.generation import Candidate, beam_tree
from transformer_book.pictures import small_png
from transformer_lib.plots import (
    plot_attention,
    plot_attention_heads,
    plot_bars,
    plot_lines,
)

MIME = "application/vnd.transformer-book.translator+json"
HEADS = "decoder.layers.1.cross_attn"  # what the part "heads" opens with
OPTIONS = ("block", "head", "position", "step", "share")
Trace = dict[str, Any]


def show_part(part: str, trace: Trace, **options: str) -> None:
    """Display one part of the translator: alive on the web page, elsewhere a picture.

    Args:
        part: one of PARTS.
        trace: from `trace_translation`.
        options: what the part begins with: block and head of "heads", position of
            "step", step of "search" and "cache"; share="yes" lets the page keep the
            reader's changes in its address.

    Raises:
        ValueError: there is no option of this name; the page would ignore it.
    """
    for name in options:
        if name not in OPTIONS:
            raise ValueError(f"options are {', '.join(OPTIONS)}, not {name!r}")
    needs, alt, draw = PARTS[part]
    needed = {name: trace[name] for name in (*_ALWAYS, *needs)}
    # The trace as text: a notebook would give each of its numbers a line.
    text = json.dumps(needed, ensure_ascii=False, separators=(",", ":"))
    bundle = {
        MIME: {"part": part, "alt": alt, "options": options, "trace": text},
        "text/plain": alt,
    }
    picture = draw(trace, options)
    if isinstance(picture, Canvas):
        bundle |= still(picture.svg(alt))
    else:
        png = io.BytesIO()
        picture.savefig(png, format="png", bbox_inches="tight")
        plt.close(picture)
        bundle["image/png"] = small_png(png.getvalue(), 128)
    display_bundle(bundle)


def _words(labels: list[str]) -> list[str]:
    """Return labels of tokens without the mark of the space before them."""
    return [label.replace("▁", "") or "␣" for label in labels]


def _alive(trace: Trace, options: dict[str, str]) -> Figure:
    english, german = _words(trace["tgt_labels"]), _words(trace["src_labels"])
    weights = torch.tensor(trace["alignment"]).view(len(english), -1)
    return plot_attention(weights, english, german)


def _type(trace: Trace, options: dict[str, str]) -> Figure:
    p = torch.tensor(trace["log_probs"]).exp()
    english = _words(trace["tgt_labels"])
    return plot_bars(english, p, "token of the translation", "probability")


def _heads(trace: Trace, options: dict[str, str]) -> Figure:
    name = options.get("block", HEADS)
    german, written = _words(trace["src_labels"]), _words(trace["tgt_labels"])
    read = ["<bos>", *written[:-1]]
    rows = german if name.startswith("encoder") else read
    columns = read if name.startswith("decoder") and "self" in name else german
    maps = torch.tensor(trace["maps"][name])  # (n_heads, rows * columns)
    return plot_attention_heads(maps.view(-1, len(rows), len(columns)), rows, columns)


def _step(trace: Trace, options: dict[str, str]) -> Figure:
    found = trace["next"][int(options.get("position", "0"))]
    tokens = _words([each["label"] for each in found])
    return plot_bars(tokens, [each["p"] for each in found], "next token", "probability")


def _search(trace: Trace, options: dict[str, str]) -> Canvas:
    steps, beams = [], [0]  # rows of the candidates that became beams
    for step in trace["search"]["steps"][:3]:
        found = step["candidates"]
        kept = [each["fate"] == "beam" for each in found]
        words = _words([each["label"] for each in found])
        steps.append(
            [
                Candidate(
                    word, f"{each['log_prob']:.2f}", beams[each["parent"]], goes_on
                )
                for word, each, goes_on in zip(words, found, kept, strict=True)
            ]
        )
        beams = [row for row, goes_on in enumerate(kept) if goes_on]
    return beam_tree(steps)


def _cache(trace: Trace, options: dict[str, str]) -> Figure:
    search = trace["search"]
    caches = [step["cache"] for step in search["steps"]]
    curves = {
        f"target, {search['n_beams']} beams": [c["n_bytes"] / 1024 for c in caches],
        "source, shared": [c["source_bytes"] / 1024 for c in caches],
    }
    lengths = [c["length"] for c in caches]
    return plot_lines(lengths, curves, "step", "keys and values (KiB)")


def _operate(trace: Trace, options: dict[str, str]) -> Figure:
    names, losses = trace["cuts"].keys(), trace["cuts"].values()
    label = "loss of the translation (nats per token)"
    return plot_bars(list(names), list(losses), "cross-attention", label)


class Part(NamedTuple):
    """One part of the translator.

    Attributes:
        needs: what it needs of a trace, beside what all parts do.
        alt: what it shows, in words.
        draw: its still picture, from a trace and the options of `show_part`.
    """

    needs: tuple[str, ...]
    alt: str
    draw: Callable[[Trace, dict[str, str]], Figure | Canvas]


_ALWAYS = ("source", "src", "tgt", "src_labels", "tgt_labels", "text", "log_probs")
PARTS = {
    "alive": Part(
        ("alignment",),
        "A German sentence and its translation. For each English word, the "
        "German words are shaded by how much the model looked at them.",
        _alive,
    ),
    "type": Part(
        ("read",),
        "A field for a German sentence; below it, its tokens with their ids, "
        "and the translation with the probability of each token.",
        _type,
    ),
    "heads": Part(
        ("maps",),
        "Small maps of all 72 attention heads; one of them is enlarged, and one"
        " of its rows is shown as bars.",
        _heads,
    ),
    "step": Part(
        ("layers", "next"),
        "For one position: what each layer would answer, and the ten likeliest "
        "next tokens with their probabilities.",
        _step,
    ),
    "search": Part(
        ("search",),
        "Beam search, step by step: candidates that are kept, finished, or "
        "dropped, and the finished sentences.",
        _search,
    ),
    "cache": Part(
        ("search",),
        "The cache of a beam search: a block for the source that is filled "
        "once, and a row for each beam that grows by one column a step.",
        _cache,
    ),
    "operate": Part(
        ("written",),
        "Switches for positions, source words, cross-attention, heads and the "
        "causal mask; the translation before and after.",
        _operate,
    ),
}
