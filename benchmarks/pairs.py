"""Speed beside Hugging Face, with the engine and without: `python benchmarks/pairs.py`.

The three decode each setting in turns, and three models take training steps in turns;
the tables show medians of the ratios of neighbors, so that they hold on a machine that
does other work as well. Above 1.00 is faster than Hugging Face's Marian.
"""

import argparse
import statistics
import sys
from contextlib import ExitStack
from itertools import product

from decode import CONFIGS
from decoders import Setting, make_hugging_face, make_ours
from interleaved import Contestant, Worker
from train import MODELS, make_step

DECODING = {
    "Hugging Face": Contestant(make_hugging_face, {"use_cache": True}),
    "engine": Contestant(make_ours, {}),
    "own modules": Contestant(make_ours, {"precision": "modules"}),
}
TRAINING = {
    name: Contestant(make_step, {"library": name, "precision": "float32"})
    for name in reversed(MODELS)
}


def ratios(workers: dict[str, Worker], n_rounds: int, *work: Setting) -> list[float]:
    """Return how many times as fast as the first each of the others is."""
    for worker in workers.values():
        worker.turn(*work)
    times = [[w.turn(*work)[0] for w in workers.values()] for _ in range(n_rounds)]
    return [
        statistics.median(row[0] / row[i] for row in times)
        for i in range(1, len(workers))
    ]


def main() -> None:
    """Print a table of decoding and one of training."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with ExitStack() as stack:

        def start(contestants: dict[str, Contestant]) -> dict[str, Worker]:
            return {
                name: stack.enter_context(Worker(who, options.threads))
                for name, who in contestants.items()
            }

        workers = start(DECODING)
        sys.stdout.write("model  sentences  beams  engine  own modules\n")
        for name, batch, n_beams in product(CONFIGS, (1, 32), (1, 4)):
            setting = Setting(CONFIGS[name], batch, n_beams, 64)
            found = ratios(workers, options.rounds, setting)
            line = f"{name:5} {batch:10} {n_beams:6} {found[0]:7.2f} {found[1]:12.2f}\n"
            sys.stdout.write(line)
            sys.stdout.flush()
        workers = start(TRAINING)
        names, found = [*workers][1:], ratios(workers, options.rounds)
        for name, ratio in zip(names, found, strict=True):
            sys.stdout.write(f"training, {name}: {ratio:.2f}\n")


if __name__ == "__main__":
    main()
