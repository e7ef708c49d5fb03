"""The translator that a command works with."""

from transformer_lib.model.modern import ModernConfig
from transformer_lib.pretrained.translator import Translator, load


def load_fast(name: str) -> Translator:
    """Read a translator; with an engine, if it is made of the parts that one knows.

    Args:
        name: as for `load`, whose errors are raised.
    """
    translator = load(name)
    has_later_parts = isinstance(translator.model.config, ModernConfig)
    return translator if has_later_parts else translator.fast()
