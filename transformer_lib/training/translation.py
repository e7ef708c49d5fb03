"""A translator made from a recipe: its data, its model, its folder."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from transformer_lib.data.batches import Batch, limit_lengths, token_batches
from transformer_lib.data.corpora import ParallelCorpus
from transformer_lib.data.steps import Steps
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.evaluation.scores import nats_per_token
from transformer_lib.model.transformer import Transformer
from transformer_lib.pretrained.translator import Translator, load
from transformer_lib.training.evaluate import load_corpus
from transformer_lib.training.interruption import alone_in
from transformer_lib.training.loss import batch_loss
from transformer_lib.training.recipe import Recipe
from transformer_lib.training.run import Job, claim, is_first_process, run_job
from transformer_lib.training.schedule import learning_rate, make_optimizer


@dataclass(frozen=True)
class Data:
    """What a recipe's data come to.

    Attributes:
        corpus: the sentences, in the direction of the recipe.
        tokenizer: learned from the training sentences of both languages.
        steps: what each training step learns from.
        valid: batches to measure the validation loss on.
        skipped: line numbers of training pairs that were too long.
    """

    corpus: ParallelCorpus
    tokenizer: Tokenizer
    steps: Steps
    valid: list[Batch]
    skipped: list[int]


def prepare(recipe: Recipe) -> Data:
    """Load the corpus, learn the tokenizer, and plan the batches.

    Raises:
        ValueError: there is no such corpus, no sentence is short enough, or a sentence
            of the test is too long for the model.
    """
    corpus = load_corpus(recipe)
    texts = [sentence for pair in corpus.train for sentence in pair]
    if recipe.data.tokens == "words":
        tokenizer = Tokenizer.from_words(texts)
    else:
        tokenizer = Tokenizer.train(texts, recipe.data.vocab_size)
    train, skipped = limit_lengths(
        _encode(tokenizer, corpus.train), recipe.data.max_len, "skip"
    )
    valid, _ = limit_lengths(
        _encode(tokenizer, corpus.valid), recipe.data.max_len, "skip"
    )
    _check_lengths(_encode(tokenizer, corpus.test), recipe)
    ids = {"bos_id": tokenizer.bos_id, "pad_id": tokenizer.pad_id}
    settings = recipe.training
    max_tokens, n_batches = settings.batch_tokens, settings.gradient_accumulation
    steps = Steps(train, max_tokens, n_batches, settings.seed, **ids)
    batches = list(token_batches(valid, max_tokens, **ids))
    return Data(corpus, tokenizer, steps, batches, skipped)


def train(
    recipe: Recipe,
    data: Data,
    folder: str | Path,
    resume: bool = False,
    progress: bool = False,
) -> Translator:
    """Train a model as its recipe says, and write it into the run's folder.

    Args:
        recipe: the run.
        data: what `prepare` made of the recipe.
        folder: for log, checkpoints and the finished model.
        resume: resume the run in the folder.
        progress: show a progress bar.

    Returns:
        The model as it was written, in half precision.

    Raises:
        FileExistsError: the folder holds a run, and it is not to be resumed.
        BlockingIOError: another process works on the run.
        ValueError: it is to be resumed, but with another recipe or other data.
        Interrupted: Ctrl-C or SIGTERM stopped the run; the state is saved.
    """
    folder = Path(folder)
    with torch.random.fork_rng():
        torch.manual_seed(recipe.training.seed)
        model = Transformer(recipe.model_config(len(data.tokenizer)))
    with alone_in(folder) if is_first_process() else nullcontext():
        if is_first_process():
            claim(folder, recipe, data.tokenizer, resume=resume)
        fit(model, recipe, data.steps, data.valid, folder, progress)
        translator = Translator(model.cpu(), data.tokenizer)
        if is_first_process():
            translator.save(folder)
            translator = load(folder)
    return translator


def fit(
    model: Transformer,
    recipe: Recipe,
    steps: Steps,
    valid: Sequence[Batch],
    folder: str | Path,
    progress: bool = False,
) -> None:
    """Train a model as its recipe says, resuming the run in the folder if there is one.

    Args:
        model: trained in place; ends with the mean of the last checkpoints' weights.
        recipe: how.
        steps: what each step learns from.
        valid: batches whose loss is measured before each checkpoint.
        folder: of the run; made if it is missing.
        progress: show a progress bar.

    Raises:
        ValueError, OSError: see `run_job`.
    """
    training = recipe.training
    d_model = model.config.d_model
    job = Job(
        recipe=recipe,
        model=model,
        make_optimizer=make_optimizer,
        loss=partial(batch_loss, smoothing=training.smoothing),
        rate=lambda step: learning_rate(
            step, d_model, training.warmup, training.rate_scale
        ),
        measure=lambda model: {"valid_nats": nats_per_token(model, valid)},
        steps=steps,
        n_steps=training.steps,
        save_every=training.save_every,
        average=training.average,
        max_norm=training.max_norm,
    )
    run_job(job, folder, progress)


def _check_lengths(test: Sequence[tuple[list[int], list[int]]], recipe: Recipe) -> None:
    """Refuse, before hours of training, what could not be scored after them."""
    most = recipe.model_config(1).max_len
    for number, (src, _) in enumerate(test, start=1):
        if len(src) > most:
            raise ValueError(
                f"test sentence {number} has {len(src)} tokens, but the model's "
                f"max_len is {most}: raise it in [model]"
            )


def _encode(tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]]) -> list:
    return [(tokenizer.encode(src), tokenizer.encode(tgt)) for src, tgt in pairs]
