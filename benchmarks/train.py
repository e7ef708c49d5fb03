"""Training speed against other libraries: `python benchmarks/train.py`.

One step is: scores, smoothed loss, gradients, their norm cut, Adam. All take it on the
same batch, in turns, with dropout where the paper has it. Stored are the seconds of
every step; printed are the target tokens per second in the median, and how many times
as long as we each peer takes.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from peers import Marian, TorchTransformer
from torch import Tensor, nn
from turns import compare, store, take_turns, working

from transformer_lib.data.batches import Batch, make_batch
from transformer_lib.fast import batch_loss, fast_training, keep_freed_memory
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.schedule import make_optimizer, set_learning_rate

OURS = "transformer_lib"
MODELS = {
    OURS: Transformer,
    "nn.Transformer": TorchTransformer,
    "Hugging Face Marian": Marian,
}
CONFIG = TransformerConfig(
    src_vocab_size=8000,
    tgt_vocab_size=8000,
    d_model=256,
    n_heads=8,
    d_ff=512,
    n_encoder_layers=3,
    n_decoder_layers=3,
    dropout=0.1,
)
SMOOTHING, MAX_NORM = 0.1, 1.0


def draw_batch(n_pairs: int = 300) -> Batch:
    """Draw pairs of 10 to 17 tokens, about as long as captions of pictures."""
    torch.manual_seed(0)
    lengths = torch.randint(10, 18, (n_pairs, 2)).tolist()
    pairs = [
        tuple(torch.randint(4, 8000, (length,)).tolist() for length in both)
        for both in lengths
    ]
    return make_batch(pairs, bos_id=1, pad_id=CONFIG.pad_id)


def make_step(
    library: str, precision: str, keeps_memory: bool = True
) -> Callable[[], None]:
    """Return a function that takes one training step."""
    if keeps_memory:
        keep_freed_memory()
    model, batch = MODELS[library](CONFIG).train(), draw_batch()
    if library == OURS:
        fast_training(model, getattr(torch, precision)).__enter__()  # for good
    optimizer = make_optimizer(model)
    set_learning_rate(optimizer, 1e-4)

    def loss_of_peers() -> Tensor:
        return F.cross_entropy(
            model(batch.src, batch.tgt_in).flatten(0, 1),
            batch.tgt_out.flatten(),
            ignore_index=CONFIG.pad_id,
            label_smoothing=SMOOTHING,
        )

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            if library == OURS:
                loss = batch_loss(model, batch, SMOOTHING) / batch.n_tokens
            else:
                loss = loss_of_peers()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()

    return step


def measure(n_rounds: int, n_threads: int) -> list[dict[str, Any]]:
    """Measure all libraries, precisions and settings: the seconds of every step."""
    contestants = {
        (library, precision, keeps): partial(make_step, library, precision, keeps)
        for library, precision, keeps in product(
            MODELS, ("float32", "bfloat16"), (False, True)
        )
        if keeps or library != OURS  # ours always keeps its memory
    }
    with working(contestants, n_threads) as turns:
        take_turns(turns, 2)  # to warm up
        times = take_turns(turns, n_rounds)
    return [
        {
            "library": library,
            "precision": precision,
            "keeps_memory": keeps,
            "seconds": [round(each, 5) for each in taken],
        }
        for (library, precision, keeps), taken in times.items()
    ]


def main() -> None:
    """Read the command line, measure, store and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    rows = measure(options.rounds, options.threads)
    n_tokens = draw_batch().n_tokens
    result = {"config": asdict(CONFIG), "n_tokens": n_tokens, "rows": rows}
    store("train_speed.json", options.threads, result)
    ours = {row["precision"]: row["seconds"] for row in rows if row["library"] == OURS}
    for row in rows:
        rate = n_tokens / statistics.median(row["seconds"])
        sys.stdout.write(
            f"{row['library']:20} {row['precision']:9} "
            f"{'keeps memory' if row['keeps_memory'] else 'as shipped':12} "
            f"{rate:9,.0f} tokens/s  "
            f"{compare(row['seconds'], ours[row['precision']])}\n"
        )


if __name__ == "__main__":
    main()
