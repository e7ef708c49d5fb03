"""Sphinx extension: the page of measured speeds, drawn from the stored results.

The benchmarks write JSON into `transformer_lib/results`. A directive for each part of
the page turns it into tables and a plot, so that the page cannot say anything else:

    decode-speed       how long a token takes, beside other libraries
    decode-precision   what weights of fewer bits gain and lose
    train-speed        target tokens per second while training
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from book_tools.page_pieces import simple_table
from book_tools.speed_plot import speed_plot

RESULTS = Path(__file__).parents[1] / "transformer_lib/experiments/results"
OURS = "transformer_lib"
RECOMPUTING = ("no cache", "nn.Transformer")
MODELS = {"small": "Small model", "base": "The paper's base model"}
Rows = Sequence[Mapping[str, Any]]


def read(name: str) -> dict[str, Any] | None:
    """Return stored results; None if that was not measured yet."""
    path = RESULTS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def settings(rows: Rows) -> Iterator[tuple[str, dict[str, Mapping[str, Any]]]]:
    """Yield (setting in words, library -> its row), for each setting in their order."""
    found: dict[tuple[int, int, int], dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        key = (row["n_tokens"], row["batch"], row["n_beams"])
        found.setdefault(key, {})[row["library"]] = row
    for (n_tokens, batch, n_beams), libraries in sorted(found.items()):
        beams = "greedy" if n_beams == 1 else f"{n_beams} beams"
        sentences = "1 sentence" if batch == 1 else f"{batch} sentences"
        yield f"{n_tokens} tokens, {sentences}, {beams}", libraries


def times(row: Mapping[str, Any] | None) -> str:
    """Write a ratio, or that there is none."""
    return f"{row['ours_is']:.2f} ×" if row else "–"


def machine_line(machine: Mapping[str, Any]) -> nodes.paragraph:
    """Say what was measured on."""
    text = (
        f"Measured on {machine['processor']}, {machine['threads']} threads, PyTorch "
        f"{machine['torch']}, Python {machine['python']}."
    )
    return nodes.paragraph(text, text)


class Speed(SphinxDirective):
    """What the directives share: the file they read."""

    file = ""

    def run(self) -> list[nodes.Node]:
        """Write the part, and remember that the page depends on the file."""
        self.env.note_dependency(str(RESULTS / self.file))
        result = read(self.file)
        if result is None:
            text = "No results are stored yet; the command below measures them."
            return [nodes.paragraph(text, text)]
        return [*self.parts(result)]

    def parts(self, result: Mapping[str, Any]) -> Iterator[nodes.Node]:
        """Yield what the part consists of."""
        raise NotImplementedError


class DecodeSpeed(Speed):
    """Decoding: for each model two tables, with and without a cache, and a plot."""

    file = "decode_speed.json"

    def parts(self, result: Mapping[str, Any]) -> Iterator[nodes.Node]:
        """Yield a table and a plot for each model."""
        yield machine_line(result["machine"])
        for model, title in MODELS.items():
            rows = [
                row
                for row in result["rows"]
                if row["model"] == model
                and not row["library"].endswith("16")
                and not row["library"].endswith("int8")
            ]
            peers = [*dict.fromkeys(row["library"] for row in rows)]
            peers.remove(OURS)
            measured = result["measured"][model]
            config = result["configs"][model]
            text = (
                f"{title}: width {config['d_model']}, {config['n_encoder_layers']} + "
                f"{config['n_decoder_layers']} layers, {config['tgt_vocab_size']:,} "
                "tokens in the vocabulary. The machine reads its weights at "
                f"{measured['bytes_per_second'] / 1e9:.0f} GB/s and reaches "
                f"{measured['flops'] / 1e9:.0f} GFLOP/s in a large matrix product."
            )
            yield nodes.paragraph(text, text)
            recomputing = [peer for peer in peers if peer.endswith(RECOMPUTING)]
            caching = [peer for peer in peers if peer not in recomputing]
            yield simple_table(
                ["What is decoded", "ms per token", "lower bound", *caching],
                [
                    [
                        name,
                        f"{found[OURS]['ms_per_token']:.2f}",
                        f"{found[OURS]['bound_ms']:.2f}",
                        *(times(found.get(peer)) for peer in caching),
                    ]
                    for name, found in settings(rows)
                ],
            )
            again = [
                [name, *(times(found.get(peer)) for peer in recomputing)]
                for name, found in settings(rows)
                if found.keys() & recomputing
            ]
            if again:
                yield simple_table(["All read again", *recomputing], again)
            yield speed_plot(
                f"{title}: time over that of transformer_lib",
                [
                    (name, {peer: found[peer]["ours_is"] for peer in found})
                    for name, found in settings(rows)
                    if len(found) > 1
                ],
                [OURS, *peers],
            )


class DecodePrecision(Speed):
    """Weights of fewer bits: the gain in time, and BLEU."""

    file = "decode_speed.json"

    def parts(self, result: Mapping[str, Any]) -> Iterator[nodes.Node]:
        """Yield a table of times and one of scores."""
        kinds = ("bfloat16", "int8")
        lines = [
            [
                f"{MODELS[model]}, {name}",
                *(f"{1 / found[f'{OURS}, {kind}']['ours_is']:.2f} ×" for kind in kinds),
            ]
            for model in MODELS
            for name, found in settings(
                [row for row in result["rows"] if row["model"] == model]
            )
            if f"{OURS}, {kinds[0]}" in found
        ]
        yield simple_table(["What is decoded", *kinds], lines)
        scores: dict[str, dict[str, float]] = {}
        for row in result["quality"]:
            scores.setdefault(row["model"], {})[row["precision"]] = row["bleu"]
        yield simple_table(
            ["BLEU of the shipped model", "float32", *kinds],
            [
                [model, *(f"{found[kind]:.2f}" for kind in ("float32", *kinds))]
                for model, found in scores.items()
            ],
        )


class TrainSpeed(Speed):
    """Training: a table and a plot."""

    file = "train_speed.json"

    def parts(self, result: Mapping[str, Any]) -> Iterator[nodes.Node]:
        """Yield the machine, the table and the plot."""
        yield machine_line(result["machine"])
        rows = result["rows"]
        yield simple_table(
            ["Library", "Precision", "Freed memory", "Tokens per second", "Its time"],
            [
                [
                    row["library"],
                    row["precision"],
                    "kept" if row["keeps_memory"] else "given back",
                    f"{row['tokens_per_second']:,}",
                    f"{row['ours_is']:.2f} ×",
                ]
                for row in rows
            ],
        )
        groups: dict[str, dict[str, float]] = {}
        for row in rows:
            memory = "kept" if row["keeps_memory"] else "given back"
            name = f"{row['precision']}, memory {memory}"
            groups.setdefault(name, {})[row["library"]] = row["ours_is"]
        for group in groups.values():
            group.setdefault(OURS, 1.0)
        yield speed_plot(
            "Time of a training step over that of transformer_lib",
            [*groups.items()],
            [*dict.fromkeys(row["library"] for row in rows)],
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the directives."""
    app.add_directive("decode-speed", DecodeSpeed)
    app.add_directive("decode-precision", DecodePrecision)
    app.add_directive("train-speed", TrainSpeed)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
