"""Settings for every test: notebooks are replayed as they were stored."""

import os

from book_tools.figures import MIME as PLOT
from book_tools.notebooks import KERNEL_ENV

os.environ.update(KERNEL_ENV)


def pytest_collectstart(collector):
    """Let nbval pass over how plots look, as it does for every PNG."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += (PLOT, "image/svg+xml")
