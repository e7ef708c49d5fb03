"""A translator made from a recipe: its data, its model, its folder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from transformer_lib import fast
from transformer_lib.data.batches import Batch, limit_lengths
from transformer_lib.data.corpora import ParallelCorpus
from transformer_lib.data.corpora.parallel import HeldOut, OwnFiles
from transformer_lib.data.pairs_file import (
    PairsFile,
    digests,
    read_pairs_file,
    write_pairs_file,
)
from transformer_lib.data.steps import Steps
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.evaluation.scores import nats_per_token, require_tokenization
from transformer_lib.model.transformer import Transformer
from transformer_lib.pretrained.translator import Translator, load
from transformer_lib.runs.evaluate import (
    PAIRS,
    encode_pairs,
    load_corpus,
    own_files,
    valid_batches,
)
from transformer_lib.runs.recipe import DataRecipe, Recipe
from transformer_lib.runs.run import Job, require_recipe, run_job
from transformer_lib.runs.sentences import SENTENCES, checksums, require_sentences
from transformer_lib.training.loop import Trainer
from transformer_lib.training.loss import batch_loss
from transformer_lib.training.processes import ALONE, Processes
from transformer_lib.training.schedule import learning_rate, make_optimizer


@dataclass(frozen=True)
class Data:
    """What a recipe's data come to.

    Attributes:
        corpus: the sentences, in the direction of the recipe; of two files only those
            that are held out of training.
        tokenizer: learned from the training sentences of both languages.
        steps: what each training step learns from.
        valid: batches to measure the validation loss on.
        skipped: number of training pairs that are left out, since they are longer than
            the recipe's max_len.
        notes: sentences that say how many pairs are left out of training and of
            validation, and of what the tokenizer has learned if not of all.
    """

    corpus: ParallelCorpus | HeldOut
    tokenizer: Tokenizer
    steps: Steps
    valid: list[Batch]
    skipped: int
    notes: list[str] = field(default_factory=list)


def prepare(
    recipe: Recipe,
    folder: str | Path | None = None,
    progress: bool = False,
    processes: Processes = ALONE,
) -> Data:
    """Load the corpus, learn the tokenizer, and plan the batches.

    Two files are tokenized once, into a file of ids that is kept in the run's folder;
    the first process makes it, and all map it into memory.

    Args:
        recipe: the run.
        folder: of the run, which all processes see. If None, the file of ids is a
            temporary one.
        progress: show progress bars while files are read.
        processes: that prepare together.

    Raises:
        ValueError: there is no such corpus, no sentence is short enough, or a sentence
            of the test is too long for the model; recipe or files are not those of the
            run in the folder, or the files don't fit together.
        OSError: the disk is full, for example.
    """
    # Refused now, before hours of training: what could not be scored after them.
    require_tokenization(recipe.data.bleu_tokenize)
    if folder and processes.is_first:  # before its file of ids is made anew
        require_recipe(Path(folder), recipe)
    if recipe.data.corpus:
        corpus = load_corpus(recipe)
        texts = (sentence for pair in corpus.train for sentence in pair)
        tokenizer = _learn_tokenizer(recipe.data, texts)
        n_train = n_learned = len(corpus.train)
        pairs, where = encode_pairs(tokenizer, corpus.train), ""
        pairs, _ = limit_lengths(pairs, recipe.data.max_len, "skip")
    else:
        found = _map_own_files(recipe.data, folder, progress, processes)
        corpus, tokenizer, pairs = found.held_out, found.tokenizer, found.pairs
        n_train, n_learned = found.n_train, found.n_learned
        where = f", first in line {found.first_long:,}" if found.first_long else ""
    most = recipe.model_config(len(tokenizer)).max_len
    for number, (src, _) in enumerate(encode_pairs(tokenizer, corpus.test), start=1):
        if len(src) > most:
            raise ValueError(
                f"test sentence {number} has {len(src)} tokens, but the model's "
                f"max_len is {most}: raise it in [model]"
            )
    valid, skipped_valid = valid_batches(corpus, tokenizer, recipe)
    ids = {"bos_id": tokenizer.bos_id, "pad_id": tokenizer.pad_id}
    training = recipe.training
    max_tokens, n_batches = training.batch_tokens, training.gradient_accumulation
    steps = Steps(pairs, max_tokens, n_batches, training.seed, **ids)
    skipped, notes = n_train - len(pairs), []
    if n_learned < n_train:
        notes.append(
            f"the tokens are learned from a sample, {n_learned:,} of {n_train:,} pairs"
        )
    for part, n_long, n_pairs, first in (
        ("training", skipped, n_train, where),
        ("validation", len(skipped_valid), len(corpus.valid), ""),
    ):
        if n_long:
            notes.append(
                f"{n_long:,} of {n_pairs:,} {part} pairs are longer than max_len "
                f"{recipe.data.max_len} and are left out{first}"
            )
    return Data(corpus, tokenizer, steps, valid, skipped, notes)


def _map_own_files(
    data: DataRecipe,
    folder: str | Path | None,
    progress: bool,
    processes: Processes = ALONE,
) -> PairsFile:
    """Map the file of ids of two files; the first process makes it if need be."""
    if folder is None:
        # What is mapped stays there when the file is deleted.
        with TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            return _map_own_files(data, temporary, progress)
    path = Path(folder) / PAIRS
    found = _make_pairs_file(path, data, progress) if processes.is_first else None
    processes.wait()
    return found or read_pairs_file(path)


def _make_pairs_file(path: Path, data: DataRecipe, progress: bool) -> PairsFile:
    """Map a file of ids; make it first if it isn't there, or is of something else."""
    source, target = own_files(data)
    names = "tokens", "vocab_size", "max_len"  # what else the ids depend on
    settings = {name: getattr(data, name) for name in names}
    key = {**settings, **digests(source, target)}
    try:
        return read_pairs_file(path, key)
    except (FileNotFoundError, ValueError):  # none, of other files, damaged
        files = OwnFiles.read(source, target, progress)
    if (path.parent / SENTENCES).is_file():  # of a run that is resumed
        require_sentences(path.parent, files.held_out().checksums)
    write_pairs_file(path, files, key, partial(_learn_tokenizer, data), progress)
    return read_pairs_file(path)


def _learn_tokenizer(data: DataRecipe, texts: Iterable[str]) -> Tokenizer:
    if data.tokens == "words":
        return Tokenizer.from_words(texts)
    return Tokenizer.train(texts, data.vocab_size)


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
