"""Speed beside Hugging Face, with the engine and without: `python benchmarks/pairs.py`.

All decode each setting in turns, and three models take training steps in turns;
the tables show medians of the ratios of neighbors, so that they hold on a machine that
does other work as well. Above 1.00 is faster than Hugging Face's Marian. "Compiled" is
the own modules again, but with `torch.compile` on what a step calls; its warm-up is the
time of the first search, in which it compiles.
"""

import argparse
import copy
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from itertools import product
from typing import Any

import torch
from decode import CONFIGS
from decoders import Setting, decode_ours, make_hugging_face, make_model, make_ours
from interleaved import Contestant, Worker
from train import MODELS, make_step

from transformer_lib.generation.incremental import Decoding, IncrementalDecoder
from transformer_lib.model.config import TransformerConfig


@cache
def compiled(config: TransformerConfig) -> Decoding:
    """Return a decoder on the model's own modules, with compiled steps."""
    model = copy.deepcopy(make_model(config))
    model.decode = torch.compile(model.decode, dynamic=True)
    return IncrementalDecoder(model)


def make_compiled() -> Callable[[Setting], Any]:
    """Return the library's decoding with compiled steps."""
    return partial(decode_ours, compiled)


DECODING = {
    "Hugging Face": Contestant(make_hugging_face, {"use_cache": True}),
    "engine": Contestant(make_ours, {}),
    "own modules": Contestant(make_ours, {"precision": "modules"}),
    "compiled": Contestant(make_compiled, {}),
}
TRAINING = {
    name: Contestant(make_step, {"library": name, "precision": "float32"})
    for name in reversed(MODELS)
}


def compare(
    workers: dict[str, Worker], n_rounds: int, *work: Setting
) -> tuple[list[float], list[float]]:
    """Let all work in turns.

    Returns:
        How many times as fast as the first each of the others is, and the seconds that
        each of these others took the first time.
    """
    first = [worker.turn(*work)[0] for worker in workers.values()]
    times = [[w.turn(*work)[0] for w in workers.values()] for _ in range(n_rounds)]
    others = range(1, len(workers))
    ratios = [statistics.median(row[0] / row[i] for row in times) for i in others]
    return ratios, first[1:]


def main() -> None:
    """Print a table of decoding and one of training."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64, help="of each target")
    options = parser.parse_args()

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    with ExitStack() as stack:

        def start(contestants: dict[str, Contestant]) -> dict[str, Worker]:
            return {
                name: stack.enter_context(Worker(who, options.threads))
                for name, who in contestants.items()
            }

        workers = start(DECODING)
        say("model  sentences  beams  engine  own modules  compiled  its warm-up")
        for name, batch, n_beams in product(CONFIGS, (1, 32), (1, 4)):
            setting = Setting(CONFIGS[name], batch, n_beams, options.tokens)
            found, first = compare(workers, options.rounds, setting)
            cells = "{:7.2f} {:12.2f} {:9.2f}".format(*found)
            say(f"{name:5} {batch:10} {n_beams:6} {cells} {first[-1]:10.1f} s")
        workers = start(TRAINING)
        names, (found, _) = [*workers][1:], compare(workers, options.rounds)
        for name, ratio in zip(names, found, strict=True):
            say(f"training, {name}: {ratio:.2f}")


if __name__ == "__main__":
    main()
