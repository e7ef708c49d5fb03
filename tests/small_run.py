"""Training runs of seconds, which the tests start, kill and resume."""

import json
import random
from pathlib import Path

import pytest
import torch

from transformer_lib import Transformer
from transformer_lib.data import Batch, Steps, corpora, make_batch
from transformer_lib.data.corpora import LabelledCorpus
from transformer_lib.runs import classification, fit
from transformer_lib.runs.recipe import Recipe, make_recipe

N_STEPS, SAVE_EVERY, VOCAB = 8, 4, 12
MODEL = {"d_model": 16, "n_heads": 2, "d_ff": 32, "dropout": 0.1,
         "n_encoder_layers": 1, "n_decoder_layers": 1, "max_len": 16}  # fmt: skip


def small_recipe(dropout: float = 0.1, **training: float | str) -> Recipe:
    """Return a recipe of 8 steps that drops units and adds up two batches a step."""
    return make_recipe(
        {
            "data": {"corpus": "reversal", "vocab_size": VOCAB, "max_len": 8},
            "model": {**MODEL, "dropout": dropout},
            "training": {"steps": N_STEPS, "save_every": SAVE_EVERY, "warmup": 4,
                         "batch_tokens": 64, "gradient_accumulation": 2, "average": 2,
                         "seed": 5, "precision": "float32", **training},
        }
    )  # fmt: skip


def small_pairs() -> list[tuple[list[int], list[int]]]:
    """Return words and the same words backwards; an epoch is shorter than the run."""
    rng = random.Random(0)
    rows = [rng.choices(range(4, VOCAB), k=rng.randint(2, 7)) for _ in range(60)]
    return [([*row, 2], [*reversed(row), 2]) for row in rows]


def small_steps(recipe: Recipe, pairs: list | None = None) -> Steps:
    """Return the steps of the run."""
    training = recipe.training
    return Steps(pairs or small_pairs(), training.batch_tokens,
                 training.gradient_accumulation, training.seed,
                 bos_id=1, pad_id=0)  # fmt: skip


def small_model(recipe: Recipe) -> Transformer:
    """Return the same fresh model every time."""
    torch.manual_seed(recipe.training.seed)
    return Transformer(recipe.model_config(VOCAB))


def small_valid() -> list[Batch]:
    """Return the validation sentences."""
    return [make_batch(small_pairs()[:20], bos_id=1, pad_id=0)]


def small_fit(folder: Path, pairs: list | None = None, **training) -> Transformer:
    """Train a translator, or resume the run in the folder."""
    recipe = small_recipe(**training)
    model = small_model(recipe)
    fit(model, recipe, small_steps(recipe, pairs), small_valid(), folder)
    return model


def read_log(folder: Path) -> list[dict[str, float]]:
    """Return the whole lines of a run's log."""
    text = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def small_classify(folder: Path) -> torch.nn.Module:
    """Train a classifier, or resume the run in the folder."""
    recipe = make_recipe(
        {
            "data": {"corpus": "words", "tokens": "words", "max_len": 8},
            "model": MODEL,
            "training": {"task": "classify", "epochs": 2, "batch_size": 6, "seed": 3},
        }
    )
    rows = tuple((f"{word} {letter}", label) for letter in "abcdefghijkl"
                 for label, word in enumerate(("bad", "good")))  # fmt: skip
    corpus = LabelledCorpus("words", ("bad", "good"), rows, rows[:6], rows[:6])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "load_labelled", {"words": corpus}.get)
        data = classification.prepare(recipe)
    return classification.train(recipe, data, folder).model
