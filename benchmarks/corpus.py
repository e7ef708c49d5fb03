"""What files of one's own cost before the first step: `python benchmarks/corpus.py`.

Two files are opened as a run opens them: at its first start, when they are tokenized
into one file of ids, and at its next, when this file is only mapped into memory; and
once as lists of ids, which is how the library keeps small corpora. Each is a process of
its own. Memory is its largest anonymous memory: pages of a mapped file don't count, as
all processes share them and the system can take them back. Seconds are those that it
computes, of all its threads together: other work on the machine changes these less.

The pairs are those of home-assistant, three in a line, with numbers that make each line
another one. By default this takes half an hour and 3 GB of disk.
"""

import argparse
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from turns import store

from transformer_lib.data.corpora import load
from transformer_lib.data.corpora.parallel import read_pairs
from transformer_lib.data.pairs_file import read_pairs_file
from transformer_lib.data.steps import Steps
from transformer_lib.runs.evaluate import encode_pairs
from transformer_lib.runs.recipe import Recipe, read_recipe
from transformer_lib.runs.translation import PAIRS, prepare

SIZES = 100_000, 400_000, 1_000_000, 4_000_000
MOST_IN_LISTS = 1_000_000  # pairs
PAUSE = 0.005  # seconds between two looks at the memory
STATUS = Path("/proc/self/status")


def write_files(folder: Path, n_pairs: int) -> Recipe:
    """Write two files of so many lines; return the recipe of a run on them."""
    pairs, paths = load("home-assistant").train, []
    for side, name in enumerate(("source", "target")):
        paths.append(folder / name)
        with paths[side].open("w", encoding="utf-8") as file:
            for line in range(n_pairs):
                three = (pairs[(line + n) % len(pairs)][side] for n in (0, 101, 211))
                file.write(f"{' '.join(three)} {line // 1000} {line % 1000}\n")
    source, target = map(str, paths)
    return read_recipe("home-assistant", corpus="", source=source, target=target)


def anonymous_memory() -> int:
    """Return the bytes of this process that belong to no file."""
    [line] = (x for x in STATUS.read_text().splitlines() if x.startswith("RssAnon"))
    return 1024 * int(line.split()[1])


@contextmanager
def costs() -> Iterator[dict[str, float]]:
    """Note what the block costs: the largest memory, and seconds of computing."""
    cost, ended = {"memory": 0}, threading.Event()

    def look() -> None:
        while not ended.wait(PAUSE):
            cost["memory"] = max(cost["memory"], anonymous_memory())

    thread, begun = threading.Thread(target=look), time.process_time()
    thread.start()
    try:
        yield cost
    finally:
        ended.set()
        thread.join()
    cost["seconds"] = round(time.process_time() - begun, 2)


def as_run(recipe: Recipe, folder: Path) -> dict[str, float]:
    """Open the files as a run in this folder does, and make the batches of a step."""
    with costs() as cost:
        next(prepare(recipe, folder).steps.starting_at(1))
    return cost


def as_lists(recipe: Recipe, folder: Path) -> dict[str, float]:
    """Do the same with all ids in lists, and with the tokenizer of the run."""
    data, training = recipe.data, recipe.training
    with costs() as cost:
        tokenizer = read_pairs_file(folder / PAIRS).tokenizer
        pairs = encode_pairs(
            tokenizer, read_pairs(Path(data.source), Path(data.target))
        )
        ids = {"bos_id": tokenizer.bos_id, "pad_id": tokenizer.pad_id}
        sizes = training.batch_tokens, training.gradient_accumulation
        next(Steps(pairs, *sizes, training.seed, **ids).starting_at(1))
    return cost


def measure(n_pairs: int) -> dict[str, Any]:
    """Measure a corpus of so many pairs."""

    def alone(work: Callable, arguments: tuple) -> dict[str, float]:
        with multiprocessing.get_context("spawn").Pool(1) as new_process:
            return new_process.apply(work, arguments)

    with TemporaryDirectory() as name:
        recipe, run = write_files(Path(name), n_pairs), Path(name) / "run"
        row = {"n_pairs": n_pairs}
        for start in "first start", "next start":
            row[start] = alone(as_run, (recipe, run))
        if n_pairs <= MOST_IN_LISTS:
            row["in lists"] = alone(as_lists, (recipe, run))
        row["n_tokens"] = int(read_pairs_file(run / PAIRS).pairs.lengths.sum())
        row["disk"] = (run / PAIRS).stat().st_size
    return row


def main() -> None:
    """Read the command line, measure, store and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=SIZES)
    sizes, rows = parser.parse_args().pairs, []
    for n_pairs in sizes:
        rows.append(measure(n_pairs))
        sys.stdout.write(f"{rows[-1]}\n")
    store("corpus.json", os.cpu_count(), {"rows": rows})


if __name__ == "__main__":
    main()
