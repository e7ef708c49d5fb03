"""Train every variant of a study with several seeds: `python benchmarks/ablations.py`.

The argument names another study than the ablations of the paper's choices:

    modern         what the changes since 2017 buy, on generated sentences
    modern_faster  three of them at twice the learning rate
    halves         a decoder alone beside encoder and decoder
    lengths        positions, on sentences longer than any in training
    captions       seven of them twice as wide, on Multi30k; two minutes a run

The results go to `transformer_book/experiments/results/STUDY.json`, from which a
chapter draws its table and its picture. The file is written anew after each run; a
command that was interrupted resumes where it stopped. Half a minute a run on one core.
"""

import argparse
import sys
import time
from dataclasses import asdict
from itertools import product
from typing import Any

import torch
from tqdm import tqdm
from turns import processor

from transformer_book.experiments.ablations import (
    RESULTS,
    read_results,
    run,
    write_results,
)
from transformer_book.experiments.modern import STUDIES, Study
from transformer_lib.fast import keep_freed_memory
from transformer_lib.runs.recipe import read_recipe
from transformer_lib.runs.translation import Data, prepare

N_THREADS = 1


def begin(name: str, study: Study) -> dict[str, Any]:
    """Return what was recorded so far, or an empty record."""
    versions = f"{N_THREADS} thread(s), torch {torch.__version__}"
    new = {
        "plan": asdict(study.plan),
        "machine": f"{processor()}, {versions}",
        "runs": [],
    }
    path = RESULTS / f"{name}.json"
    old = read_results(name) if path.is_file() else new
    if old["plan"] != new["plan"]:
        sys.exit(f"{path} holds runs of another plan: move it away to begin anew")
    return old


def measure(study: Study, name: str, seed: int, data: Data) -> dict[str, Any]:
    """Make one run; the numbers are rounded to what can mean something."""
    wall, busy = time.perf_counter(), time.process_time()
    found = run(study.variants[name], data, seed, study.plan)
    if not study.wrong:
        del found["wrong"]
    for score in ("exact", "bleu", "chrf", "valid_nats"):
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
    parser = argparse.ArgumentParser(description="Train every variant of a study.")
    parser.add_argument("study", nargs="?", default="ablations", choices=STUDIES)
    name = parser.parse_args().study
    study = STUDIES[name]
    torch.set_num_threads(N_THREADS)
    keep_freed_memory()
    data, record = prepare(read_recipe(study.recipe, **study.data)), begin(name, study)
    done = {(entry["seed"], entry["variant"]) for entry in record["runs"]}
    for seed, variant in tqdm([*product(study.seeds, study.variants)], unit="run"):
        if (seed, variant) not in done:
            record["runs"].append(measure(study, variant, seed, data))
            write_results(record, name)


if __name__ == "__main__":
    main()
