"""Memory that was freed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache


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
