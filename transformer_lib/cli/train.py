"""The command that trains: `python -m transformer_lib train --config grammar`.

Without an argument it trains on the sentences inside the package. It needs no network
and no accelerator, and uses one where there is one. With `--source` and `--target` it
trains on two text files of yours. With `--resume` it resumes a run that was stopped.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from transformer_lib.cli.models import fastest
from transformer_lib.cli.shell import new_parser, say
from transformer_lib.fast import keep_freed_memory
from transformer_lib.files import RECIPE, write_text
from transformer_lib.pretrained.translator import SCORES
from transformer_lib.runs import classification, translation
from transformer_lib.runs.evaluate import describe, evaluate
from transformer_lib.runs.recipe import ClassifierTraining, read_recipe

DEFAULT = "home-assistant"  # a recipe whose sentences are inside the package


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, train, and print the scores."""
    parser = new_parser("train", "Train a translator or classifier as a recipe says.")
    add = parser.add_argument
    add("--config", default=DEFAULT, help=f"shipped recipe or TOML file ({DEFAULT})")
    add("--source", help="a file of your own sentences, one a line, to learn from")
    add("--target", help="the file of their translations, in the same lines")
    add("--out", help="folder of the run (default: runs/NAME)")
    add(
        "--resume", action="store_true", help="resume the run after its last checkpoint"
    )
    add("--quiet", action="store_true", help="show no progress bar")
    options = parser.parse_args(arguments)
    if bool(options.source) != bool(options.target):
        parser.error("--source and --target go together")
    folder = Path(options.out or f"runs/{Path(options.source or options.config).stem}")
    progress = sys.stderr.isatty() and not options.quiet
    keep_freed_memory()
    own = {}
    if options.source:
        files = {"source": options.source, "target": options.target}
        own = {name: str(Path(file).resolve()) for name, file in files.items()}
        own.update(corpus="", reverse=False)
    recipe = read_recipe(options.config, **own)
    if not options.resume and (folder / RECIPE).exists():
        raise FileExistsError(f"{folder} holds a run already; --resume resumes it")
    if options.resume and not (folder / RECIPE).exists():
        raise FileNotFoundError(f"{folder} holds no run to resume: it has no {RECIPE}")
    if isinstance(recipe.training, ClassifierTraining):
        data = classification.prepare(recipe)
        say(data.notes)
        begun = time.perf_counter()
        classifier = classification.train(recipe, data, folder, progress)
        seconds = time.perf_counter() - begun
        scores = classification.describe(classifier, data)
    else:
        data = translation.prepare(recipe)
        say(data.notes)
        begun = time.perf_counter()
        translator = translation.train(recipe, data, folder, progress)
        seconds = time.perf_counter() - begun
        result = {
            **evaluate(fastest(translator), data.corpus, recipe, progress),
            "seconds": seconds,
        }
        text = json.dumps(result, default=asdict, ensure_ascii=False, indent=1)
        write_text(folder / SCORES, text + "\n")
        scores = describe(result)
    sys.stdout.write(f"{folder}: trained in {seconds:.0f} seconds\n{scores}")
