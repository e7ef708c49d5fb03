"""Settings for every test: notebooks are replayed as they were stored."""

import os

from book_tools.notebooks import KERNEL_ENV

os.environ.update(KERNEL_ENV)
