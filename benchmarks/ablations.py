"""Run every ablation with several seeds: `python benchmarks/ablations.py`.

The results go to `transformer_book/experiments/results/ablations.json`, from which a
chapter draws its table and its picture. The file is written anew after each run; a
command that was interrupted resumes where it stopped. Half a minute a run on one core.
"""

import sys
import time
from dataclasses import asdict, replace
from itertools import product
from typing import Any

import torch
from tqdm import tqdm
from turns import processor

from transformer_book.experiments.ablations import (
    RESULTS,
    SIZES,
    VARIANTS,
    Plan,
    read_results,
    run,
    write_results,
)
from transformer_lib.acceleration import keep_freed_memory
from transformer_lib.runs.recipe import read_recipe
from transformer_lib.runs.translation import Data, prepare

SEEDS, N_THREADS = (1, 2, 3), 1


def begin() -> dict[str, Any]:
    """Return what was recorded so far, or an empty record."""
    versions = f"{N_THREADS} thread(s), torch {torch.__version__}"
    new = {
        "plan": asdict(Plan()),
        "sizes": SIZES,
        "machine": f"{processor()}, {versions}",
        "runs": [],
    }
    old = read_results() if RESULTS.is_file() else new
    if any(old[key] != new[key] for key in ("plan", "sizes")):
        sys.exit(f"{RESULTS} holds runs of another plan: move it away to begin anew")
    return old


def measure(name: str, seed: int, data: Data) -> dict[str, Any]:
    """Make one run; the numbers are rounded to what can mean something."""
    wall, busy = time.perf_counter(), time.process_time()
    found = run(VARIANTS[name], data, seed)
    for score in ("exact", "chrf", "valid_nats"):
        found[score] = round(found[score], 4)
    return {
        "variant": name,
        "seed": seed,
        **found,
        "seconds": round(time.perf_counter() - wall, 1),
        "cpu_seconds": round(time.process_time() - busy, 1),
    }


def main() -> None:
    """Make the runs that are missing: every variant, then again with the next seed."""
    torch.set_num_threads(N_THREADS)
    keep_freed_memory()
    recipe = read_recipe("grammar")  # from English to German, unlike the shipped model
    data = prepare(replace(recipe, data=replace(recipe.data, reverse=False)))
    record = begin()
    done = {(entry["seed"], entry["variant"]) for entry in record["runs"]}
    for seed, name in tqdm([*product(SEEDS, VARIANTS)], unit="run"):
        if (seed, name) not in done:
            record["runs"].append(measure(name, seed, data))
            write_results(record)


if __name__ == "__main__":
    main()
