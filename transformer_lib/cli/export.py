"""The command that hands a model on: `python -m transformer_lib export runs/mine`.

It writes a folder that other programs open: transformers, CTranslate2, ONNX Runtime.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from transformer_lib.cli.shell import EXIT_CODES
from transformer_lib.convert.export import FORMATS, export
from transformer_lib.pretrained.translator import load, read_terms


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib export",
        description="Write a translator as a folder that other programs open.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("model", help="name of a shipped model, or the folder of a run")
    parser.add_argument(
        "--to",
        required=True,
        choices=FORMATS,
        help="marian: transformers and CTranslate2, for post-norm models; pegasus: the "
        "same for pre-norm models; onnx: ONNX Runtime",
    )
    parser.add_argument("--out", help="a new folder (default: NAME-FORMAT)")
    options = parser.parse_args(arguments)
    folder = Path(options.out or f"{Path(options.model).name}-{options.to}")
    export(load(options.model), folder, options.to, read_terms(options.model))
    sys.stdout.write(f"{folder}: its README.md has a program that translates\n")
