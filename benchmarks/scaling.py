"""Train language models of four sizes on four lengths: `python benchmarks/scaling.py`.

The results go to `transformer_book/experiments/results/scaling.json`, from which
chapter 18 draws its curve. The argument names a folder with the files of Multi30k;
without it, they are downloaded. The file is written anew after each run, and a command
that was interrupted resumes where it stopped. Five minutes on one core.
"""

import sys
import time
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from tqdm import tqdm
from turns import processor

from transformer_book.experiments import scaling
from transformer_book.experiments.ablations import (
    RESULTS,
    read_results,
    write_results,
)


@dataclass(frozen=True)
class Run:
    """What one run is asked for."""

    width: int
    asked: int
    passes: int
    dropout: float
    seed: int


def plan() -> list[Run]:
    """Return all runs for each seed: sizes and lengths, equal compute, dropout."""
    sizes = [(*pair, 1, 0.0) for pair in product(scaling.WIDTHS, scaling.N_TOKENS)]
    sizes += [
        (width, scaling.tokens_at_equal_compute(width), 1, 0.0)
        for width in scaling.WIDTHS
    ]
    again = (scaling.PASSES_WIDTH, scaling.PASSES_TOKENS)
    asked = dict.fromkeys([*sizes, *((*again, *pair) for pair in scaling.PASSES)])
    return [Run(*choice, seed) for seed, choice in product(scaling.SEEDS, asked)]


def main() -> None:
    """Make the runs that are missing."""
    torch.set_num_threads(1)
    texts = scaling.read_texts(*sys.argv[1:])
    path = RESULTS / "scaling.json"
    record: dict[str, Any] = (
        read_results("scaling")
        if path.is_file()
        else {"machine": f"{processor()}, torch {torch.__version__}", "runs": []}
    )
    done = {
        Run(*(entry[name] for name in Run.__dataclass_fields__))
        for entry in record["runs"]
    }
    for asked in tqdm(plan(), unit="run"):
        if asked not in done:
            busy = time.process_time()
            found = scaling.run(
                asked.width, asked.asked, asked.seed, texts, asked.passes, asked.dropout
            )
            busy = round(time.process_time() - busy, 1)
            record["runs"].append({**vars(asked), **found, "cpu_seconds": busy})
            write_results(record, "scaling")


if __name__ == "__main__":
    main()
