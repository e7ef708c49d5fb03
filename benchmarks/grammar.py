"""Measure what choices do to chapter 10's run, with several seeds each.

    python benchmarks/grammar.py [--steps N]

Every run trains chapter 10's model on the generated sentences, for as many steps as the
chapter does. A seed gives the first weights and the order of the batches. The results
go to `transformer_book/experiments/results/grammar.json`; chapters 9 and 10 quote them.
"""

from __future__ import annotations

import argparse
import copy
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from transformer_book.experiments.ablations import write_results
from transformer_lib import Transformer, TransformerConfig, Translator
from transformer_lib.data import Steps, Tokenizer, corpora, token_batches
from transformer_lib.data.batches import Batch, batch_plan, make_batch
from transformer_lib.evaluation import nats_per_token
from transformer_lib.model import causal_mask, padding_mask
from transformer_lib.training import batch_loss, make_optimizer, shift_right
from transformer_lib.training.loop import Trainer
from transformer_lib.training.loss import label_smoothed_loss
from transformer_lib.training.schedule import learning_rate
from transformer_lib.weights import average_tensors

WARMUP, SCALE, EVERY, AVERAGED = 100, 0.35, 25, 8
OWN_SHARE = 0.25  # of the tokens that the decoder reads, with scheduled sampling
RUNS = {  # variant -> seeds
    "plain": range(5),
    "causal encoder": range(3),
    "scheduled sampling": range(3),
    "short to long": range(3),
}


class CausalEncoder(Transformer):
    """A model whose encoder hides from each source position what comes after it."""

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Read the source, each position what stands before it."""
        mask = padding_mask(src, self.config.pad_id) & causal_mask(src.size(1))
        return super().encode(src, mask)


def mix(model: Transformer, batch: Batch, share: float) -> Tensor:
    """Return tgt_in with a share of its tokens replaced by the model's own choices."""
    with torch.no_grad():
        chosen = model(batch.src, batch.tgt_in).argmax(dim=-1)
    # What position i predicts is read at position i + 1.
    own = shift_right(chosen, batch.tgt_in[0, 0].item())
    real = batch.tgt_in != model.config.pad_id
    swap = (torch.rand(own.shape) < share) & real
    return own.where(swap, batch.tgt_in)


def sampled_loss(
    model: Transformer, batch: Batch, share: Callable[[], float]
) -> Tensor:
    """Return the loss of a second pass, which reads some choices of the first."""
    logits = model(batch.src, mix(model, batch, share()))
    return label_smoothed_loss(logits, batch.tgt_out, model.config.pad_id, 0.0)


def by_length(
    pairs: Sequence[tuple[list[int], list[int]]], seed: int, ids: dict[str, int]
) -> Iterator[list[Batch]]:
    """Give the batches of every epoch from short to long, instead of shuffled."""
    lengths = [(len(src), len(tgt)) for src, tgt in pairs]
    for epoch in count():
        plan = batch_plan(lengths, 1000, seed=seed, epoch=epoch)
        for rows in sorted(plan, key=lambda rows: max(max(lengths[r]) for r in rows)):
            yield [make_batch([pairs[row] for row in rows], **ids)]


def nats_of_each(
    model: Transformer, batches: Sequence[Batch]
) -> list[tuple[int, float]]:
    """Return each real target token with its loss."""
    found = []
    with torch.inference_mode():
        for batch in batches:
            logits = model(batch.src, batch.tgt_in)
            nats = F.cross_entropy(logits.mT, batch.tgt_out, reduction="none")
            real = batch.tgt_out != model.config.pad_id
            found += zip(batch.tgt_out[real].tolist(), nats[real].tolist(), strict=True)
    return found


def run(case: tuple[str, int], n_steps: int) -> dict[str, Any]:
    """Train one variant from one seed, and measure it."""
    variant, seed = case
    torch.set_num_threads(1)
    corpus = corpora.load("grammar").reversed()
    tokenizer = Tokenizer.from_words([text for pair in corpus.train for text in pair])
    ids = {"bos_id": tokenizer.bos_id, "pad_id": tokenizer.pad_id}

    def encode(
        pairs: Sequence[tuple[str, str]],
    ) -> list[tuple[list[int], list[int]]]:
        return [(tokenizer.encode(src), tokenizer.encode(tgt)) for src, tgt in pairs]

    config = TransformerConfig(
        src_vocab_size=len(tokenizer),
        tgt_vocab_size=len(tokenizer),
        d_model=128,
        n_heads=4,
        d_ff=256,
        n_encoder_layers=2,
        n_decoder_layers=2,
        max_len=64,
        dropout=0.0,
        norm_first=True,
    )
    pairs = encode(corpus.train)
    valid = list(token_batches(encode(corpus.valid), 4000, **ids))
    torch.manual_seed(seed)
    model = (CausalEncoder if variant == "causal encoder" else Transformer)(config)
    optimizer = make_optimizer(model)
    trainer = Trainer(
        model,
        optimizer,
        partial(batch_loss, smoothing=0.0),
        lambda step: learning_rate(step, config.d_model, WARMUP, SCALE),
    )
    if variant == "scheduled sampling":  # rises in a line over the first half
        half = n_steps / 2
        trainer.loss = partial(
            sampled_loss, share=lambda: OWN_SHARE * min(1, trainer.n_steps / half)
        )
    steps = (
        by_length(pairs, seed + 1, ids)
        if variant == "short to long"
        else Steps(pairs, 1000, 1, seed=seed + 1, **ids).starting_at(1)
    )
    kept, losses = [], []
    for step, loss in enumerate(trainer.run(islice(steps, n_steps)), start=1):
        losses.append(loss)
        if step % EVERY == 0:
            kept.append(copy.deepcopy(model.state_dict()))
    model.eval()

    def right() -> list[bool]:
        written = Translator(model, tokenizer).translate(
            [src for src, _ in corpus.test]
        )
        return [a == b for a, (_, b) in zip(written, corpus.test, strict=True)]

    last, each = right(), nats_of_each(model, valid)
    names = {
        tokenizer.encode(word)[0]: word for word in ("she", "they", "he", "I", "we")
    }
    words: dict[str, list[float]] = {}
    for token, nats in each:
        if token in names:
            words.setdefault(names[token], []).append(nats)
    result = {
        "variant": variant,
        "seed": seed,
        "nats": round(nats_per_token(model, valid), 4),
        "right": sum(last),
        "of": len(last),
        "words": {w: round(sum(x) / len(x), 4) for w, x in sorted(words.items())},
        "training": [
            round(sum(losses[i : i + EVERY]) / EVERY, 3)
            for i in range(0, n_steps, EVERY)
        ],
    }
    if variant == "plain":
        model.load_state_dict(average_tensors(kept[-AVERAGED:]))
        mean = right()
        result["mean right"] = sum(mean)
        result["only mean"] = sum(a and not b for a, b in zip(mean, last, strict=True))
        result["only last"] = sum(b and not a for a, b in zip(mean, last, strict=True))
        result["mean nats"] = round(nats_per_token(model, valid), 4)
    return result


def main() -> None:
    """Run everything, two at a time, and store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    cases = [(variant, seed) for variant, seeds in RUNS.items() for seed in seeds]
    one = partial(run, n_steps=options.steps)
    with multiprocessing.Pool(2) as pool:
        found = [*tqdm(pool.imap(one, cases), total=len(cases), unit="run")]
    write_results({"steps": options.steps, "runs": found}, "grammar")


if __name__ == "__main__":
    main()
