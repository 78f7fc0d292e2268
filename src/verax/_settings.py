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

    # ---- exact or in bins, in memory or in parts -----------------------------------------------------

    # Distinct values, or rows, that a summary of parts keeps. It is exact up to here, in tens of megabytes.
    exact_up_to: int = 2**20
    # Bins of a summary of more values; neighbours are joined where there would be more.
    bins_up_to: int = 2**20
    # Rows that are not in memory and are read again, for what one pass cannot give: a short second pass.
    read_again_up_to: int = 2**17
    # Probabilities of a file that are held in memory. A report on this number takes about 0.8 GB, and
    # histograms give the same within small bounds, in a fraction of the time.
    held_up_to: int = 2**23
    # Bytes on disk of a file of unknown length that is held: about the same number of probabilities.
    held_bytes_up_to: int = 2**27
    # Rows of a Parquet file of lists. More are read in batches of columns, several times as fast as records.
    lists_held_up_to: int = 2**17
    # Hashes of rows that a sketch keeps. Fewer distinct rows are counted exactly.
    hashes_kept: int = 2**14
    # Rows that a method is fitted to where the rows are not in memory. Of more, these are drawn at random.
    sampled_rows: int = 100_000
    # Probabilities of a card for which the command line computes calibration without being asked: every
    # class is fitted on its own.
    calibration_up_to: int = 2**21


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
