"""The command that trains: `python -m transformer_lib train --config grammar`.

Without an argument it trains on the sentences inside the package. It needs no network
and no accelerator, and uses one where there is one. With `--source` and `--target` it
trains on two text files of yours. With `--resume` it resumes a run that was stopped.
`torchrun --nproc-per-node 2 -m transformer_lib train ... --out FOLDER` trains in
several processes, which share the batches of each step and take the same steps as one.
"""

import io
import json
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import asdict
from pathlib import Path

from transformer_lib.cli.models import fastest
from transformer_lib.cli.shell import new_parser, one_voice, say
from transformer_lib.fast import keep_freed_memory
from transformer_lib.files import RECIPE, write_text
from transformer_lib.pretrained.translator import SCORES
from transformer_lib.runs import classification, translation
from transformer_lib.runs.evaluate import describe, evaluate
from transformer_lib.runs.recipe import ClassifierTraining, read_recipe
from transformer_lib.runs.run import require_agreement, run_folder
from transformer_lib.training.processes import (
    Processes,
    are_several,
    may_speak,
    processes,
)

DEFAULT = "home-assistant"  # a recipe whose sentences are inside the package
DESCRIPTION = (
    "Train a translator or classifier as a recipe says. In several processes, on one "
    "machine or more: torchrun --nproc-per-node 2 -m transformer_lib train --config "
    "RECIPE --out FOLDER. They take the same steps as one."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, train, and print the scores."""
    with one_voice(may_speak) if are_several() else nullcontext(), processes() as group:
        _train(_read_options(arguments, group), group)


def _read_options(arguments: Sequence[str] | None, group: Processes) -> Namespace:
    """Read the command line; of several processes, the first says what is wrong."""
    parser = new_parser("train", DESCRIPTION)
    add = parser.add_argument
    add("--config", default=DEFAULT, help=f"shipped recipe or TOML file ({DEFAULT})")
    add("--source", help="a file of your own sentences, one a line, to learn from")
    add("--target", help="the file of their translations, in the same lines")
    add("--out", help="folder of the run (default: runs/NAME)")
    add(
        "--resume", action="store_true", help="resume the run after its last checkpoint"
    )
    add("--quiet", action="store_true", help="show no progress bar")
    with ExitStack() as stack:
        if not group.is_first:
            stack.enter_context(redirect_stdout(io.StringIO()))
            stack.enter_context(redirect_stderr(io.StringIO()))
        options = parser.parse_args(arguments)
        if bool(options.source) != bool(options.target):
            parser.error("--source and --target go together")
    if group.size > 1 and not options.out:
        raise ValueError(
            "several processes need --out FOLDER, the folder of the run, which all of "
            "them see"
        )
    return options


def _train(options: Namespace, group: Processes) -> None:
    """Train in the processes of the run; the first of them measures and prints."""
    folder = Path(options.out or f"runs/{Path(options.source or options.config).stem}")
    progress = sys.stderr.isatty() and not options.quiet and group.is_first
    keep_freed_memory()
    own = {}
    if options.source:
        files = {"source": options.source, "target": options.target}
        own = {name: str(Path(file).resolve()) for name, file in files.items()}
        own.update(corpus="", reverse=False)
    recipe = read_recipe(options.config, **own)
    require_agreement(recipe, group)
    if group.is_first:  # the only one that writes into it
        _require_run(folder, options.resume)
    classifies = isinstance(recipe.training, ClassifierTraining)
    kind = classification if classifies else translation
    with run_folder(folder, group):
        if classifies:
            data = classification.prepare(recipe)
        else:
            data = translation.prepare(recipe, folder, progress, group)
        if group.is_first:
            say(data.notes)
        begun = time.perf_counter()
        model = kind.train(recipe, data, folder, progress, group)
        seconds = time.perf_counter() - begun
    if not group.is_first:
        return
    if classifies:
        scores = classification.describe(model, data)
    else:
        result = {
            **evaluate(fastest(model), data.corpus, recipe, progress),
            "seconds": seconds,
        }
        text = json.dumps(result, default=asdict, ensure_ascii=False, indent=1)
        write_text(folder / SCORES, text + "\n")
        scores = describe(result)
    sys.stdout.write(f"{folder}: trained in {seconds:.0f} seconds\n{scores}")


def _require_run(folder: Path, resume: bool) -> None:
    """Refuse to begin where there is a run, and to resume where there is none."""
    if not resume and (folder / RECIPE).exists():
        raise FileExistsError(f"{folder} holds a run already; --resume resumes it")
    if resume and not (folder / RECIPE).exists():
        raise FileNotFoundError(f"{folder} holds no run to resume: it has no {RECIPE}")
