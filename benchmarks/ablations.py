"""Run every ablation with several seeds: `python benchmarks/ablations.py`.

The results go to `transformer_book/experiments/results/ablations.json`, from which a
chapter draws its table and its picture. The file is written anew after each run; a
command that was interrupted resumes where it stopped. Half a minute a run on one core.
"""

import argparse
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from transformer_book.experiments.ablation_runs import (
    RESULTS,
    read_results,
    run,
    write_results,
)
from transformer_book.experiments.ablations import SIZES, VARIANTS, Plan, Variant
from transformer_fast.allocator import keep_freed_memory
from transformer_lib.runs.recipe import Recipe, read_recipe
from transformer_lib.runs.translation import prepare

CPUINFO = Path("/proc/cpuinfo")


def begin(path: Path, plan: Plan) -> dict[str, Any]:
    """Return what the file holds, or an empty record for this plan.

    Raises:
        ValueError: the file holds runs of another plan or of other sizes.
    """
    new = {
        "plan": asdict(plan),
        "sizes": SIZES,
        "machine": describe_machine(),
        "runs": [],
    }
    if not path.is_file():
        return new
    old = read_results(path)
    for key in ("plan", "sizes"):
        if old[key] != new[key]:
            raise ValueError(
                f"{path} was recorded with {key} {old[key]}, not {new[key]}: move it "
                "away to begin anew"
            )
    return old


def recipe() -> Recipe:
    """Return the recipe of the record: English to German."""
    shipped = read_recipe("grammar")
    return replace(shipped, data=replace(shipped.data, reverse=False))


def missing(runs: Sequence[dict[str, Any]], n_seeds: int) -> Iterator[tuple]:
    """Yield (seed, variant) of all runs still to be made: every variant, then again."""
    done = {(entry["seed"], entry["variant"]) for entry in runs}
    for seed, variant in product(range(1, n_seeds + 1), VARIANTS):
        if (seed, variant.name) not in done:
            yield seed, variant


def describe_machine() -> str:
    """Name the processor and the number of threads."""
    lines = CPUINFO.read_text().splitlines() if CPUINFO.is_file() else []
    names = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.machine()
    return f"{name}, {torch.get_num_threads()} thread(s), torch {torch.__version__}"


def measure(variant: Variant, seed: int, data: Any, plan: Plan) -> dict[str, Any]:
    """Make one run; the numbers are rounded to what can mean something."""
    wall, busy = time.perf_counter(), time.process_time()
    found = run(variant, data, seed, plan)
    for name in ("exact", "chrf", "valid_nats"):
        found[name] = round(found[name], 4)
    return {
        "variant": variant.name,
        "seed": seed,
        **found,
        "seconds": round(time.perf_counter() - wall, 1),
        "cpu_seconds": round(time.process_time() - busy, 1),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and make the runs that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    plan = Plan()
    try:
        record = begin(options.out, plan)
    except ValueError as error:
        sys.exit(f"error: {error}")
    todo = list(missing(record["runs"], options.seeds))
    data = prepare(recipe()) if todo else None
    for seed, variant in tqdm(todo, unit="run", disable=not sys.stderr.isatty()):
        record["runs"].append(measure(variant, seed, data, plan))
        write_results(record, options.out)
    sys.stdout.write(f"{options.out}: {len(record['runs'])} runs, {len(todo)} new\n")


if __name__ == "__main__":
    main()
