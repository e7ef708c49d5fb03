"""Settings for every test: notebooks are replayed as they were stored."""

import os

import pytest

from book._ext.figures import MIME as PLOT
from book._ext.figures import NARROW
from book._ext.notebooks import KERNEL_ENV

os.environ.update(KERNEL_ENV)

# They train for more than half a minute: `make test-slow` replays them.
LONG = [
    "00_one_sitting",
    "10_training",
    "14_reading_attention",
    "15_classifier",
    "18_a_language_model",
    "diagnosis",
    "exercises",
    "practice",
]


def pytest_itemcollected(item):
    """Keep the long notebooks for later."""
    if item.path.suffix == ".ipynb" and item.path.stem in LONG:
        item.add_marker(pytest.mark.slow)


def pytest_collectstart(collector):
    """Let nbval pass over how plots look, as it does for every PNG."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += (PLOT, NARROW, "image/svg+xml")
