"""The command that trains: `python -m transformer_lib train --config grammar`.

Without an argument it trains on the sentences inside the package. It needs no network
and no accelerator, and uses one where there is one. With `--source` and `--target` it
trains on two text files of yours. With `--resume` it resumes a run that was
interrupted.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from transformer_lib.acceleration import keep_freed_memory
from transformer_lib.cli.shell import EXIT_CODES
from transformer_lib.files import write_text
from transformer_lib.pretrained.translator import SCORES
from transformer_lib.runs import classification, translation
from transformer_lib.runs.evaluate import describe, evaluate
from transformer_lib.runs.recipe import ClassifierTraining, read_recipe
from transformer_lib.runs.run import require_new


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, train, and print the scores."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if bool(options.source) != bool(options.target):
        parser.error("--source and --target go together")
    folder = Path(options.out or f"runs/{Path(options.source or options.config).stem}")
    progress = sys.stderr.isatty() and not options.quiet
    keep_freed_memory()
    own = {}
    if options.source:
        own = {"corpus": "", "reverse": False,
               "source": str(Path(options.source).resolve()),
               "target": str(Path(options.target).resolve())}  # fmt: skip
    recipe = read_recipe(options.config, **own)
    if not options.resume:
        require_new(folder)
    if isinstance(recipe.training, ClassifierTraining):
        data, begun = classification.prepare(recipe), time.perf_counter()
        classifier = classification.train(recipe, data, folder, progress)
        seconds = time.perf_counter() - begun
        scores = classification.describe(classifier, data)
    else:
        data, begun = translation.prepare(recipe), time.perf_counter()
        translator = translation.train(recipe, data, folder, progress)
        seconds = time.perf_counter() - begun
        result = {**evaluate(translator, recipe, progress), "seconds": seconds}
        text = json.dumps(result, ensure_ascii=False, indent=1)
        write_text(folder / SCORES, text + "\n")
        scores = describe(result)
    sys.stdout.write(f"{folder}: trained in {seconds:.0f} seconds\n{scores}")


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
