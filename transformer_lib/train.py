"""The command that trains: `python -m transformer_lib.train --config grammar`.

Without an argument it trains on the sentences inside the package. It needs no network
and no accelerator, uses one where there is one, and goes on with `--resume` where it
was cut off. `torchrun --nproc-per-node 4 -m transformer_lib.train ...` shares the work.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from transformer_lib import classifier_runs
from transformer_lib.allocator import keep_freed_memory
from transformer_lib.batches import Batch, limit_lengths, token_batches
from transformer_lib.corpora import ParallelCorpus
from transformer_lib.files import write_text
from transformer_lib.model import Transformer
from transformer_lib.pretrained import SCORES, TOKENIZER, Translator, load
from transformer_lib.recipes import ClassifierTraining, Recipe, read_recipe
from transformer_lib.runs import fit
from transformer_lib.score import RECIPE, describe, evaluate, load_corpus
from transformer_lib.steps import Steps
from transformer_lib.tokenizer import Tokenizer


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
    if _is_first_process():
        _claim(folder, data.tokenizer, resume)
    with torch.random.fork_rng():
        torch.manual_seed(recipe.training.seed)
        model = Transformer(recipe.model_config(len(data.tokenizer)))
    fit(model, recipe, data.steps, data.valid, folder, progress)
    translator = Translator(model.cpu(), data.tokenizer)
    if _is_first_process():
        translator.save(folder)
        write_text(folder / RECIPE, json.dumps(asdict(recipe), indent=1) + "\n")
        translator = load(folder)
    return translator


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, train, and print the scores."""
    options = _parser().parse_args(arguments)
    folder = Path(options.out or f"runs/{Path(options.config).stem}")
    progress = sys.stderr.isatty() and not options.quiet and _is_first_process()
    keep_freed_memory()
    try:
        recipe = read_recipe(options.config)
        classify = isinstance(recipe.training, ClassifierTraining)
        run = _train_classifier if classify else _train_translator
        seconds, scores = run(recipe, folder, options.resume, progress)
    except (ValueError, TypeError, OSError) as error:
        sys.exit(f"error: {error}")
    if _is_first_process():
        sys.stdout.write(f"{folder}: trained in {seconds:.0f} seconds\n{scores}")


def _train_translator(
    recipe: Recipe, folder: Path, resume: bool, progress: bool
) -> tuple[float, str]:
    data = prepare(recipe)
    begun = time.perf_counter()
    translator = train(recipe, data, folder, resume, progress)
    seconds = time.perf_counter() - begun
    if not _is_first_process():
        return seconds, ""
    result = {**evaluate(translator, recipe, progress), "seconds": seconds}
    write_text(folder / SCORES, json.dumps(result, ensure_ascii=False, indent=1) + "\n")
    return seconds, describe(result)


def _train_classifier(
    recipe: Recipe, folder: Path, resume: bool, progress: bool
) -> tuple[float, str]:
    data = classifier_runs.prepare(recipe)
    begun = time.perf_counter()
    classifier = classifier_runs.fit(recipe, data, folder, resume, progress)
    return time.perf_counter() - begun, classifier_runs.describe(classifier, data)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib.train", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "--config",
        default="home-assistant",
        help="name of a shipped recipe, or a TOML file (default: %(default)s)",
    )
    parser.add_argument("--out", help="folder of the run (default: runs/NAME)")
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run in the folder"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    return parser


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


def _is_first_process() -> bool:
    return os.environ.get("RANK", "0") == "0"


if __name__ == "__main__":
    main()
