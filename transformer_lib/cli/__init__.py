"""The commands: `python -m transformer_lib translate | train | score`."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "translate": "translate sentences with a shipped model or one of your own",
    "train": "train a translator or a classifier as a recipe says",
    "score": "measure a model on the test sentences of its corpus",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Hand the command line to the command that its first word names."""
    first, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if first in COMMANDS:
        import_module(f"transformer_lib.cli.{first}").main(rest)
        return
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="\n".join(
            ["The book's commands; each has a --help of its own.", ""]
            + [f"  {name:10} {does}" for name, does in COMMANDS.items()]
        ),
    )
    parser.add_argument("command", choices=COMMANDS, metavar="command")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of the command")
    parser.parse_args([first, *rest])
