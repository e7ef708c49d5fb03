"""The command that translates: `python -m transformer_lib translate "Ein Hund rennt."`.

The default model translates German into English and has learned from captions of
pictures. Without a sentence, the command reads standard input, one sentence per line.
"""

import argparse
import sys
from collections.abc import Sequence

from transformer_lib.cli.shell import EXIT_CODES, read_lines
from transformer_lib.pretrained.translator import DEFAULT, load


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, translate, and print one translation per line."""
    options = _parser().parse_args(arguments)
    try:
        sentences = options.sentence or read_lines()
        translations = load(options.model).translate(sentences, options.beams)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    for translation in translations:
        sys.stdout.write(translation + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib translate",
        description="Translate sentences with a shipped model or one of your own.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("sentence", nargs="*", help="default: lines of standard input")
    parser.add_argument(
        "--model",
        default=DEFAULT,
        help="name of a shipped model, or the folder of a run (default: %(default)s)",
    )
    parser.add_argument(
        "--beams", type=int, default=4, help="1 for greedy search (default: 4)"
    )
    return parser
