"""The command that trains: `python -m transformer_lib train --config grammar`.

Without an argument it trains on the sentences inside the package. It needs no network
and no accelerator, and uses one where there is one. With `--source` and `--target` it
trains on two text files of yours. With `--resume` it resumes a run that was
interrupted. `torchrun --nproc-per-node 4 -m transformer_lib train ...` shares the work.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from transformer_lib.acceleration import keep_freed_memory
from transformer_lib.cli.shell import EXIT_CODES
from transformer_lib.files import write_text
from transformer_lib.pretrained.translator import SCORES
from transformer_lib.training import classification
from transformer_lib.training.evaluate import describe, evaluate
from transformer_lib.training.interruption import Interrupted, stopped_at_once
from transformer_lib.training.recipe import (
    RECIPE,
    ClassifierTraining,
    DataRecipe,
    Recipe,
    read_recipe,
)
from transformer_lib.training.run import is_first_process
from transformer_lib.training.translation import prepare, train


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, train, and print the scores."""
    options = _parser().parse_args(arguments)
    name = Path(options.source or options.config).stem
    folder = Path(options.out or f"runs/{name}")
    progress = sys.stderr.isatty() and not options.quiet and is_first_process()
    keep_freed_memory()
    try:
        with stopped_at_once():
            recipe = read_recipe(options.config)
            if options.source or options.target:
                recipe = replace(recipe, data=_own_files(recipe, options))
            classify = isinstance(recipe.training, ClassifierTraining)
            run = _train_classifier if classify else _train_translator
            seconds, scores = run(recipe, folder, options.resume, progress)
    except (ValueError, TypeError, OSError) as error:
        sys.exit(f"error: {error}")
    except Interrupted as interrupted:
        if is_first_process():
            sys.stderr.write(f"{_last_words(interrupted, folder)}\n")
        sys.exit(interrupted.exit_code)
    if is_first_process():
        sys.stdout.write(f"{folder}: trained in {seconds:.0f} seconds\n{scores}")


def _last_words(interrupted: Interrupted, folder: Path) -> str:
    """Say what is saved, and how to go on."""
    if not (folder / RECIPE).exists():
        return f"{interrupted} before the first step: nothing is lost"
    if interrupted.step is None:
        return (
            f"{interrupted}: what was saved before is in {folder}; the same command "
            "with --resume continues from there"
        )
    return (
        f"{interrupted} after step {interrupted.step}: the state is saved in {folder}; "
        "the same command with --resume continues from there"
    )


def _own_files(recipe: Recipe, options: argparse.Namespace) -> DataRecipe:
    """Return what a recipe says of data, with two files in place of its corpus."""
    paths = [str(Path(file).resolve()) if file else ""
             for file in (options.source, options.target)]  # fmt: skip
    own = {"corpus": "", "source": paths[0], "target": paths[1], "reverse": False}
    return replace(recipe.data, **own)


def _train_translator(
    recipe: Recipe, folder: Path, resume: bool, progress: bool
) -> tuple[float, str]:
    data = prepare(recipe)
    begun = time.perf_counter()
    translator = train(recipe, data, folder, resume, progress)
    seconds = time.perf_counter() - begun
    if not is_first_process():
        return seconds, ""
    result = {**evaluate(translator, recipe, progress), "seconds": seconds}
    write_text(folder / SCORES, json.dumps(result, ensure_ascii=False, indent=1) + "\n")
    return seconds, describe(result)


def _train_classifier(
    recipe: Recipe, folder: Path, resume: bool, progress: bool
) -> tuple[float, str]:
    data = classification.prepare(recipe)
    begun = time.perf_counter()
    classifier = classification.train(recipe, data, folder, resume, progress)
    return time.perf_counter() - begun, classification.describe(classifier, data)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib train",
        description="Train a translator or a classifier as a recipe says.",
        epilog=EXIT_CODES,
    )
    parser.add_argument(
        "--config",
        default="home-assistant",
        help="name of a shipped recipe, or a TOML file (default: %(default)s)",
    )
    parser.add_argument(
        "--source",
        metavar="FILE",
        help="train on sentences of your own, one a line, in place of the recipe's",
    )
    parser.add_argument(
        "--target", metavar="FILE", help="their translations, in the same lines"
    )
    parser.add_argument("--out", help="folder of the run (default: runs/NAME)")
    parser.add_argument(
        "--resume", action="store_true", help="resume the run in the folder"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    return parser
