"""A translator made from a recipe: its data, its model, its folder."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import torch

from transformer_lib import fast
from transformer_lib.data.batches import Batch, limit_lengths
from transformer_lib.data.corpora import ParallelCorpus
from transformer_lib.data.steps import Steps
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.evaluation.scores import nats_per_token, require_tokenization
from transformer_lib.model.transformer import Transformer
from transformer_lib.pretrained.translator import Translator, load
from transformer_lib.runs.evaluate import encode_pairs, load_corpus, valid_batches
from transformer_lib.runs.recipe import Recipe
from transformer_lib.runs.run import Job, run_job
from transformer_lib.runs.sentences import checksums
from transformer_lib.training.loop import Trainer
from transformer_lib.training.loss import batch_loss
from transformer_lib.training.processes import ALONE, Processes
from transformer_lib.training.schedule import learning_rate, make_optimizer


@dataclass(frozen=True)
class Data:
    """What a recipe's data come to.

    Attributes:
        corpus: the sentences, in the direction of the recipe.
        tokenizer: learned from the training sentences of both languages.
        steps: what each training step learns from.
        valid: batches to measure the validation loss on.
        skipped: line numbers of training pairs that are left out, since they are longer
            than the recipe's max_len.
        notes: sentences that say how many pairs are left out of training and of
            validation, if any is.
    """

    corpus: ParallelCorpus
    tokenizer: Tokenizer
    steps: Steps
    valid: list[Batch]
    skipped: list[int]
    notes: list[str] = field(default_factory=list)


def prepare(recipe: Recipe) -> Data:
    """Load the corpus, learn the tokenizer, and plan the batches.

    Raises:
        ValueError: there is no such corpus, no sentence is short enough, or a sentence
            of the test is too long for the model.
    """
    corpus, settings = load_corpus(recipe), recipe.training
    texts = [sentence for pair in corpus.train for sentence in pair]
    if recipe.data.tokens == "words":
        tokenizer = Tokenizer.from_words(texts)
    else:
        tokenizer = Tokenizer.train(texts, recipe.data.vocab_size)
    # Refused now, before hours of training: what could not be scored after them.
    require_tokenization(recipe.data.bleu_tokenize)
    most = recipe.model_config(len(tokenizer)).max_len
    for number, (src, _) in enumerate(encode_pairs(tokenizer, corpus.test), start=1):
        if len(src) > most:
            raise ValueError(
                f"test sentence {number} has {len(src)} tokens, but the model's "
                f"max_len is {most}: raise it in [model]"
            )
    longest, pairs = recipe.data.max_len, encode_pairs(tokenizer, corpus.train)
    pairs, skipped = limit_lengths(pairs, longest, "skip")
    valid, skipped_valid = valid_batches(corpus, tokenizer, recipe)
    notes = [
        f"{len(lines):,} of {n_pairs:,} {part} pairs are longer than max_len {longest} "
        "and are left out"
        for part, lines, n_pairs in (
            ("training", skipped, len(corpus.train)),
            ("validation", skipped_valid, len(corpus.valid)),
        )
        if lines
    ]
    ids = {"bos_id": tokenizer.bos_id, "pad_id": tokenizer.pad_id}
    max_tokens, n_batches = settings.batch_tokens, settings.gradient_accumulation
    steps = Steps(pairs, max_tokens, n_batches, settings.seed, **ids)
    return Data(corpus, tokenizer, steps, valid, skipped, notes)


def train(
    recipe: Recipe,
    data: Data,
    folder: str | Path,
    progress: bool = False,
    processes: Processes = ALONE,
) -> Translator | None:
    """Train a model as its recipe says, and write it into the run's folder.

    Args:
        recipe: the run.
        data: what `prepare` made of the recipe.
        folder: for log, checkpoints and the finished model; all processes see it.
        progress: show a progress bar.
        processes: that take each step together.

    Returns:
        The model as it was written, in half precision; None in all processes but the
        first.

    Raises:
        ValueError, OSError: see `run_job`.
    """
    with torch.random.fork_rng():
        torch.manual_seed(recipe.training.seed)
        model = Transformer(recipe.model_config(len(data.tokenizer)))
    job = make_job(model, recipe, data.steps, data.valid, processes)
    run_job(replace(job, sentences=checksums(data.corpus)), folder, progress)
    if not processes.is_first:
        return None
    Translator(model, data.tokenizer).save(folder)
    return load(folder)


def fit(
    model: Transformer,
    recipe: Recipe,
    steps: Steps,
    valid: Sequence[Batch],
    folder: str | Path,
    progress: bool = False,
    processes: Processes = ALONE,
) -> None:
    """Train a model as its recipe says, resuming the run in the folder if there is one.

    Args:
        model: trained in place; ends with the mean of the last checkpoints' weights, in
            the first process.
        recipe: how.
        steps: what each step learns from.
        valid: batches whose loss is measured before each checkpoint.
        folder: of the run; made if it is missing.
        progress: show a progress bar.
        processes: that take each step together.

    Raises:
        ValueError, OSError: see `run_job`.
    """
    run_job(make_job(model, recipe, steps, valid, processes), folder, progress)


def make_job(
    model: Transformer,
    recipe: Recipe,
    steps: Steps,
    valid: Sequence[Batch],
    processes: Processes = ALONE,
) -> Job:
    """Return what a run has to do; arguments and errors are those of `fit`."""
    training, d_model = recipe.training, model.config.d_model
    loss = partial(batch_loss, smoothing=training.smoothing)
    if training.fast:
        plain, loss = loss, partial(fast.batch_loss, smoothing=training.smoothing)
        for first in next(steps.starting_at(1, processes.share))[:1]:
            fast.require_same_step(model, loss, plain, first)
    trainer = Trainer(
        model,
        make_optimizer(model),
        loss=loss,
        rate=lambda step: learning_rate(
            step, d_model, training.warmup, training.rate_scale
        ),
        max_norm=training.max_norm,
        seed=training.seed,
        n_batches=steps.n_batches,
        processes=processes,
    )
    return Job(
        recipe=recipe,
        trainer=trainer,
        steps=steps,
        measure=lambda model: {"valid_nats": nats_per_token(model, valid, processes)},
        n_steps=training.steps,
        save_every=training.save_every,
        average=training.average,
    )
