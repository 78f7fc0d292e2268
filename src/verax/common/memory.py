"""Memory that was freed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache

import numpy as np

# An array of up to 32 MB raises the limits when it is freed, a larger one does not.
_LARGE = 31 * 2**20


def keep_freed() -> None:
    """Let the C library (glibc) keep some freed memory for what comes next, 64 MB or less per thread.

    Parts of rows come one after the other and their arrays are alike. By default they may be given back and
    fetched again for every part, which takes a quarter of the time. The library itself changes its limits
    when a large array is freed, which costs nothing if nobody wrote to it.
    """
    np.empty(_LARGE, np.uint8)


def give_back() -> None:
    """Hand freed memory back to the system, where the C library (glibc) keeps it for later."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    return getattr(ctypes.CDLL(None), "malloc_trim", None)
