"""Compiled histograms: the numbers of bins, and sums and extremes by bin."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import bits, compiled


@compiled
def bin_numbers(
    key: Any, near: float, shift: int, first: int, top: int, infinite: int, one: int, level: int, out: Any
) -> None:
    """The numbers of bins, as in `engines.keys.bin_numbers`; neighbours are joined in pairs, `level` times.

    With `one` not zero, keys are probabilities: those above a half are counted down from `one`.
    """
    for i in range(key.size):
        x = key[i]
        upper = one != 0 and x > 0.5
        x = 1.0 - x if upper else x
        number: Any = min(np.int64(bits(abs(x) + near) >> np.uint64(shift)) - first, top)
        number = infinite if abs(x) == np.inf else number
        number = 0 if x == 0.0 else (number >> level) + 1
        number = -number if x < 0.0 else number
        out[i] = one - number if upper else number


@compiled
def sum_by_class(y: Any, weights: Any, losses: Any, sums: Any) -> None:
    """Add w*l, w*l*l, w*w*l and w*w*l*l of rows with these weights and finite losses to their classes."""
    for i in range(y.size):
        w, loss, class_sums = weights[i], losses[i], sums[y[i]]
        first = w * loss
        square = w * first
        class_sums[0] += first
        class_sums[1] += first * loss
        class_sums[2] += square
        class_sums[3] += square * loss


@compiled
def sum_by_key(
    keys: Any,
    first: int,
    columns: Any,
    extremes: Any,
    counts: Any,
    sums: Any,
    least: Any,
    most: Any,
    different: Any,
) -> int:
    """Count the rows that have each key from `first` on, and add up columns; extremes are those of others.

    Columns are tuples of arrays. Tables have a line for each key, of which only `counts` are zero before. The
    lines of keys that occur come first in the end; their keys are written to `different`, and their number is
    returned.
    """
    for i in range(keys.size):
        at = np.uint64(keys[i] - first)
        if counts[at] == 0:
            for c in range(len(columns)):
                sums[at, c] = 0.0
            for c in range(len(extremes)):
                least[at, c], most[at, c] = np.inf, -np.inf
        counts[at] += 1
        for c in range(len(columns)):
            sums[at, c] += columns[c][i]
        for c in range(len(extremes)):
            x = extremes[c][i]
            if x < least[at, c]:
                least[at, c] = x
            if x > most[at, c]:
                most[at, c] = x
    n = 0
    for key in range(counts.size):
        if counts[key] > 0:
            different[n], counts[n] = key + first, counts[key]
            for c in range(len(columns)):
                sums[n, c] = sums[key, c]
            for c in range(len(extremes)):
                least[n, c], most[n, c] = least[key, c], most[key, c]
            n += 1
    return n


@compiled
def merge_runs(
    a_keys: Any,
    a_high: Any,
    a_low: Any,
    a_least: Any,
    a_most: Any,
    b_keys: Any,
    b_high: Any,
    b_low: Any,
    b_least: Any,
    b_most: Any,
    keys: Any,
    high: Any,
    low: Any,
    least: Any,
    most: Any,
) -> int:
    """Merge sums and extremes by two sets of keys; returns the number of different keys.

    Keys do not decrease.
    """
    i, j, n = 0, 0, 0
    while i < a_keys.size or j < b_keys.size:
        ours = j >= b_keys.size or (i < a_keys.size and a_keys[i] <= b_keys[j])
        key = a_keys[i] if ours else b_keys[j]
        if n == 0 or keys[n - 1] != key:
            keys[n] = key
            for c in range(high.shape[1]):
                high[n, c] = a_high[i, c] if ours else b_high[j, c]
                low[n, c] = a_low[i, c] if ours else b_low[j, c]
            for c in range(least.shape[1]):
                least[n, c] = a_least[i, c] if ours else b_least[j, c]
                most[n, c] = a_most[i, c] if ours else b_most[j, c]
            n += 1
        else:
            at = n - 1
            for c in range(high.shape[1]):
                x, y = high[at, c], a_high[i, c] if ours else b_high[j, c]
                total = x + y
                rest = total - x
                error = (x - (total - rest)) + (y - rest) + low[at, c]
                error += a_low[i, c] if ours else b_low[j, c]
                high[at, c] = total + error
                low[at, c] = error - (high[at, c] - total)
            for c in range(least.shape[1]):
                least[at, c] = min(least[at, c], a_least[i, c] if ours else b_least[j, c])
                most[at, c] = max(most[at, c], a_most[i, c] if ours else b_most[j, c])
        if ours:
            i += 1
        else:
            j += 1
    return n
