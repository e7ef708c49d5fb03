"""A classifier made from a recipe: its data, its model, its training."""

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from operator import mul
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
from transformer_lib.model.classifier import EncoderClassifier
from transformer_lib.model.transformer import count_parameters
from transformer_lib.pretrained.classifier import Classifier
from transformer_lib.training.interruption import alone_in
from transformer_lib.training.loop import Trainer
from transformer_lib.training.loss import text_loss
from transformer_lib.training.recipe import ClassifierTraining, Recipe
from transformer_lib.training.run import Job, claim, is_first_process, run_job


@dataclass(frozen=True)
class LabelledData:
    """What a classifier's recipe comes to.

    Attributes:
        corpus: the texts.
        tokenizer: learned from the training texts.
        rows: ids and label of every text, for each part.
        n_truncated: texts that were longer than the recipe's max_len, in all parts.
    """

    corpus: LabelledCorpus
    tokenizer: Tokenizer
    rows: dict[str, LabelledRows]
    n_truncated: int


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
    return LabelledData(corpus, tokenizer, rows, n_truncated)


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


def train(
    recipe: Recipe,
    data: LabelledData,
    folder: str | Path,
    resume: bool = False,
    progress: bool = False,
) -> Classifier:
    """Train a classifier as `translation.train` trains a translator."""
    folder, training = Path(folder), recipe.training
    model = new_model(recipe, data)
    steps = _make_steps(model, data.rows["train"], training)

    def measure(model: EncoderClassifier) -> dict[str, float]:
        found = accuracy(model, data.rows["valid"])
        return {"valid_nats": found.nats, "valid_accuracy": found.value}

    job = Job(
        recipe=recipe,
        model=model,
        make_optimizer=lambda model: make_optimizer(model, training),
        loss=text_loss,
        rate=lambda step: training.rate,
        measure=measure,
        steps=steps,
        n_steps=training.epochs * steps.per_epoch,
        save_every=steps.per_epoch,
    )
    with alone_in(folder) if is_first_process() else nullcontext():
        if is_first_process():
            claim(folder, recipe, data.tokenizer, resume=resume)
        run_job(job, folder, progress)
        classifier = Classifier(model.cpu().eval(), data.tokenizer, data.corpus.classes)
        if is_first_process():
            classifier.save(folder)
    return classifier


def train_epoch(
    model: EncoderClassifier,
    optimizer: Optimizer,
    rows: LabelledRows,
    training: ClassifierTraining,
    epoch: int,
) -> float:
    """Learn from every text once; return the mean loss, in nats per text.

    Order and dropout follow from the seed and the number of the epoch alone, and the
    random generators are left as they were found.
    """
    steps = _make_steps(model, rows, training)
    stream = islice(steps.starting_at(epoch * steps.per_epoch + 1), steps.per_epoch)
    device = model.head.weight.device
    batches = [batch.to(device) for [batch] in stream]
    with torch.random.fork_rng():
        torch.manual_seed(training.seed * 1_000_003 + epoch)
        losses = list(Trainer(model, optimizer, text_loss).run([b] for b in batches))
    sizes = (batch.n_targets for batch in batches)
    return sum(map(mul, losses, sizes)) / len(rows)


def _make_steps(
    model: EncoderClassifier, rows: LabelledRows, training: ClassifierTraining
) -> TextSteps:
    pad_id = model.config.pad_id
    return TextSteps(rows, training.batch_size, training.seed, pad_id=pad_id)


def describe(classifier: Classifier, data: LabelledData) -> str:
    """Measure a classifier on validation and test, and put it into lines of text."""
    model = classifier.model
    lines = [f"{count_parameters(model):,} parameters"]
    if data.n_truncated:
        n_texts = sum(map(len, data.rows.values()))
        lines.append(
            f"{data.n_truncated:,} of {n_texts:,} texts are longer than max_len and "
            "were truncated"
        )
    for part in ("valid", "test"):
        found = accuracy(model, data.rows[part])
        lines.append(f"{part}: {found}, {found.nats:.3f} nats per text")
    return "\n".join(lines) + "\n"
