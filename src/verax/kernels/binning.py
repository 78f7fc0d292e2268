"""Compiled histograms: the numbers of bins, and sums and extremes by bin."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import compiled
from verax.kernels.operations import bits


@compiled
def bin_numbers(
    key: Any, near: float, shift: int, first: int, top: int, infinite: int, one: int, out: Any
) -> None:
    """The numbers of bins, as `engines.histograms.bin_numbers` has them.

    With `one` not zero, keys are probabilities: those above a half are counted down from `one`.
    """
    for i in range(key.size):
        x = key[i]
        upper = one != 0 and x > 0.5
        x = 1.0 - x if upper else x
        number: Any = min(np.int64(bits(abs(x) + near) >> np.uint64(shift)) - first, top)
        number = infinite if abs(x) == np.inf else number
        number = 0 if x == 0.0 else number + 1
        number = -number if x < 0.0 else number
        out[i] = one - number if upper else number


@compiled
def sum_by_class(y: Any, weights: Any, losses: Any, sums: Any) -> None:
    """Add w*l, w*l*l, w*w*l and w*w*l*l of rows with these weights and finite losses to their classes."""
    for i in range(y.size):
        w, loss, own = weights[i], losses[i], sums[y[i]]
        first = w * loss
        square = w * first
        own[0] += first
        own[1] += first * loss
        own[2] += square
        own[3] += square * loss


@compiled
def count_keys(keys: Any, first: int, counts: Any) -> None:
    """Count the rows that have each key from `first` on."""
    for i in range(keys.size):
        counts[keys[i] - first] += 1


@compiled
def add_columns(keys: Any, first: int, columns: Any, sums: Any) -> None:
    """Add the columns of each row, a tuple of arrays, to the sums of its key."""
    for i in range(keys.size):
        at = keys[i] - first
        for c in range(len(columns)):
            sums[at, c] += columns[c][i]


@compiled
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


@compiled
def merge_runs(a_keys: Any, a: Any, b_keys: Any, b: Any, n_sums: int, keys: Any, out: Any) -> int:
    """Sums of two sets of increasing keys as those of one; returns how many keys there are.

    The columns are both parts of the sums, the smallest and the largest values.
    """
    i, j, n = 0, 0, 0
    n_columns = a.shape[1]
    n_least = (n_columns - 2 * n_sums) >> 1
    while i < a_keys.size or j < b_keys.size:
        both = i < a_keys.size and j < b_keys.size and a_keys[i] == b_keys[j]
        if both:
            keys[n] = a_keys[i]
            for c in range(n_sums):
                x, y = a[i, c], b[j, c]
                total = x + y
                rest = total - x
                low = (x - (total - rest)) + (y - rest) + (a[i, n_sums + c] + b[j, n_sums + c])
                out[n, c] = total + low
                out[n, n_sums + c] = low - (out[n, c] - total)
            for c in range(2 * n_sums, 2 * n_sums + n_least):
                out[n, c] = min(a[i, c], b[j, c])
            for c in range(2 * n_sums + n_least, n_columns):
                out[n, c] = max(a[i, c], b[j, c])
            i += 1
            j += 1
        elif j >= b_keys.size or (i < a_keys.size and a_keys[i] < b_keys[j]):
            keys[n] = a_keys[i]
            for c in range(n_columns):
                out[n, c] = a[i, c]
            i += 1
        else:
            keys[n] = b_keys[j]
            for c in range(n_columns):
                out[n, c] = b[j, c]
            j += 1
        n += 1
    return n
