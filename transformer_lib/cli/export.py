"""The command that hands a model on: `python -m transformer_lib export runs/mine`.

It writes a folder that other programs open: transformers and CTranslate2.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from transformer_lib.cli.shell import new_parser
from transformer_lib.convert.export import export
from transformer_lib.pretrained.translator import load, read_terms


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, and write the folder."""
    parser = new_parser("export", "Write a translator for other programs to open.")
    add = parser.add_argument
    add("model", help="name of a shipped model, or the folder of a run")
    add("--out", help="a new folder (default: NAME-exported)")
    options = parser.parse_args(arguments)
    folder = Path(options.out or f"{Path(options.model).name}-exported")
    export(load(options.model), folder, read_terms(options.model))
    sys.stdout.write(f"{folder}: its README.md says how to translate with it\n")
