"""Training speed against other libraries: `python benchmarks/train.py`.

One step is: scores, smoothed loss, gradients, their norm cut, Adam. All take it on the
same batch, in turns, with dropout where the paper has it. The table gives target tokens
per second and how many times those of each peer we reach.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from interleaved import Contestant, describe_machine, medians
from peers import Marian, TorchTransformer
from torch import nn

from transformer_fast.training import for_training
from transformer_lib.data.batches import Batch, make_batch
from transformer_lib.files import write_text
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.loss import batch_loss
from transformer_lib.training.schedule import make_optimizer, set_learning_rate

RESULTS = (
    Path(__file__).parents[1] / "transformer_book/experiments/results/train_speed.json"
)
MODELS = {
    "transformer_lib": Transformer,
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


def make_step(library: str, precision: str) -> Callable[[], None]:
    """Return a function that takes one training step."""
    model, batch = MODELS[library](CONFIG).train(), draw_batch()
    if library == "transformer_lib":
        for_training(model, getattr(torch, precision))
    optimizer = make_optimizer(model)
    set_learning_rate(optimizer, 1e-4)
    loss_of = _our_loss if library == "transformer_lib" else _their_loss

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            loss = loss_of(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()

    return step


def _our_loss(model: nn.Module, batch: Batch) -> torch.Tensor:
    return batch_loss(model, batch, SMOOTHING) / batch.n_tokens


def _their_loss(model: nn.Module, batch: Batch) -> torch.Tensor:
    return F.cross_entropy(
        model(batch.src, batch.tgt_in).flatten(0, 1),
        batch.tgt_out.flatten(),
        ignore_index=CONFIG.pad_id,
        label_smoothing=SMOOTHING,
    )


def measure(n_rounds: int, n_threads: int) -> dict[str, Any]:
    """Measure all libraries, precisions and settings in one run of many turns.

    Returns:
        The rows of the table, and what they were measured on.
    """
    contestants = {
        (library, precision, keeps): Contestant(
            make_step, {"library": library, "precision": precision}, keeps
        )
        for library, precision, keeps in product(
            MODELS, ("float32", "bfloat16"), (False, True)
        )
        if keeps or library != "transformer_lib"  # ours always keeps its memory
    }
    seconds = medians(contestants, n_rounds, n_threads)
    n_tokens = draw_batch().n_tokens
    rows = [
        {
            "library": library,
            "precision": precision,
            "keeps_memory": keeps,
            "tokens_per_second": round(n_tokens / found),
            "ours_is": round(found / seconds["transformer_lib", precision, True], 2),
        }
        for (library, precision, keeps), found in seconds.items()
    ]
    return {
        "machine": describe_machine(n_threads),
        "config": asdict(CONFIG),
        "n_tokens": n_tokens,
        "n_rounds": n_rounds,
        "rows": rows,
    }


def table(result: dict[str, Any]) -> str:
    """Put the result into lines of text."""
    lines = [f"{'library':20} {'precision':9} keeps memory  tokens/s  ours is"]
    for row in result["rows"]:
        lines.append(
            f"{row['library']:20} {row['precision']:9} "
            f"{'yes' if row['keeps_memory'] else 'as shipped':12} "
            f"{row['tokens_per_second']:9,}  {row['ours_is']:.2f} x"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, measure, store and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    result = measure(options.rounds, options.threads)
    write_text(options.out, json.dumps(result, indent=1) + "\n")
    sys.stdout.write(table(result))


if __name__ == "__main__":
    main()
