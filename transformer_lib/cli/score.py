"""The command that measures: `python -m transformer_lib score grammar`.

It translates the test sentences of a model's corpus and prints the scores; without a
name, it scores every shipped model. The scores on the model cards come from here. A
corpus that is not part of the package is downloaded, or read from a folder of yours.
"""

import sys
from collections.abc import Sequence

from transformer_lib.cli.shell import new_parser
from transformer_lib.pretrained.translator import load, shipped_models
from transformer_lib.runs.evaluate import describe, evaluate, read_recipe_of


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, measure, and print the scores."""
    parser = new_parser("score", "Measure models on the test part of their corpus.")
    parser.add_argument(
        "model", nargs="*", help="name or folder (default: the shipped)"
    )
    options = parser.parse_args(arguments)
    for name in options.model or shipped_models():
        result = evaluate(load(name).fast(), read_recipe_of(name), sys.stderr.isatty())
        sys.stdout.write(f"{name}\n{describe(result)}\n")
