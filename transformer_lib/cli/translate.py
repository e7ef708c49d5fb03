"""The command that translates, `python -m transformer_lib translate "Hallo Welt."`.

The default model translates German sentences of a smart home into English; everyone
may use it for everything. Whoever chooses another one is told its terms. Without a
sentence, the command reads standard input, one sentence per line.
"""

import argparse
import sys
from collections.abc import Sequence

from transformer_lib.cli.shell import EXIT_CODES, new_parser, read_lines
from transformer_lib.pretrained.translator import load, read_terms, shipped_models

FREE = "home-assistant"  # a model that may be used for everything


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
    lines = options.sentence or read_lines()
    sentences = [line for line in lines if line.strip()]
    translations = iter(load(options.model).translate(sentences, options.beams))
    terms = read_terms(options.model)
    if terms and "no open license" in terms and sys.stderr:
        sys.stderr.write(f"The terms of {options.model}: {terms}\n")
    for line in lines:  # a blank line has a blank line for its translation
        sys.stdout.write((next(translations) if line.strip() else "") + "\n")
