"""Training one ablation, measuring it, and the record of all that were run."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from transformer_book.experiments.ablations import SIZES, Plan, Variant, build
from transformer_lib.acceleration import for_training
from transformer_lib.data.steps import Steps
from transformer_lib.evaluation.scores import chrf, exact_match, nats_per_token
from transformer_lib.files import write_text
from transformer_lib.model.transformer import Transformer, count_parameters
from transformer_lib.pretrained.translator import Translator
from transformer_lib.runs.translation import Data
from transformer_lib.training.loop import Trainer
from transformer_lib.training.loss import batch_loss
from transformer_lib.training.schedule import learning_rate, make_optimizer
from transformer_lib.weights import average_tensors

RESULTS = Path(__file__).parent / "results" / "ablations.json"
CURVE_STEPS = 25  # steps that share a point of a recorded curve


def plan_steps(data: Data, seed: int, plan: Plan | None = None) -> Steps:
    """Return the stream of batches: the same for all variants that share a seed.

    Args:
        data: what `runs.prepare` made of the recipe "grammar".
        seed: of the order of sentences.
        plan: what all variants have in common.
    """
    tokenizer, max_tokens = data.tokenizer, (plan or Plan()).max_tokens
    ids = {"bos_id": tokenizer.bos_id, "pad_id": tokenizer.pad_id}
    return Steps(data.steps.pairs, max_tokens, 1, seed, **ids)


def train_variant(
    model: Transformer, variant: Variant, steps: Steps, plan: Plan | None = None
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
    plan = plan or Plan()

    def rate(step: int) -> float:
        number = step if variant.warm_up else max(step, plan.warmup)
        return learning_rate(number, SIZES["d_model"], plan.warmup, plan.rate_scale)

    model = for_training(model)
    loss = partial(batch_loss, smoothing=variant.smoothing)
    trainer = Trainer(model, make_optimizer(model), loss, rate, max_norm=1.0)
    return trainer.run(islice(steps.starting_at(1), plan.steps))


def run(
    variant: Variant, data: Data, seed: int, plan: Plan | None = None
) -> dict[str, Any]:
    """Train one variant to the end and translate held-out sentences with it.

    Args:
        variant: what differs.
        data: what `runs.prepare` made of the recipe "grammar".
        seed: of the first weights and of the order of sentences.
        plan: what all variants have in common.

    Returns:
        exact: share of translations that are right to the letter.
        chrf: of the translations, from 0 to 100.
        valid_nats: loss on the validation sentences, in nats per token, not smoothed.
        n_parameters: of the model.
        curve: loss of training, mean of every 25 steps; smoothed as trained.
        wrong: numbers, from 0, of the test sentences that are not right.
    """
    plan = plan or Plan()
    model = build(variant, len(data.tokenizer), seed)
    losses, kept = [], []
    for loss in train_variant(model, variant, plan_steps(data, seed, plan), plan):
        losses.append(loss)
        left = plan.steps - len(losses)
        if left % plan.every == 0 and left < plan.average * plan.every:
            kept.append({k: v.detach().clone() for k, v in model.state_dict().items()})
    model.load_state_dict(average_tensors(kept))
    sources, references = zip(*data.corpus.test[: plan.n_test], strict=True)
    said = Translator(model, data.tokenizer).translate(sources)
    return {
        "exact": exact_match(said, references),
        "chrf": chrf(said, references, n_bootstrap=0).value,
        "valid_nats": nats_per_token(model, data.valid),
        "n_parameters": count_parameters(model),
        "curve": means(losses),
        "wrong": [i for i, text in enumerate(said) if text != references[i]],
    }


def means(losses: Sequence[float], width: int = CURVE_STEPS) -> list[float]:
    """Return the mean of every `width` losses, rounded to 4 digits after the point."""
    starts = range(0, len(losses), width)
    return [round(fmean(losses[start : start + width]), 4) for start in starts]


def read_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what `benchmarks/ablations.py` has recorded."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_results(record: dict[str, Any], path: Path = RESULTS) -> None:
    """Write the record, whole or not at all, one run a line."""
    runs = ",\n".join("  " + json.dumps(entry) for entry in record["runs"])
    rest = {name: value for name, value in record.items() if name != "runs"}
    head = json.dumps(rest, indent=1).removesuffix("\n}")
    write_text(path, f'{head},\n "runs": [\n{runs}\n ]\n}}\n')
