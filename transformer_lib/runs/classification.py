"""A classifier made from a recipe: its data, its model, its training."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from transformer_lib.data import corpora
from transformer_lib.data.corpora import LabelledCorpus
from transformer_lib.data.corpora.parallel import PARTS
from transformer_lib.data.texts import LabelledRows, TextSteps, encode_texts
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.evaluation.accuracy import accuracy
from transformer_lib.fast import require_same_step
from transformer_lib.model.classifier import EncoderClassifier
from transformer_lib.model.transformer import count_parameters
from transformer_lib.pretrained.classifier import Classifier, load_classifier
from transformer_lib.runs.recipe import ClassifierTraining, Recipe
from transformer_lib.runs.run import Job, run_job
from transformer_lib.runs.sentences import checksums
from transformer_lib.training.loop import Trainer
from transformer_lib.training.loss import text_loss
from transformer_lib.training.processes import ALONE, Processes


@dataclass(frozen=True)
class LabelledData:
    """What a classifier's recipe comes to.

    Attributes:
        corpus: the texts.
        tokenizer: learned from the training texts.
        rows: ids and label of every text, for each part.
        notes: a sentence that says how many texts are truncated, if any is.
    """

    corpus: LabelledCorpus
    tokenizer: Tokenizer
    rows: dict[str, LabelledRows]
    notes: list[str]


def prepare(recipe: Recipe) -> LabelledData:
    """Load the corpus, learn the tokenizer, and encode all texts.

    Words are taken without regard to case, as in the lecture.

    Raises:
        ValueError: there is no such corpus, or it cannot be read.
    """
    corpus, data = corpora.load_labelled(recipe.data.corpus), recipe.data
    texts = [text for text, _ in corpus.train]
    if data.tokens == "words":
        tokenizer = Tokenizer.from_words(texts, data.vocab_size, lowercase=True)
    else:
        tokenizer = Tokenizer.train(texts, data.vocab_size)
    rows, n_truncated = {}, 0
    for part in PARTS:
        texts, labels = zip(*getattr(corpus, part), strict=True)
        ids, truncated = encode_texts(tokenizer, texts, data.max_len)
        rows[part] = list(zip(ids, labels, strict=True))
        n_truncated += len(truncated)
    n_texts, notes = sum(map(len, rows.values())), []
    if n_truncated:
        notes = [
            f"{n_truncated:,} of {n_texts:,} texts are longer than max_len "
            f"{data.max_len} and are truncated"
        ]
    return LabelledData(corpus, tokenizer, rows, notes)


def new_model(recipe: Recipe, data: LabelledData) -> EncoderClassifier:
    """Return the untrained model of a recipe, the same one every time."""
    training = recipe.training
    with torch.random.fork_rng():
        torch.manual_seed(training.seed)
        config = recipe.model_config(len(data.tokenizer))
        return EncoderClassifier(config, len(data.corpus.classes), training.pooling)


def make_optimizer(model: nn.Module, training: ClassifierTraining) -> AdamW:
    """Return AdamW with a constant rate, as in the lecture's notebook."""
    return AdamW(
        model.parameters(), lr=training.rate, weight_decay=training.weight_decay
    )


def make_steps(
    model: EncoderClassifier, rows: LabelledRows, training: ClassifierTraining
) -> TextSteps:
    """Return what each step learns from, the same every time."""
    pad_id = model.config.pad_id
    return TextSteps(rows, training.batch_size, training.seed, pad_id=pad_id)


def train(
    recipe: Recipe,
    data: LabelledData,
    folder: str | Path,
    progress: bool = False,
    processes: Processes = ALONE,
) -> Classifier:
    """Train a classifier as `translation.train` trains a translator.

    Its step has one batch, which several processes can't share.

    Returns:
        The classifier as it was written, in half precision.
    """
    training, rows = recipe.training, data.rows["train"]
    model = new_model(recipe, data)
    optimizer = make_optimizer(model, training)
    steps = make_steps(model, rows, training)

    def measure(model: EncoderClassifier) -> dict[str, float]:
        found = accuracy(model, data.rows["valid"])
        return {"valid_nats": found.nats, "valid_accuracy": found.value}

    if training.fast:
        [first] = next(steps.starting_at(1))
        require_same_step(model, text_loss, text_loss, first)
    job = Job(
        recipe=recipe,
        trainer=Trainer(
            model,
            optimizer,
            text_loss,
            lambda _: training.rate,
            seed=training.seed,
            processes=processes,
        ),
        steps=steps,
        measure=measure,
        n_steps=training.epochs * steps.per_epoch,
        save_every=steps.per_epoch,
        sentences=checksums(data.corpus),
    )
    run_job(job, folder, progress)
    Classifier(model, data.tokenizer, data.corpus.classes).save(folder)
    return load_classifier(folder)


def train_epoch(
    model: EncoderClassifier,
    optimizer: Optimizer,
    rows: LabelledRows,
    training: ClassifierTraining,
    epoch: int,
) -> float:
    """Learn from every text once, as a run does; return the mean loss, nats per text.

    Order and dropout follow from the seed and the number of the epoch, from 0.
    """
    steps = make_steps(model, rows, training)
    first = epoch * steps.per_epoch
    batches = list(islice(steps.starting_at(first + 1), steps.per_epoch))
    trainer = Trainer(model, optimizer, text_loss, seed=training.seed, n_steps=first)
    losses = zip(trainer.run(batches), batches, strict=True)
    return sum(nats * batch.n_targets for nats, [batch] in losses) / len(rows)


def describe(classifier: Classifier, data: LabelledData) -> str:
    """Measure a classifier on validation and test, and put it into lines of text."""
    lines = [f"{count_parameters(classifier.model):,} parameters"]
    for part in ("valid", "test"):
        found = accuracy(classifier.model, data.rows[part])
        lines.append(f"{part}: {found}, {found.nats:.3f} nats per text")
    return "\n".join(lines) + "\n"
