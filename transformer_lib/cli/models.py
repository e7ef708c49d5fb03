"""The translator that a command is given, or a sentence on what was given instead."""

import json
from pathlib import Path

from transformer_lib.files import RECIPE
from transformer_lib.pretrained.translator import (
    CONFIG,
    Translator,
    load,
    shipped_models,
)


def load_translator(name: str) -> Translator:
    """Read a shipped translator, or the one in the folder of a run.

    Raises:
        FileNotFoundError: there is none, or its run isn't finished.
        ValueError: it is a classifier, or damaged.
    """
    if name in shipped_models():
        return load(name)
    folder = Path(name)
    if (folder / RECIPE).is_file() and not (folder / CONFIG).is_file():
        raise FileNotFoundError(
            f"the run in {name} is not finished: the command that started it, with "
            "--resume, goes on with it"
        )
    if is_classifier(folder):
        raise ValueError(f"{name} is a classifier; this command is for translators")
    return load(name)


def is_classifier(folder: Path) -> bool:
    """Say whether a folder holds a classifier; not whether it is whole."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "classes" in config
