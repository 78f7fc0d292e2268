"""Compiled histograms: the numbers of bins, and sums and extremes by bin."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from verax.kernels.arithmetic import OPTIONS


@numba.njit(**OPTIONS)
def bin_numbers(
    key: Any, near: float, shift: int, first: int, top: int, infinite: int, one: int, out: Any
) -> None:
    """The numbers of bins, as `engines.histograms.bin_numbers` has them.

    With `one` not zero, keys are probabilities: those above a half are counted down from `one`.
    """
    size = 1024
    buffer = np.empty(size)
    bits = buffer.view(np.int64)
    for start in range(0, key.size, size):
        n = min(size, key.size - start)
        for i in range(n):
            x = key[start + i]
            x = 1.0 - x if one != 0 and x > 0.5 else x
            buffer[i] = abs(x) + near
        for i in range(n):
            x = key[start + i]
            upper = one != 0 and x > 0.5
            x = 1.0 - x if upper else x
            number = min((bits[i] >> shift) - first, top)
            number = infinite if abs(x) == np.inf else number
            number = 0 if x == 0.0 else number + 1
            number = -number if x < 0.0 else number
            out[start + i] = one - number if upper else number


@numba.njit(**OPTIONS)
def count_keys(keys: Any, first: int, counts: Any) -> None:
    """Count the rows that have each key from `first` on."""
    for i in range(keys.size):
        counts[keys[i] - first] += 1


@numba.njit(**OPTIONS)
def add_columns(keys: Any, first: int, columns: Any, sums: Any) -> None:
    """Add the columns of each row, a tuple of arrays, to the sums of its key."""
    for i in range(keys.size):
        at = keys[i] - first
        for c in range(len(columns)):
            sums[at, c] += columns[c][i]


@numba.njit(**OPTIONS)
def find_extremes(keys: Any, first: int, columns: Any, least: Any, most: Any) -> None:
    """Find the smallest and the largest of each column by key."""
    for i in range(keys.size):
        at = keys[i] - first
        for c in range(len(columns)):
            x = columns[c][i]
            if x < least[at, c]:
                least[at, c] = x
            if x > most[at, c]:
                most[at, c] = x


@numba.njit(**OPTIONS)
def add_events(key: Any, happened: Any, numbers: Any, sums: Any, least: Any, most: Any) -> Any:
    """Sum up an event by bin: its rows, those where it happened, and its probability `key`, with the
    extremes.

    Returns the sums over all rows of the probability, at most 1, of where the event happened, of
    probability * (1 - probability), and of the squared error.
    """
    claimed, hits, variance, squared = 0.0, 0.0, 0.0, 0.0
    for i in range(key.size):
        x, at, hit = key[i], numbers[i], 1.0 if happened[i] else 0.0
        claim = min(x, 1.0)
        sums[at, 0] += 1.0
        sums[at, 1] += hit
        sums[at, 2] += claim
        if x < least[at]:
            least[at] = x
        if x > most[at]:
            most[at] = x
        claimed += claim
        hits += hit
        variance += claim * (1.0 - claim)
        gap = hit - x
        squared += gap * gap
    return claimed, hits, variance, squared
