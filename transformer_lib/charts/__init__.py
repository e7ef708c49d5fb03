"""Interactive charts, with a still picture of each for everywhere else.

    from transformer_lib.charts import attention_explorer, show

    show(attention_explorer(maps, q_tokens, k_tokens), alt="Heat map of …")

Each function returns an Altair chart, and `show` displays it. A chart carries all its
numbers, so it works in a web page without a kernel or a network. The numbers of a map
are stored as text ("0.25 0.75"), which keeps a notebook small; the chart splits it.

Each name below is imported when it is first used.
"""

from importlib import import_module
from typing import Any

_WHERE = {
    "attention": (
        "SentenceMaps attention_explorer divisor_explorer head_type_explorer "
        "sentence_explorer"
    ),
    "batches": "batch_explorer",
    "beam_search": "Branch beam_tree",
    "cache": "cache_explorer",
    "depth": "depth_explorer",
    "masks": "mask_explorer",
    "model": "model_explorer",
    "parts": "mime_bundle show",
    "positions": "position_explorer",
    "schedule": "schedule_explorer",
    "scores": "score_explorer",
    "similarity": "similarity_explorer",
    "translator": "show_part trace_translation",
    "variants": "difference_explorer",
}
_HOME = {name: module for module, names in _WHERE.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import a chart's module when the chart is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the charts beside what is loaded already."""
    return sorted({*globals(), *__all__})
