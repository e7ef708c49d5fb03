"""Ablations: one choice of the paper undone at a time, and what it costs.

Every variant is the same small model, trained for as many steps on the same generated
sentences; only what its name says is different. `benchmarks/ablations.py` runs all of
them with several seeds and records what came out.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.data.steps import Steps
from transformer_lib.evaluation.scores import bleu, chrf, exact_match, nats_per_token
from transformer_lib.fast import batch_loss, fast_training
from transformer_lib.files import write_text
from transformer_lib.generation import RecomputingDecoder
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer, count_parameters
from transformer_lib.pretrained.translator import Translator
from transformer_lib.runs.translation import Data
from transformer_lib.training.loop import Trainer
from transformer_lib.training.schedule import learning_rate, make_optimizer
from transformer_lib.weights import average_tensors

RESULTS = Path(__file__).parent / "results"
SIZES = {
    "d_model": 64,
    "n_heads": 4,
    "d_ff": 256,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "max_len": 128,
    "dropout": 0.0,  # hardly a sentence is seen twice: there is nothing to overfit
}


@dataclass(frozen=True)
class Plan:
    """What all variants have in common.

    Attributes:
        steps: number of steps.
        max_tokens: positions of a batch, padding counted.
        warmup: steps until the learning rate peaks.
        rate_scale: factor on the paper's learning rate.
        average: how many copies of the weights are averaged in the end.
        every: steps from one copy to the next.
        n_test: test sentences that are translated, the first of the corpus.
        sizes: fields of TransformerConfig, unless a variant has its own.
    """

    steps: int = 500
    max_tokens: int = 600
    warmup: int = 100
    rate_scale: float = 0.5
    average: int = 5
    every: int = 10
    n_test: int = 500
    sizes: dict[str, Any] = field(default_factory=lambda: SIZES)


PLAN = Plan()


@dataclass(frozen=True)
class Variant:
    """A model and its training, described by what differs from the paper's choices.

    Attributes:
        model: fields of TransformerConfig.
        smoothing: of the labels.
        warm_up: False starts with the highest learning rate.
        change: done to the model before training; None for nothing.
        kind: makes the model.
        loss: of a batch, in nats, given the smoothing.
    """

    model: dict[str, Any] = field(default_factory=dict)
    smoothing: float = 0.1
    warm_up: bool = True
    change: Callable[[nn.Module], None] | None = None
    kind: Callable[[TransformerConfig], nn.Module] = Transformer
    loss: Callable[..., Tensor] = batch_loss


def without_scale(model: Transformer) -> None:
    """Leave out the division by sqrt(d_head)."""
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            part.kernel = partial(F.scaled_dot_product_attention, scale=1.0)


def with_small_embeddings(model: Transformer) -> None:
    """Draw the token vectors anew with standard deviation 1 / sqrt(d_model).

    That is what scaled embeddings start from. Without the scale, tokens are then
    much shorter than the position vectors that are added to them.
    """
    weight = model.src_embeddings.tokens.weight  # shared with the target side
    nn.init.normal_(weight, std=weight.size(1) ** -0.5)


def without_positions(
    model: Transformer, *, src: bool = True, tgt: bool = True
) -> None:
    """Replace the position vectors of one side, or of both, by zeros."""
    for side, gone in ((model.src_embeddings, src), (model.tgt_embeddings, tgt)):
        if gone:
            side.positions.register_forward_hook(
                lambda _, inputs, positions: torch.zeros_like(positions)
            )


PAPER = "the paper's choices"
VARIANTS = {
    PAPER: Variant(),
    "dot product not scaled": Variant(change=without_scale),
    "1 head, not scaled": Variant({"n_heads": 1}, change=without_scale),
    "no warm-up": Variant(warm_up=False),
    "pre-norm": Variant({"norm_first": True}),
    "pre-norm, no warm-up": Variant({"norm_first": True}, warm_up=False),
    "nothing tied": Variant({"tie_embeddings": "none"}),
    "only the decoder tied": Variant({"tie_embeddings": "decoder"}),
    "embeddings not scaled, start at 1": Variant({"scale_embeddings": False}),
    "embeddings not scaled, start small": Variant(
        {"scale_embeddings": False}, change=with_small_embeddings
    ),
    "no label smoothing": Variant(smoothing=0.0),
    "1 head": Variant({"n_heads": 1}),
    "2 heads": Variant({"n_heads": 2}),
    "8 heads": Variant({"n_heads": 8}),
    "positions learned": Variant({"learned_positions": True}),
    "no positions": Variant(change=without_positions),
    "no positions in the source": Variant(change=partial(without_positions, tgt=False)),
    "no positions in the target": Variant(change=partial(without_positions, src=False)),
}


def build(variant: Variant, vocab_size: int, seed: int, plan: Plan = PLAN) -> nn.Module:
    """Make the model of a variant with its first weights; draws from a seed of its own.

    Args:
        variant: what differs.
        vocab_size: tokens of both languages together.
        seed: of the weights.
        plan: what all variants have in common.
    """
    sizes = {"src_vocab_size": vocab_size, "tgt_vocab_size": vocab_size, **plan.sizes}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = variant.kind(TransformerConfig(**{**sizes, **variant.model}))
        if variant.change:
            variant.change(model)
    return model


def plan_steps(data: Data, seed: int, plan: Plan = PLAN) -> Steps:
    """Return the stream of batches: the same for all variants that share a seed.

    Args:
        data: what `runs.prepare` made of the recipe "grammar".
        seed: of the order of sentences.
        plan: what all variants have in common.
    """
    tokenizer = data.tokenizer
    ids = {"bos_id": tokenizer.bos_id, "pad_id": tokenizer.pad_id}
    return Steps(data.steps.pairs, plan.max_tokens, 1, seed, **ids)


def train_variant(
    model: Transformer, variant: Variant, steps: Steps, plan: Plan = PLAN
) -> Iterator[float]:
    """Train one variant, one step each time a loss is asked for.

    Args:
        model: what `build` made; its weights change in place.
        variant: what differs.
        steps: the batches of every step.
        plan: what all variants have in common.

    Yields:
        The loss of each step, in nats per target token, smoothed as trained.
    """

    def rate(step: int) -> float:
        number = step if variant.warm_up else max(step, plan.warmup)
        return learning_rate(number, d_model, plan.warmup, plan.rate_scale)

    d_model = model.config.d_model
    loss = partial(variant.loss, smoothing=variant.smoothing)
    trainer = Trainer(model, make_optimizer(model), loss, rate, max_norm=1.0)
    with fast_training(model):
        yield from trainer.run(islice(steps.starting_at(1), plan.steps))


def train_to_the_end(
    variant: Variant, data: Data, seed: int, plan: Plan = PLAN
) -> tuple[nn.Module, list[float]]:
    """Train one variant, and average the last copies of its weights.

    Args:
        variant: what differs.
        data: what `runs.prepare` made of the recipe "grammar".
        seed: of the first weights and of the order of sentences.
        plan: what all variants have in common.

    Returns:
        The model, and the loss of each step.
    """
    model = build(variant, len(data.tokenizer), seed, plan)
    torch.manual_seed(seed)  # of dropout
    losses, kept = [], []
    for loss in train_variant(model, variant, plan_steps(data, seed, plan), plan):
        losses.append(loss)
        left = plan.steps - len(losses)
        if left % plan.every == 0 and left < plan.average * plan.every:
            kept.append({k: v.detach().clone() for k, v in model.state_dict().items()})
    model.load_state_dict(average_tensors(kept))
    return model, losses


def run(variant: Variant, data: Data, seed: int, plan: Plan = PLAN) -> dict[str, Any]:
    """Train one variant to the end and translate held-out sentences with it.

    Args:
        variant: what differs.
        data: what `runs.prepare` made of the recipe "grammar".
        seed: of the first weights and of the order of sentences.
        plan: what all variants have in common.

    Returns:
        exact: share of translations that are right to the letter.
        bleu, chrf: of the translations, from 0 to 100.
        valid_nats: loss on the validation sentences, in nats per token, not smoothed.
        n_parameters: of the model.
        curve: loss of training, mean of every 25 steps; smoothed as trained.
        wrong: numbers, from 0, of the test sentences that are not right.
    """
    model, losses = train_to_the_end(variant, data, seed, plan)
    sources, references = zip(*data.corpus.test[: plan.n_test], strict=True)
    # A model of another kind has no parts that could be called with a cache.
    decoder = None if variant.kind is Transformer else RecomputingDecoder(model)
    said = Translator(model, data.tokenizer, decoder).translate(sources)
    return {
        "exact": exact_match(said, references),
        "bleu": bleu(said, references, n_bootstrap=0).value,
        "chrf": chrf(said, references, n_bootstrap=0).value,
        "valid_nats": nats_per_token(model, data.valid),
        "n_parameters": count_parameters(model),
        "curve": means(losses),
        "wrong": [i for i, text in enumerate(said) if text != references[i]],
    }


def means(losses: Sequence[float], width: int = 25) -> list[float]:
    """Return the mean of every `width` losses, rounded to 4 digits after the point."""
    starts = range(0, len(losses), width)
    return [round(fmean(losses[start : start + width]), 4) for start in starts]


def read_results(study: str = "ablations") -> dict[str, Any]:
    """Return what `benchmarks/ablations.py` has recorded of a study."""
    path = RESULTS / f"{study}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def write_results(record: dict[str, Any], study: str = "ablations") -> None:
    """Write the record, whole or not at all, one run a line."""
    runs = ",\n".join("  " + json.dumps(entry) for entry in record["runs"])
    rest = {name: value for name, value in record.items() if name != "runs"}
    head = json.dumps(rest, indent=1).removesuffix("\n}")
    write_text(RESULTS / f"{study}.json", f'{head},\n "runs": [\n{runs}\n ]\n}}\n')
