"""A classifier's training run in a folder: its log, its checkpoint, its scores.

The loop is that of `classification`, on one device. After each epoch a line is added to
metrics.jsonl and the checkpoint is replaced, so a run that was cut off goes on with the
first epoch that is missing; on a CPU it ends with the same weights, bit for bit.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tqdm.auto import trange

from transformer_lib.data import corpora
from transformer_lib.data.corpora import LabelledCorpus
from transformer_lib.data.corpora.parallel import PARTS
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.evaluation.accuracy import Accuracy
from transformer_lib.files import write_text
from transformer_lib.model.classifier import EncoderClassifier
from transformer_lib.model.transformer import count_parameters
from transformer_lib.pretrained.classifier import Classifier
from transformer_lib.training.checkpoint import INDEX, load_checkpoint, save_checkpoint
from transformer_lib.training.classification import (
    accuracy,
    encode_texts,
    make_optimizer,
    train_epoch,
)
from transformer_lib.training.evaluate import RECIPE
from transformer_lib.training.recipe import Recipe, difference, make_recipe
from transformer_lib.training.runs import CHECKPOINTS, LOG, read_log

Rows = list[tuple[list[int], int]]


@dataclass(frozen=True)
class LabelledData:
    """What a classifier's recipe comes to.

    Attributes:
        corpus: the texts.
        tokenizer: learned from the training texts.
        rows: ids and label of every text, for each part.
        n_cut: texts that were longer than the recipe's max_len, in all parts.
    """

    corpus: LabelledCorpus
    tokenizer: Tokenizer
    rows: dict[str, Rows]
    n_cut: int


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
    rows, n_cut = {}, 0
    for part in PARTS:
        texts, labels = zip(*getattr(corpus, part), strict=True)
        ids, cut = encode_texts(tokenizer, texts, data.max_len)
        rows[part] = list(zip(ids, labels, strict=True))
        n_cut += len(cut)
    return LabelledData(corpus, tokenizer, rows, n_cut)


def new_model(recipe: Recipe, data: LabelledData) -> EncoderClassifier:
    """Return the untrained model of a recipe, the same one every time."""
    training = recipe.training
    with torch.random.fork_rng():
        torch.manual_seed(training.seed)
        config = recipe.model_config(len(data.tokenizer))
        return EncoderClassifier(config, len(data.corpus.classes), training.pooling)


def fit(
    recipe: Recipe,
    data: LabelledData,
    folder: str | Path,
    resume: bool = False,
    progress: bool = False,
) -> Classifier:
    """Train as the recipe says, going on where the folder's run was cut off.

    Args:
        recipe: the run.
        data: what `prepare` made of the recipe.
        folder: for log, checkpoint and the finished model.
        resume: go on with the run in the folder.
        progress: show a progress bar.

    Raises:
        FileExistsError: the folder holds a run, and it is not to be resumed.
        ValueError: it is to be resumed, but with another recipe or other data; or
            several processes were started.
        OSError: the disk is full, say. The last checkpoint is still there.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise ValueError(
            f"a classifier is trained by 1 process, not {os.environ['WORLD_SIZE']}"
        )
    folder = Path(folder)
    checkpoint = folder / CHECKPOINTS / "latest"
    if (folder / RECIPE).exists() and not resume:
        raise FileExistsError(f"{folder} holds a run; --resume goes on with it")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = new_model(recipe, data).to(device)
    optimizer = make_optimizer(model, recipe.training)
    done = 0
    if (checkpoint / INDEX).exists():
        state = load_checkpoint(checkpoint)
        _refuse_other(folder, state, recipe, data)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["epochs"]
    write_text(folder / RECIPE, json.dumps(asdict(recipe), indent=1) + "\n")
    log = _log(folder, done)
    for epoch in trange(done, recipe.training.epochs, disable=not progress):
        loss = train_epoch(model, optimizer, data.rows["train"], recipe.training, epoch)
        log(epoch + 1, loss, accuracy(model, data.rows["valid"]))
        state = {
            "epochs": epoch + 1,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "recipe": asdict(recipe),
            "tokenizer": data.tokenizer.to_json(),
        }
        save_checkpoint(checkpoint, state)
    classifier = Classifier(model.cpu().eval(), data.tokenizer, data.corpus.classes)
    classifier.save(folder)
    return classifier


def describe(classifier: Classifier, data: LabelledData) -> str:
    """Measure a classifier on validation and test, and put it into lines of text."""
    model = classifier.model
    lines = [f"{count_parameters(model):,} parameters"]
    if data.n_cut:
        lines.append(
            f"{data.n_cut:,} of {sum(map(len, data.rows.values())):,} texts are longer "
            "than max_len and were cut"
        )
    for part in ("valid", "test"):
        found = accuracy(model, data.rows[part])
        lines.append(f"{part}: {found}, {found.nats:.3f} nats per text")
    return "\n".join(lines) + "\n"


def _refuse_other(
    folder: Path, state: dict, recipe: Recipe, data: LabelledData
) -> None:
    what = difference(make_recipe(state["recipe"]), recipe)
    if what:
        raise ValueError(f"the run was begun with another recipe: {what}")
    if state["tokenizer"] != data.tokenizer.to_json():
        raise ValueError(f"the run in {folder} was begun with other data")


def _log(folder: Path, done: int) -> Callable[[int, float, Accuracy], None]:
    """Return what notes an epoch, after the lines of those that are done."""
    lines = read_log(folder)[:done] if done else []
    begun = time.perf_counter()

    def note(epoch: int, loss: float, valid: Accuracy) -> None:
        seconds = round(time.perf_counter() - begun, 3)
        lines.append(
            {"epoch": epoch, "train_nats": loss, "valid_nats": valid.nats,
             "valid_accuracy": valid.value, "seconds": seconds}
        )  # fmt: skip
        write_text(folder / LOG, "".join(json.dumps(line) + "\n" for line in lines))

    return note
