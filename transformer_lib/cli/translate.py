"""The command that translates, `python -m transformer_lib translate "Hallo Welt."`.

The default model translates German sentences of a smart home into English; everyone
may use it for everything. Whoever chooses another one is told its terms, and what a
model has learned from where it isn't sure of its translation. Without a sentence, the
command reads standard input, one sentence per line. A line that can't be translated
loses nothing but itself: a blank line takes its place, and the error names it.
"""

import argparse
import math
import sys
from collections.abc import Sequence

from transformer_lib.cli.models import fastest
from transformer_lib.cli.shell import (
    EXIT_CODES,
    new_parser,
    read_lines,
    require_characters,
    say,
)
from transformer_lib.data.batches import make_batch
from transformer_lib.data.normalize import normalize
from transformer_lib.evaluation.scores import nats_per_token
from transformer_lib.pretrained.translator import (
    Translator,
    load,
    read_terms,
    shipped_models,
)

FREE = "home-assistant"  # a model that may be used for everything
# A tenth of the captions is translated with less by the model for captions, and much
# worse (chrF 40, not 63); nine tenths of them without capital letters; all of a smart
# home. Of the model for that, two fifths of its own sentences.
SURE = 0.55


def probability(translator: Translator, source: str, translation: str) -> float:
    """Return the geometric mean of the probabilities of a translation's tokens.

    It is 0 for what the model can't read: nothing at all, or broken characters.
    """
    if refusal(translator, translation):
        return 0.0
    tokenizer = translator.tokenizer
    pair = tokenizer.encode(source), tokenizer.encode(translation)
    batch = make_batch([pair], bos_id=tokenizer.bos_id, pad_id=tokenizer.pad_id)
    return math.exp(-nats_per_token(translator.model, [batch]))


def refusal(translator: Translator, sentence: str) -> str | None:
    """Say why a sentence can't be translated; None if it can."""
    try:
        n_tokens = len(translator.tokenizer.encode(sentence))
    except ValueError as error:
        return f"can't be read: {error}"
    most = translator.model.config.max_len
    if n_tokens > most:
        return f"has {n_tokens} tokens, but the model takes at most {most}"
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, translate, and print one translation per line."""
    parser = new_parser("translate", "Translate with a shipped model or your own.")
    add = parser.add_argument
    add("sentence", nargs="*", help="default: lines of standard input")
    add("--model", default=FREE, help=f"shipped model, or folder of a run ({FREE})")
    add("--beams", type=int, default=4, help="1 for greedy search (default: 4)")
    terms = [f"  {name}: {read_terms(name)}" for name in shipped_models()]
    parser.epilog = "\n".join(["terms of the shipped models:", *terms, "", EXIT_CODES])
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    options = parser.parse_args(arguments)
    require_characters(options.sentence)
    lines = options.sentence or read_lines()
    translator = fastest(load(options.model))
    readable, refused = {}, {}  # by number; blank lines are in neither
    for number, line in enumerate(lines, start=1):
        if normalize(line):
            if why := refusal(translator, line):
                refused[number] = why
            else:
                readable[number] = line
    sentences = [*readable.values()]
    found = translator.translate(sentences, options.beams)
    terms = read_terms(options.model)
    notes = []
    if terms and "no open license" in terms:
        notes.append(f"The terms of {options.model}: {terms}")
    pairs = zip(sentences, found, strict=True)
    doubtful = [src for src, tgt in pairs if probability(translator, src, tgt) < SURE]
    if doubtful:
        known = read_terms(options.model, "Sentences") or "it"
        notes.append(
            f"{options.model} is unsure of {len(doubtful)} of {len(found)} "
            f"translations, first of {doubtful[0]!r}. It has learned from {known}"
        )
    say(notes)
    translations = dict(zip(readable, found, strict=True))
    for number in range(1, len(lines) + 1):  # a blank line for what has no translation
        sys.stdout.write(translations.get(number, "") + "\n")
    if refused:
        first, why = next(iter(refused.items()))
        raise ValueError(
            f"{'sentence' if options.sentence else 'line'} {first} {why}; "
            f"{len(refused)} of {len(refused) + len(readable)} are not translated"
        )
