"""The translator that a command works with."""

from transformer_lib.cli.shell import say
from transformer_lib.pretrained.translator import Translator


def fastest(translator: Translator) -> Translator:
    """Return a translator with an engine; without one, and a note, if none knows it."""
    try:
        return translator.fast()
    except ValueError as error:
        say([f"it takes longer, without an engine: {error}"])
        return translator
