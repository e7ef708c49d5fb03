"""Decoding speed against other libraries: `python benchmarks/decode.py`.

All write targets of the same forced length with the same weights, in turns. Before a
setting is measured, all have to write the same first tokens. The table gives
milliseconds for each token of a target, and how many times as long the others take. The
lower bound is what reading the weights and multiplying by them cannot take less than,
by what this machine was measured to reach. A second table shows weights of fewer bits:
what they gain, and what they lose in BLEU on the test sentences of the shipped models.

About ten minutes; `--quick` tries everything out in one.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import torch
from bounds import lower_bound, measure_machine
from decoders import (
    Setting,
    has_ctranslate2,
    make_ctranslate2,
    make_hugging_face,
    make_ours,
)
from interleaved import Contestant, Worker, describe_machine
from quality import PRECISIONS, measure_quality
from tqdm import tqdm

from transformer_lib.files import write_text
from transformer_lib.model.config import TransformerConfig

RESULTS = (
    Path(__file__).parents[1] / "transformer_book/experiments/results/decode_speed.json"
)
OURS, PEER = "transformer_lib", "Hugging Face Marian"
CONFIGS = {
    name: TransformerConfig(
        src_vocab_size=8000,
        tgt_vocab_size=8000,
        d_model=d_model,
        d_ff=d_ff,
        n_encoder_layers=n_layers,
        n_decoder_layers=n_layers,
        max_len=1100,
    )
    for name, d_model, d_ff, n_layers in (
        ("small", 256, 512, 3),
        ("base", 512, 2048, 6),
    )
}
RECOMPUTE = f"{PEER}, no cache"
SLOW_ROUNDS = 1  # of the one who recomputes
LEAST_ROUNDS = 3  # of all others, where targets are short
CHECKED = 6  # tokens that have to be equal before anything is measured
BITS = PRECISIONS[1:]


def contestants(n_threads: int) -> dict[str, Contestant]:
    """Return all that take part."""
    found = {
        OURS: Contestant(make_ours, {}),
        PEER: Contestant(make_hugging_face, {"use_cache": True}),
        RECOMPUTE: Contestant(make_hugging_face, {"use_cache": False}),
    }
    if has_ctranslate2():
        arguments = {"n_threads": n_threads}
        found["CTranslate2"] = Contestant(make_ctranslate2, arguments)
        arguments = {"n_threads": n_threads, "precision": "int8"}
        found["CTranslate2, int8"] = Contestant(make_ctranslate2, arguments)
    else:
        sys.stdout.write("CTranslate2 is not installed: it is left out\n")
    return found | {
        f"{OURS}, {bits}": Contestant(make_ours, {"precision": bits}) for bits in BITS
    }


def settings(quick: bool) -> Iterator[tuple[str, Setting]]:
    """Yield what is measured, the quick ones first."""
    lengths = (8, 12) if quick else (64, 256)
    sizes = product(CONFIGS, (1, 4 if quick else 32), lengths, (1, 4))
    for name, batch, n_tokens, n_beams in sizes:
        yield name, Setting(CONFIGS[name], batch, n_beams, n_tokens)
    if not quick:  # how the time of a token grows with its place
        yield "small", Setting(CONFIGS["small"], 1, 1, 1024)


def takes_part(name: str, setting: Setting) -> bool:
    """Leave out what would take minutes: recomputing much, and few bits at length."""
    if name == RECOMPUTE:
        return setting.batch * setting.n_beams * setting.n_tokens <= 256
    if name.endswith(BITS):
        return setting.n_tokens <= 64
    return setting.n_tokens <= 256 or name == OURS


def measure(
    workers: Mapping[str, Worker], setting: Setting, n_rounds: int, seconds: float
) -> Iterator[dict[str, Any]]:
    """Let all decode one setting, in turns.

    Args:
        workers: by name.
        setting: what is decoded.
        n_rounds: times that each is measured, at most.
        seconds: after which no other round begins, but for the least that are needed.

    Yields:
        For each the medians of its times and of their ratios to ours, and the share of
        targets that are the same as ours.

    Raises:
        RuntimeError: first tokens differ in float32.
    """
    short = setting._replace(n_tokens=min(CHECKED, setting.n_tokens))
    firsts = {name: worker.turn(short)[1] for name, worker in workers.items()}
    for name, first in firsts.items():
        if first != firsts[OURS] and not name.endswith(BITS):
            raise RuntimeError(f"{name} writes {first}, but {OURS} {firsts[OURS]}")
    times: dict[str, list[float]] = {name: [] for name in workers}
    results: dict[str, list[list[int]]] = {}
    begun = time.perf_counter()
    least = min(n_rounds, LEAST_ROUNDS if setting.n_tokens <= 64 else 1)
    while len(times[OURS]) < least or (
        len(times[OURS]) < n_rounds and time.perf_counter() < begun + seconds
    ):
        for name, worker in workers.items():
            if name == RECOMPUTE and len(times[name]) == SLOW_ROUNDS:
                continue
            taken, results[name] = worker.turn(setting)
            times[name].append(taken)
    for name, taken in times.items():
        pairs = zip(results[name], results[OURS], strict=True)
        median = statistics.median(taken)
        # Only times of the same round suffered from the same disturbances.
        ratios = [
            theirs / ours for theirs, ours in zip(taken, times[OURS], strict=False)
        ]
        yield {
            "library": name,
            "ms_per_token": round(1000 * median / setting.n_tokens, 4),
            "ours_is": round(statistics.median(ratios), 2),
            "equal": round(sum(a == b for a, b in pairs) / setting.batch, 3),
            "n_rounds": len(taken),
        }


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure everything.

    Returns:
        What the tables show, and what it was measured on.
    """
    torch.set_num_threads(options.threads)
    machine = {name: measure_machine(config) for name, config in CONFIGS.items()}
    rows = []
    with ExitStack() as stack:
        workers = {
            name: stack.enter_context(Worker(contestant, options.threads))
            for name, contestant in contestants(options.threads).items()
        }
        for name, setting in tqdm([*settings(options.quick)], unit="setting"):
            invited = {who: workers[who] for who in workers if takes_part(who, setting)}
            common = {
                "model": name,
                "batch": setting.batch,
                "n_beams": setting.n_beams,
                "n_tokens": setting.n_tokens,
                "bound_ms": round(lower_bound(setting, machine[name]), 4),
            }
            found = measure(invited, setting, options.rounds, options.seconds)
            rows += [common | row for row in found]
    return {
        "machine": describe_machine(options.threads),
        "measured": machine,
        "configs": {name: asdict(config) for name, config in CONFIGS.items()},
        "rows": rows,
        "quality": measure_quality(16 if options.quick else None),
    }


def table(result: Mapping[str, Any]) -> str:
    """Put the result into lines of text."""
    lines = [
        "model batch beams tokens  library                        ms/token  ours is"
    ]
    keys = ("model", "batch", "n_beams", "n_tokens")
    last = None
    for row in result["rows"]:
        setting = tuple(row[key] for key in keys)
        label = "{:5} {:5} {:5} {:6}  ".format(*setting)
        if setting != last:
            lines.append(f"{label}{'lower bound':29} {row['bound_ms']:9.3f}")
        ratio = f"{row['ours_is']:6.2f} x"
        lines.append(f"{label}{row['library']:29} {row['ms_per_token']:9.3f} {ratio}")
        last = setting
    for row in result["quality"]:
        lines.append(f"{row['model']:20} {row['precision']:9} BLEU {row['bleu']:.2f}")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, measure, store and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="short targets, few rounds"
    )
    parser.add_argument(
        "--rounds", type=int, default=15, help="at most, of each setting"
    )
    parser.add_argument("--seconds", type=float, default=15, help="for each setting")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds = 2
    result = run(options)
    write_text(options.out, json.dumps(result, indent=1) + "\n")
    sys.stdout.write(table(result))


if __name__ == "__main__":
    main()
