"""Compiled loops that add rows to tables of all bins, in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import bits, compiled, fetch, higher, lower, select

# Rows numbered before they are added: the nearest cache holds them.
_STRIP = 1024
# Fewer where other numbers of each row, or its bins, are held as well.
_SHORT = _STRIP // 4


@compiled
def fill_bins(
    begin: int,
    ranks: Any,
    values: Any,
    codes: Any,
    scale: float,
    layout: Any,
    first: int,
    table: Any,
    counts: Any,
) -> tuple[int, int, int]:
    """Add rows to the bins of what ranks them, from row `begin` on.

    The columns of the table are the extremes of the ranks, which are rounded to multiples of 1 / `scale`; for
    each of the `values`, a tuple of arrays, the sums of it and of its square and its extremes. Rows with each
    code are counted apart. The layout of bins is that of `engines.keys.bin_numbers`. Returns how many
    rows are done, and the bins that are needed, where the table lacks some of them.
    """
    near, shift, lowest, top, infinite = layout
    # Unsigned numbers are places as they are; others would be looked at whether they count from the end.
    keys, places = np.empty(_SHORT), np.empty(_SHORT, np.uint64)
    last = first + len(table)
    for start in range(begin, ranks.size, _SHORT):
        n = min(_SHORT, ranks.size - start)
        given = ranks[start : start + n]
        for i in range(n):
            keys[i] = np.rint(given[i] * scale) / scale
        least, most = 1 << 62, -(1 << 62)
        for i in range(n):
            x = keys[i]
            number = min(np.int64(bits(abs(x) + near) >> np.uint64(shift)) - lowest, top)
            number = select(abs(x) == np.inf, infinite, number)
            number = select(x == 0.0, 0, number + 1)
            number = select(x < 0.0, -number, number)
            places[i] = np.uint64(number - first)
            least = min(least, number)
            most = max(most, number)
        if least < first or most >= last:
            return start, least, most
        kinds = codes[start : start + n]
        for i in range(n):
            # A bin may lie across two lines of the cache.
            fetch(table[places[i], 0])
            fetch(table[places[i], 5])
            fetch(counts[places[i], kinds[i]])
        for i in range(n):
            # No branch for extremes: bins have few rows, so that many of them are some.
            x, at = keys[i], places[i]
            table[at, 0] = lower(table[at, 0], x)
            table[at, 1] = higher(table[at, 1], x)
            for c in range(len(values)):
                v = values[c][start + i]
                table[at, 4 * c + 2] += v
                table[at, 4 * c + 3] += v * v
                table[at, 4 * c + 4] = lower(table[at, 4 * c + 4], v)
                table[at, 4 * c + 5] = higher(table[at, 4 * c + 5], v)
            counts[at, kinds[i]] += 1
    return ranks.size, first, last - 1


@compiled
def fill_weighted_bins(
    numbers: Any, ranks: Any, weights: Any, values: Any, codes: Any, first: int, table: Any, kinds: Any
) -> tuple[int, int]:
    """Add rows of any weight to bins, whose `numbers` are given; rows without weight are left out.

    The columns of the table are the extremes of the ranks, the number of rows, the sums of w and of w*w; for
    each of the `values` the sums of w*v, w*v*v, w*w*v and w*w*v*v, and its extremes. `kinds` has the sums of
    w and of w*w of each code. Returns the bins that are needed; where the table lacks some nothing is added.
    """
    least, most = 1 << 62, -(1 << 62)
    for i in range(numbers.size):
        least = min(least, numbers[i])
        most = max(most, numbers[i])
    if least < first or most >= first + len(table):
        return least, most
    for i in range(numbers.size):
        w, x = weights[i], ranks[i]
        if w > 0.0:
            at, code = np.uint64(numbers[i] - first), np.uint64(codes[i])
            row = table[at]
            if x < row[0]:
                row[0] = x
            if x > row[1]:
                row[1] = x
            square = w * w
            row[2] += 1.0
            row[3] += w
            row[4] += square
            kinds[at, 2 * code] += w
            kinds[at, 2 * code + 1] += square
            for c in range(len(values)):
                v = values[c][i]
                row[6 * c + 5] += w * v
                row[6 * c + 6] += w * v * v
                row[6 * c + 7] += square * v
                row[6 * c + 8] += square * v * v
                if v < row[6 * c + 9]:
                    row[6 * c + 9] = v
                if v > row[6 * c + 10]:
                    row[6 * c + 10] = v
    return least, most


@compiled
def fill_replicates(
    numbers: Any,
    times: int,
    weights: Any,
    values: Any,
    codes: Any,
    groups: Any,
    copies: Any,
    first: int,
    table: Any,
) -> tuple[int, int]:
    """Add rows to all replicates, each as often as its group is in it.

    `numbers` are those of bins; neighbours are joined in pairs, `times` times, and the numbers of these
    bins take their place. `copies` has the replicates of each group, `weights` may be empty. The table has
    for every bin the weights of rows of each code, and for each of the `values` its sum, all by replicate.
    Returns the bins that are needed; where the table lacks some of them nothing is added.
    """
    least, most = 1 << 62, -(1 << 62)
    for i in range(numbers.size):
        number = numbers[i]
        size = ((abs(number) - 1) >> times) + 1
        size = select(number < 0, -size, select(number == 0, np.int64(0), size))
        numbers[i] = size
        least = min(least, size)
        most = max(most, size)
    if least < first or most >= first + len(table):
        return least, most
    n_codes, n = table.shape[1] - len(values), copies.shape[1]
    for i in range(numbers.size):
        at, drawn = np.uint64(numbers[i] - first), copies[groups[i]]
        w = weights[i] if weights.size else 1.0
        sums = table[at, codes[i]]
        for r in range(n):
            sums[r] += drawn[r] * w
        for c in range(len(values)):
            sums, v = table[at, n_codes + c], w * values[c][i]
            for r in range(n):
                sums[r] += drawn[r] * v
    return least, most


@compiled
def code_rows(y: Any, decided: Any, n_classes: int, codes: Any, out: Any) -> None:
    """The code of each pair of an outcome and a decision."""
    for i in range(y.size):
        out[i] = codes[y[i] * n_classes + decided[i]]


@compiled
def settle(table: Any, columns: Any, high: Any, low: Any) -> None:
    """Move some columns of a table to sums that are pairs of doubles."""
    for at in range(len(table)):
        for c in range(columns.size):
            term = table[at, columns[c]]
            if term != 0.0:
                before = high[at, c]
                after = before + term
                virtual = after - before
                rest = (before - (after - virtual)) + (term - virtual) + low[at, c]
                high[at, c] = after + rest
                low[at, c] = rest - (high[at, c] - after)
                table[at, columns[c]] = 0.0


@compiled
def add_to_hashes(columns: Any, factor: Any, last: bool, hashes: Any) -> None:
    """Add the numbers of each row, a column each, to its hash, and mix it after the `last` ones.

    As `analyses.samples` and `common.hashing` do it.
    """
    half, turn = np.uint64(32), np.uint64(29)
    for start in range(0, hashes.size, _STRIP):
        n = min(_STRIP, hashes.size - start)
        state = hashes[start : start + n]
        for c in range(len(columns)):
            column = columns[c, start : start + n]
            for i in range(n):
                # Adding zero makes one number of the two zeros.
                pattern = bits(column[i] + 0.0)
                x = (state[i] ^ (pattern ^ (pattern >> half))) * factor
                state[i] = x ^ (x >> turn)
        if last:
            for i in range(n):
                x = state[i] + np.uint64(0x9E3779B97F4A7C15)
                x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                state[i] = x ^ (x >> np.uint64(31))


def look_over(columns: Any, tolerance: float, least: Any, most: Any) -> tuple[int, float, int]:
    """The extremes of each column; how many rows do not sum to one within the tolerance, the largest
    difference, and how many numbers are exactly 0 or 1.
    """
    low, high = np.full((len(columns), _SHORT), np.inf), np.full((len(columns), _SHORT), -np.inf)
    gaps = np.zeros(_SHORT)
    n_off, n_certain = _look_over(columns, tolerance, low, high, gaps)
    least[:], most[:] = low.min(axis=1), high.max(axis=1)
    return n_off, float(gaps.max()), n_certain


@compiled
def _look_over(columns: Any, tolerance: float, low: Any, high: Any, gaps: Any) -> tuple[int, int]:
    """Look over rows, keeping extremes and a difference for each row of a strip."""
    n_columns, n_rows = columns.shape
    total = np.empty(_SHORT)
    n_off, n_certain = 0, 0
    for start in range(0, n_rows, _SHORT):
        n = min(_SHORT, n_rows - start)
        for i in range(n):
            total[i] = 0.0
        for c in range(n_columns):
            column, lows, highs = columns[c, start : start + n], low[c], high[c]
            certain = 0
            for i in range(n):
                x = column[i]
                total[i] += x
                certain += int(x == 0.0) + int(x == 1.0)
                lows[i] = select(x < lows[i], x, lows[i])
                highs[i] = select(x > highs[i], x, highs[i])
            n_certain += certain
        off = 0
        for i in range(n):
            gap = abs(total[i] - 1.0)
            off += int(gap > tolerance)
            gaps[i] = select(gap > gaps[i], gap, gaps[i])
        n_off += off
    return n_off, n_certain
