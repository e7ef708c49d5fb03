"""A translator made from a recipe: its data, its model, its folder."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from transformer_lib.data.batches import Batch, limit_lengths, token_batches
from transformer_lib.data.corpora import ParallelCorpus
from transformer_lib.data.steps import Steps
from transformer_lib.data.tokenizer import Tokenizer
from transformer_lib.files import write_text
from transformer_lib.model.transformer import Transformer
from transformer_lib.pretrained.translator import TOKENIZER, Translator, load
from transformer_lib.training.evaluate import RECIPE, load_corpus
from transformer_lib.training.recipe import Recipe
from transformer_lib.training.runs import fit


@dataclass(frozen=True)
class Data:
    """What a recipe's data come to.

    Attributes:
        corpus: the sentences, in the direction of the recipe.
        tokenizer: learned from the training sentences of both languages.
        steps: what each training step learns from.
        valid: batches to measure the loss on.
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
        ValueError: there is no such corpus, or no sentence is short enough.
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
    ids = {"bos_id": tokenizer.bos_id, "pad_id": tokenizer.pad_id}
    training = recipe.training
    steps = Steps(
        train, training.batch_tokens, training.batches_a_step, training.seed, **ids
    )
    batches = list(token_batches(valid, training.batch_tokens, **ids))
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
        resume: go on with the run in the folder.
        progress: show a progress bar.

    Returns:
        The model as it was written, in half precision.

    Raises:
        FileExistsError: the folder holds a run, and it is not to be resumed.
        ValueError: it is to be resumed, but with another recipe or other data.
    """
    folder = Path(folder)
    if is_first_process():
        _claim(folder, data.tokenizer, resume)
    with torch.random.fork_rng():
        torch.manual_seed(recipe.training.seed)
        model = Transformer(recipe.model_config(len(data.tokenizer)))
    fit(model, recipe, data.steps, data.valid, folder, progress)
    translator = Translator(model.cpu(), data.tokenizer)
    if is_first_process():
        translator.save(folder)
        write_text(folder / RECIPE, json.dumps(asdict(recipe), indent=1) + "\n")
        translator = load(folder)
    return translator


def _claim(folder: Path, tokenizer: Tokenizer, resume: bool) -> None:
    """See to it that the folder is new, or holds the run to be gone on with."""
    if not (folder / TOKENIZER).exists():
        tokenizer.save(folder / TOKENIZER)
        return
    if not resume:
        raise FileExistsError(f"{folder} holds a run; --resume goes on with it")
    theirs = Tokenizer.load(folder / TOKENIZER)
    if theirs.to_json() != tokenizer.to_json():
        raise ValueError(
            f"the run in {folder} was begun with other data: its tokenizer has "
            f"{len(theirs)} tokens, this one {len(tokenizer)}"
        )


def _encode(tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]]) -> list:
    return [(tokenizer.encode(src), tokenizer.encode(tgt)) for src, tgt in pairs]


def is_first_process() -> bool:
    """Say whether this is the process that writes files, of those of `torchrun`."""
    return os.environ.get("RANK", "0") == "0"
