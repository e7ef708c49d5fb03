"""What the engine is worth for one sentence: `python benchmarks/translate.py`.

One translator decodes with the model's own modules, the other with the engine that
`Translator.fast` makes once. Both translate the same sentence, in turns.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from functools import cache, partial
from itertools import product

from turns import compare, take_turns, working

from transformer_lib import Translator, load
from transformer_lib.fast import keep_freed_memory

SENTENCES = {
    "home-assistant": "Das Licht in der Küche konnte nicht eingeschaltet werden.",
    "multi30k-de-en": "Zwei Kinder spielen mit einem Hund im Schnee.",
}
WAYS: dict[str, Callable[[Translator], Translator]] = {
    "engine": Translator.fast,
    "own modules": lambda translator: translator,
}


def make_translation(way: str) -> Callable[[str, int], list[str]]:
    """Return a function that translates a model's sentence with so many beams."""
    keep_freed_memory()
    translator = cache(lambda model: WAYS[way](load(model)))
    return lambda model, n_beams: translator(model).translate(
        [SENTENCES[model]], n_beams
    )


def main() -> None:
    """Read the command line, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    contestants = {way: partial(make_translation, way) for way in WAYS}
    with working(contestants, options.threads) as turns:
        for model, n_beams in product(SENTENCES, (1, 4)):
            take_turns(turns, 3, model, n_beams)  # to warm up
            times = take_turns(turns, options.rounds, model, n_beams)
            usual = {way: 1000 * statistics.median(t) for way, t in times.items()}
            sys.stdout.write(
                f"{model:15} {n_beams} beams: "
                + ", ".join(f"{way} {ms:.1f} ms" for way, ms in usual.items())
                + f", {compare(times['own modules'], times['engine'])}\n"
            )


if __name__ == "__main__":
    main()
