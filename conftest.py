"""Settings for every test: notebooks are replayed as they were stored."""

import os

import pytest

from book._ext.figures import MIME as PLOT
from book._ext.figures import NARROW
from book._ext.notebooks import KERNEL_ENV

os.environ.update(KERNEL_ENV)

# They compute for more than twenty seconds: `make test-slow` replays them.
LONG = [
    "00_one_sitting",
    "05_layer_norm_and_residuals",
    "10_training",
    "11_generating_a_translation",
    "12_incremental_decoding",
    "13_quality",
    "14_reading_attention",
    "15_classifier",
    "17_from_2017_to_today",
    "18_a_language_model",
    "diagnosis",
    "exercises",
    "practice",
]


def pytest_itemcollected(item):
    """Keep the long notebooks for later."""
    if item.path.suffix == ".ipynb" and item.path.stem in LONG:
        item.add_marker(pytest.mark.slow)


def pytest_xdist_make_scheduler(config, log):
    """Give a process a file at a time, whose tests share what it prepares.

    The cells of a notebook stay together like that. Tests that open pages share
    nothing: they are given one by one.
    """
    from xdist.scheduler import LoadFileScheduling

    class FilesAndPages(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return nodeid if "[chromium" in nodeid else super()._split_scope(nodeid)

    return FilesAndPages(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collectstart(collector):
    """Let nbval pass over how plots look, as it does for every PNG."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += (PLOT, NARROW, "image/svg+xml")
