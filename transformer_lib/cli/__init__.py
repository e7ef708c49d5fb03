"""The commands: `python -m transformer_lib translate | train | score | export`."""

import sys
from collections.abc import Sequence
from importlib import import_module

from transformer_lib.cli.shell import good_manners, new_parser

COMMANDS = {
    "translate": "translate sentences with a shipped model or one of your own",
    "train": "train a translator or a classifier as a recipe says",
    "score": "measure a model on the test sentences of its corpus",
    "export": "write a translator as a folder that other programs open",
}
# What the package installs with an extra only, by command.
EXTRAS = {"train": "train", "score": "train", "export": "export"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Hand the command line to the command that its first word names."""
    first, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    with good_manners():
        if first in COMMANDS:
            run(first, rest)
            return
        parser = new_parser("", "The book's commands. Each has a --help of its own.")
        parser.usage = f"%(prog)s {{{','.join(COMMANDS)}}} ..."
        commands = parser.add_subparsers(title="commands", metavar="command")
        for name, does in COMMANDS.items():
            commands.add_parser(name, help=does)
        parser.parse_args([first])


def run(command: str, arguments: Sequence[str]) -> None:
    """Run a command; say what to install where a package is missing."""
    try:
        import_module(f"transformer_lib.cli.{command}").main(arguments)
    except ModuleNotFoundError as error:
        if command not in EXTRAS:
            raise
        raise ImportError(
            f"{command} needs {error.name}, which is not installed: "
            f'pip install "transformer-lib[{EXTRAS[command]}]"'
        ) from None
