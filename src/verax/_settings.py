"""Thresholds between code paths: compiled or array calls, exact or in bins, whole or in parts.

The path changes time and memory, and results within the error that they state. Modules read `settings.NAME`
at the time of use, so a change takes effect at once, in all threads. Forked worker processes inherit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class _Settings:
    """All thresholds, with their units and the reasons for their defaults."""

    # ---- compiled loops and threads ------------------------------------------------------------------

    # Whether compiled loops may be used at all. Without numba there are none, whatever this says.
    kernels: bool = True
    # Probabilities. Array calls take a few milliseconds for fewer, and loading a kernel takes longer.
    compiled_from: int = 2**19
    # Probabilities in a part of many: such parts share the time of loading.
    compiled_in_parts_from: int = 2**12
    # Probabilities that a process scores by array calls before it loads a kernel: both take about as long.
    compiled_at_once: int = 2**23
    # Probabilities. The launch of a GPU kernel takes longer than array calls on fewer.
    gpu_from: int = 2**19
    # Threads that share a computation; None: one for each core that this process may use.
    cores: int | None = None


settings = _Settings()


@contextmanager
def changed(**values: Any) -> Iterator[None]:
    """Change settings for a while, in all threads.

    >>> with changed(compiled_from=0):
    ...     settings.compiled_from
    0
    >>> settings.compiled_from
    524288
    """
    before = {name: getattr(settings, name) for name in values}
    try:
        for name, value in values.items():
            setattr(settings, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)
