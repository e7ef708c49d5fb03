"""What a part of the translator shows where no script runs: notebooks and paper."""

from collections.abc import Callable
from typing import Any

import torch
from matplotlib.figure import Figure

from transformer_book.charts.beam_search import Branch, beam_tree
from transformer_book.charts.parts import Chart
from transformer_lib.plots import (
    plot_attention,
    plot_attention_heads,
    plot_bars,
    plot_lines,
)

ALT = {
    "alive": (
        "A German sentence and its translation. For each English word, the "
        "German words are shaded by how much the model looked at them."
    ),
    "type": (
        "A field for a German sentence; below it, its tokens with their ids, "
        "and the translation with the probability of each token."
    ),
    "heads": (
        "Small maps of all 72 attention heads; one of them is enlarged, and one"
        " of its rows is shown as bars."
    ),
    "step": (
        "For one position: what each layer would answer, and the ten likeliest "
        "next tokens with their probabilities."
    ),
    "search": (
        "Beam search, step by step: candidates that are kept, finished, or "
        "dropped, and the finished sentences."
    ),
    "cache": (
        "The cache of a beam search: a block for the source that is filled "
        "once, and a row for each beam that grows by one column a step."
    ),
    "operate": (
        "Switches for positions, source words, cross-attention, heads and the "
        "causal mask; the translation before and after."
    ),
}
HEADS = "decoder.layers.1.cross_attn"  # what the part "heads" opens with


def still_picture(part: str, trace: dict[str, Any], **options: str) -> Figure | Chart:
    """Draw one part of the translator from its trace.

    Args:
        part: one of `transformer_book.charts.PARTS`.
        trace: from `trace_translation`.
        options: as of `show_part`.
    """
    return _PICTURES[part](trace, options)


def words(labels: list[str]) -> list[str]:
    """Return labels of tokens without the mark of the space before them."""
    return [label.replace("▁", "") or "␣" for label in labels]


def _alive(trace: dict[str, Any], options: dict[str, str]) -> Figure:
    english, german = words(trace["tgt_labels"]), words(trace["src_labels"])
    weights = torch.tensor(trace["alignment"]).view(len(english), -1)
    return plot_attention(weights, english, german)


def _type(trace: dict[str, Any], options: dict[str, str]) -> Figure:
    p = torch.tensor(trace["log_probs"]).exp()
    english = words(trace["tgt_labels"])
    return plot_bars(english, p, "token of the translation", "probability")


def _heads(trace: dict[str, Any], options: dict[str, str]) -> Figure:
    name = options.get("block", HEADS)
    german, written = words(trace["src_labels"]), words(trace["tgt_labels"])
    read = ["<bos>", *written[:-1]]
    rows = german if name.startswith("encoder") else read
    columns = read if name.startswith("decoder") and "self" in name else german
    maps = torch.tensor(trace["maps"][name])  # (n_heads, rows * columns)
    return plot_attention_heads(maps.view(-1, len(rows), len(columns)), rows, columns)


def _step(trace: dict[str, Any], options: dict[str, str]) -> Figure:
    found = trace["next"][int(options.get("position", "0"))]
    tokens = words([each["label"] for each in found])
    return plot_bars(tokens, [each["p"] for each in found], "next token", "probability")


def _search(trace: dict[str, Any], options: dict[str, str]) -> Chart:
    fates = {"beam": "kept", "ended": "finished", "dropped": "pruned"}
    steps, beams = [], [()]
    for step in trace["search"]["steps"][:3]:
        steps.append(
            [
                Branch(
                    (*beams[each["parent"]], each["label"]),
                    each["log_prob"],
                    fates[each["fate"]],
                )
                for each in step["candidates"]
            ]
        )
        beams = [tuple(beam["labels"]) for beam in step["beams"]]
    return beam_tree(steps)


def _cache(trace: dict[str, Any], options: dict[str, str]) -> Figure:
    caches = [step["cache"] for step in trace["search"]["steps"]]
    n_beams = trace["search"]["n_beams"]
    return plot_lines(
        [cache["length"] for cache in caches],
        {
            f"target, {n_beams} beams": [c["n_bytes"] / 1024 for c in caches],
            "source, shared": [c["source_bytes"] / 1024 for c in caches],
        },
        "step",
        "keys and values (KiB)",
    )


def _operate(trace: dict[str, Any], options: dict[str, str]) -> Figure:
    losses = trace["cuts"]
    return plot_bars(
        list(losses),
        list(losses.values()),
        "cross-attention",
        "loss of the translation (nats per token)",
    )


_PICTURES: dict[str, Callable[[dict[str, Any], dict[str, str]], Figure | Chart]] = {
    "alive": _alive,
    "type": _type,
    "heads": _heads,
    "step": _step,
    "search": _search,
    "cache": _cache,
    "operate": _operate,
}
