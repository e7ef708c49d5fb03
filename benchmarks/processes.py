"""What a second process is worth in training: `python benchmarks/processes.py`.

One process takes both batches of a step, one after the other; two take one each, add up
their gradients and take the step together. Each process has one thread. Both ways take
turns; stored are the seconds of every step, and those of adding up alone.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from turns import compare, store, take_turns, working

from transformer_lib.data.batches import Batch, make_batch
from transformer_lib.fast import batch_loss, fast_training, keep_freed_memory
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer, count_parameters
from transformer_lib.training.loop import train_step
from transformer_lib.training.processes import Processes, processes
from transformer_lib.training.schedule import make_optimizer, set_learning_rate

VOCAB = 8000
SIZES = {  # width, hidden width, layers of encoder and decoder
    "tiny": (128, 512, 2),
    "small": (256, 1024, 3),
    "base": (512, 2048, 6),
}
STEP, SUM = range(2)  # what the first process lets all of them do
N_BATCHES = 2
Task = Callable[[int], None]


def config_of(size: str) -> TransformerConfig:
    """Describe a model."""
    width, hidden, layers = SIZES[size]
    return TransformerConfig(
        src_vocab_size=VOCAB,
        tgt_vocab_size=VOCAB,
        d_model=width,
        d_ff=hidden,
        n_encoder_layers=layers,
        n_decoder_layers=layers,
    )


def draw_batch(seed: int, n_pairs: int = 64) -> Batch:
    """Draw pairs of 20 to 30 tokens, as in the news that the paper learned from."""
    torch.manual_seed(seed)
    lengths = torch.randint(20, 31, (n_pairs, 2)).tolist()
    pairs = [
        tuple(torch.randint(4, VOCAB, (length,)).tolist() for length in both)
        for both in lengths
    ]
    return make_batch(pairs, bos_id=1, pad_id=0)


def make_task(size: str, world: Processes) -> Task:
    """Return what every process does when it is told to: a step, or adding up alone."""
    torch.set_num_threads(1)
    keep_freed_memory()
    torch.manual_seed(0)
    model = Transformer(config_of(size)).train()
    fast_training(model).__enter__()  # for good
    optimizer = make_optimizer(model)
    set_learning_rate(optimizer, 1e-4)
    batches = [draw_batch(seed) for seed in range(N_BATCHES)]
    mine = batches[world.rank :: world.size]
    together = world if world.size > 1 else None

    def task(what: int) -> None:
        if what == STEP:
            train_step(model, optimizer, batch_loss, mine, processes=together)
        elif together:
            together.add_gradients(model, 0.0)

    task(STEP)  # there are gradients to add up from now on
    return task


def follow(size: str) -> None:
    """Do what the first process says, as any other process, until it ends."""
    with suppress(ConnectionError), processes() as world:
        task = make_task(size, world)
        while True:
            task(world.sum(0))
    os._exit(0)  # nothing is left to close: the connections are broken


def lead(size: str, n: int) -> Task:
    """Start so many processes, of which this is the first; return what it can do."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(n),
        "LOCAL_WORLD_SIZE": str(n),
    }
    for rank in range(1, n):
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        command = [sys.executable, __file__, "--follow", size]
        subprocess.Popen(command, env={**os.environ, **shared, **own})
    if n > 1:
        os.environ.update(shared, RANK="0", LOCAL_RANK="0")
    world = processes().__enter__()  # ends with this process
    task = make_task(size, world)

    def work(what: int) -> None:
        world.sum(what)
        task(what)

    return work


def rounded(seconds: list[float]) -> list[float]:
    """Leave out what no clock here knows."""
    return [round(each, 5) for each in seconds]


def measure(size: str, n_rounds: int) -> dict[str, Any]:
    """Measure a model with one process and with two."""
    contestants = {n: partial(lead, size, n) for n in (1, 2)}
    with working(contestants, n_threads=1) as turns:
        take_turns(turns, 1, STEP)  # to warm up
        steps = take_turns(turns, n_rounds, STEP)
        [adding] = take_turns({2: turns[2]}, n_rounds, SUM).values()
    batches = [draw_batch(seed) for seed in range(N_BATCHES)]
    return {
        "size": size,
        "config": asdict(config_of(size)),
        "n_parameters": count_parameters(Transformer(config_of(size))),
        "n_tokens": sum(batch.n_tokens for batch in batches),
        "seconds": {str(n): rounded(taken) for n, taken in steps.items()},
        "adding_up": rounded(adding),
    }


def main() -> None:
    """Read the command line, measure, store and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--follow", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.follow:
        follow(options.follow)
        return
    rows = [measure(size, options.rounds) for size in SIZES]
    store("processes.json", 1, {"rows": rows})
    for row in rows:
        seconds = row["seconds"]
        rates = [row["n_tokens"] / statistics.median(seconds[n]) for n in "12"]
        sys.stdout.write(
            f"{row['size']:6} {row['n_parameters'] / 1e6:5.1f} million: "
            f"{rates[0]:7,.0f} and {rates[1]:7,.0f} tokens/s, "
            f"{compare(seconds['1'], seconds['2'])}, adding up "
            f"{1000 * statistics.median(row['adding_up']):.0f} ms\n"
        )


if __name__ == "__main__":
    main()
