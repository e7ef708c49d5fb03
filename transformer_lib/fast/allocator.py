"""Memory that the C library keeps instead of giving it back at every step."""

import ctypes

# From malloc.h of glibc.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_KEPT = 1 << 30  # bytes


def keep_freed_memory() -> bool:
    """Let this process keep the memory of freed tensors for the next ones.

    glibc gives large buffers back to the system as soon as they are freed. A training
    step allocates the same ones again, and the system fills every page with zeros
    first: up to a quarter of the time of a step on a CPU. Other C libraries do as they
    please.

    Returns:
        Whether the C library is one that was told so.
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # no Linux, or another C library
        return False
    thresholds = (_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD)
    return all(mallopt(name, _LARGEST_KEPT) == 1 for name in thresholds)
