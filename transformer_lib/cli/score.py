"""The command that measures: `python -m transformer_lib score grammar`.

It translates the test sentences of a model's corpus and prints the scores; without a
name, it scores every shipped model. The scores on the model cards come from here. A
corpus that is not part of the package is downloaded, or read from a folder of yours.
Files of your own must hold what they held when the model was trained.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace

from transformer_lib.cli.models import fastest
from transformer_lib.cli.shell import new_parser
from transformer_lib.pretrained.translator import load, shipped_models
from transformer_lib.runs.evaluate import (
    describe,
    evaluate,
    load_corpus_of,
    read_recipe_of,
)
from transformer_lib.runs.recipe import Recipe


def recipe_of(name: str, **data: str | None) -> Recipe:
    """Return a model's recipe, with other values in [data] where some are given.

    Raises:
        ValueError: the model was not trained on two files, and there are others.
    """
    recipe = read_recipe_of(name)
    chosen = {key: value for key, value in data.items() if value}
    if recipe.data.corpus and "source" in chosen:
        raise ValueError(
            f"{name} was trained on the corpus {recipe.data.corpus}, not on two files"
        )
    return replace(recipe, data=replace(recipe.data, **chosen))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, measure, and print the scores."""
    parser = new_parser("score", "Measure models on the test part of their corpus.")
    add = parser.add_argument
    add("model", nargs="*", help="name or folder (default: the shipped)")
    add("--source", help="where the file of source sentences is now, of a run on two")
    add("--target", help="where the file of their translations is now")
    add("--tokenize", help="how BLEU splits words: 13a, zh, ja-mecab, char, flores200")
    options = parser.parse_args(arguments)
    if bool(options.source) != bool(options.target):
        parser.error("--source and --target go together")
    for name in options.model or shipped_models():
        translator = fastest(load(name))
        files = {"source": options.source, "target": options.target}
        recipe = recipe_of(name, **files, bleu_tokenize=options.tokenize)
        corpus = load_corpus_of(name, recipe)
        result = evaluate(translator, corpus, recipe, sys.stderr.isatty())
        sys.stdout.write(f"{name}\n{describe(result)}\n")
