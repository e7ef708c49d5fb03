"""Settings for every test: notebooks are replayed as they were stored."""

import os

import pytest

from book._ext.figures import MIME as PLOT
from book._ext.figures import NARROW
from book._ext.notebooks import KERNEL_ENV

os.environ.update(KERNEL_ENV)

# They compute for more than half a minute: `make test-slow` replays them.
LONG = [
    "00_one_sitting",
    "05_layer_norm_and_residuals",
    "10_training",
    "11_generating_a_translation",
    "14_reading_attention",
    "15_classifier",
    "17_from_2017_to_today",
    "18_a_language_model",
    "diagnosis",
    "exercises",
    "practice",
]


def pytest_itemcollected(item):
    """Say which tests one process runs, and keep the long notebooks for later.

    Cells of a notebook belong together, and the tests of a file, which share what it
    prepares. Those that open pages share nothing.
    """
    if "page" not in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.xdist_group(item.path.stem))
    if item.path.suffix == ".ipynb" and item.path.stem in LONG:
        item.add_marker(pytest.mark.slow)


def pytest_collectstart(collector):
    """Let nbval pass over how plots look, as it does for every PNG."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += (PLOT, NARROW, "image/svg+xml")
