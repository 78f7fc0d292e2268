"""How many threads a computation may use."""

from __future__ import annotations

import os


def n_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
