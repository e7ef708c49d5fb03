"""Freed memory is kept: a second tensor of the same size costs no new pages."""

import subprocess
import sys

import pytest

PAGES = """
import resource, sys
import torch
from transformer_lib.fast import keep_freed_memory
told = keep_freed_memory() if sys.argv[1] == "keep" else True
def new_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.zeros(16 << 20).add_(1)  # 64 MiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
for _ in range(10):  # the heap finds its size
    new_pages()
print(told, sum(new_pages() for _ in range(3)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is a library of Linux")
@pytest.mark.slow
def test_memory_is_kept_only_when_asked_for() -> None:
    pages = {}
    for how in ("keep", "give back"):
        command = [sys.executable, "-c", PAGES, how]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        told, pages[how] = done.stdout.split()
        if told == "False":
            pytest.skip("another C library")
    assert int(pages["keep"]) < 1000 < 10_000 < int(pages["give back"])
