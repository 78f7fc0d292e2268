"""The one pass compiled for NumPy blocks, and the counting that goes with it.

These kernels know row statistics and counts, never a rule: rules reach compiled code through
`_fusion`, which translates their own formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

from verax._arithmetic import OPTIONS, bits, is_odd, larger, log

Kernel = Callable[..., Any]

# Up to this many classes a kernel is compiled for that number, so that its loops are unrolled.
SHORT_ROWS = 8
# So many rows of those are looked at together: what a first-level cache holds. It is no power of two,
# for columns at such distances would fight for the same places there.
_STRIP = 520


@cache
def row_stats(n_classes: int, *, ordinal: bool, ranked_log: bool, columnar: bool = False) -> Kernel:
    """A kernel (y, tolerance, out, decision, scratch, p) -> 0 if all rows are valid.

    With `columnar`, which up to SHORT_ROWS classes can have, the columns of `p` come one by one.

    `out` has one row a statistic, in the order of `rowstats.STATS`; what is not asked for stays as
    it was. Cumulative errors are sums from the nearer end, never one minus a sum.
    """
    if n_classes <= SHORT_ROWS:
        return _short_rows(n_classes, ordinal, ranked_log, columnar)
    return _long_rows(ordinal, ranked_log)


def scratch(n_classes: int) -> int:
    """How many numbers a kernel for so many classes wants to put somewhere."""
    return 2 * n_classes * _STRIP if n_classes <= SHORT_ROWS else 0


def _short_rows(n_classes: int, ordinal: bool, ranked_log: bool, columnar: bool) -> Kernel:
    """For few classes: strips of rows, class by class, so that a loop takes several rows at once.

    No branch depends on the data, for a wrong guess costs as much as the row. Rows with ties are rare
    and see to themselves afterwards.
    """
    last = n_classes - 1
    fill = _fill_from_columns if columnar else _fill_from_rows(n_classes)

    @numba.njit(**OPTIONS)
    def count_negative(strip: Any, n: int) -> int:
        n_negative = 0
        for j in range(n_classes):
            for i in range(n):
                n_negative += strip[j * _STRIP + i] < 0.0
        return n_negative

    @numba.njit(**OPTIONS)
    def take_out(strip: Any, y: Any, p_true: Any) -> int:
        """Move the outcomes' probabilities out of the strip, and leave zero: what stays are the others."""
        n_bad = 0
        for i in range(y.size):
            outcome = np.uint64(y[i])  # what is negative becomes large
            if outcome > np.uint64(last):
                n_bad += 1
            else:
                at = outcome * np.uint64(_STRIP) + np.uint64(i)
                p_true[i] = strip[at]
                strip[at] = 0.0
        return n_bad

    @numba.njit(**OPTIONS)
    def reduce(
        strip: Any, y: Any, tolerance: float, p_true: Any, rest_sq: Any, hit: Any, decision: Any
    ) -> Any:
        n_bad = 0
        n_ties = 0
        for i in range(y.size):
            v = strip[i]
            highest = v
            total = v
            squares = v * v
            first = 0
            for j in range(1, n_classes):
                v = strip[j * _STRIP + i]
                first = j if v > highest else first
                highest = larger(highest, v)
                total += v
                squares += v * v
            # Read whether or not it is used: what depends on the data is chosen, never jumped to.
            outcome = y[i]
            p = p_true[i]
            # A missing value shows in the sum too.
            n_bad += not abs(total + p - 1.0) <= tolerance
            n_ties += p == highest
            rest_sq[i] = squares
            hit[i] = 1.0 if p > highest else 0.0
            decision[i] = outcome if p > highest else first
        return n_bad, n_ties

    @numba.njit(**OPTIONS)
    def settle_ties(strip: Any, y: Any, p_true: Any, hit: Any, decision: Any) -> None:
        for i in range(y.size):
            n_above = 0
            n_equal = 0
            first = y[i]
            for j in range(last, -1, -1):
                n_above += strip[j * _STRIP + i] > p_true[i]
                is_equal = strip[j * _STRIP + i] == p_true[i]
                n_equal += is_equal
                first = j if is_equal and j < first else first
            if n_above == 0 and n_equal > 0:
                hit[i] = 1.0 / (n_equal + 1)
                decision[i] = first

    @numba.njit(**OPTIONS)
    def accumulate(strip: Any, tails: Any, y: Any, cdf_l2: Any, cdf_l1: Any, cdf_log: Any) -> int:
        n_odd = 0
        for i in range(y.size):
            above = 0.0
            for j in range(last, 0, -1):
                above += strip[j * _STRIP + i]
                tails[(j - 1) * _STRIP + i] = above
            outcome = y[i]
            below = 0.0
            l1 = 0.0
            l2 = 0.0
            logs = 0.0
            for j in range(last):
                below += strip[j * _STRIP + i]
                above = tails[j * _STRIP + i]
                error = below if outcome > j else above
                l1 += error
                l2 += error * error
                if ranked_log:
                    side = above if outcome > j else below
                    n_odd += is_odd(side)
                    logs -= log(side)
            cdf_l2[i] = l2
            cdf_l1[i] = l1
            if ranked_log:
                cdf_log[i] = logs
        return n_odd

    @numba.njit(**OPTIONS)
    def kernel(y: Any, tolerance: float, out: Any, decision: Any, strip: Any, *p: Any) -> int:
        n_bad = 0
        for start in range(0, y.size, _STRIP):
            stop = min(start + _STRIP, y.size)
            outcome = y[start:stop]
            p_true = out[0, start:stop]
            if fill(p, start, stop, strip) < 0:
                n_bad += count_negative(strip, stop - start)
            if ordinal:
                l2, l1, logs = out[2, start:stop], out[3, start:stop], out[4, start:stop]
                if accumulate(strip, strip[n_classes * _STRIP :], outcome, l2, l1, logs) > 0:
                    for i in range(stop - start):
                        logs[i] = _log_of_thresholds(strip[i : n_classes * _STRIP : _STRIP], outcome[i])
            n_bad += take_out(strip, outcome, p_true)
            hit, chosen = out[5, start:stop], decision[start:stop]
            n_worse, n_ties = reduce(strip, outcome, tolerance, p_true, out[1, start:stop], hit, chosen)
            n_bad += n_worse
            if n_ties > 0:
                settle_ties(strip, outcome, p_true, hit, chosen)
        return n_bad

    return kernel  # type: ignore[no-any-return]


@numba.njit(**OPTIONS)
def _fill_from_columns(columns: Any, start: int, stop: int, strip: Any) -> int:
    """Copy rows into the strip; what comes back is negative if any number, zero included, has a sign."""
    signs = 0
    for j in range(len(columns)):
        column = columns[j][start:stop]
        for i in range(column.size):
            v = np.float64(column[i])
            signs |= bits(v)
            strip[j * _STRIP + i] = v
    return signs


def _fill_from_rows(n_classes: int) -> Kernel:
    @numba.njit(**OPTIONS)
    def fill(p: Any, start: int, stop: int, strip: Any) -> int:
        rows = p[0][start:stop]
        signs = 0
        for i in range(rows.shape[0]):
            for j in range(n_classes):
                v = np.float64(rows[i, j])
                signs |= bits(v)
                strip[j * _STRIP + i] = v
        return signs

    return fill  # type: ignore[no-any-return]


def _long_rows(ordinal: bool, ranked_log: bool) -> Kernel:
    """For many classes: separate loops below and above the outcome, and extremes that vectorise."""

    @numba.njit(**OPTIONS)
    def kernel(y: Any, tolerance: float, out: Any, decision: Any, _: Any, p: Any) -> int:
        n, n_classes = p.shape
        n_bad = 0
        for i in range(n):
            outcome = y[i]
            if outcome < 0 or outcome >= n_classes:
                n_bad += 1
                continue
            row = p[i]
            p_true = np.float64(row[outcome])
            rest_sq = 0.0
            cdf_l1 = 0.0
            cdf_l2 = 0.0
            below = 0.0
            for j in range(outcome):
                v = np.float64(row[j])
                rest_sq += v * v
                below += v
                if ordinal:
                    cdf_l1 += below
                    cdf_l2 += below * below
            above = 0.0
            for j in range(n_classes - 1, outcome, -1):
                v = np.float64(row[j])
                rest_sq += v * v
                above += v
                if ordinal:
                    cdf_l1 += above
                    cdf_l2 += above * above
            lowest, highest = _extremes(row)
            # A missing value shows in the sum, which says what the extremes need not.
            if not (lowest >= 0.0 and abs(below + p_true + above - 1.0) <= tolerance):
                n_bad += 1
                continue
            first = 0
            while row[first] != highest:
                first += 1
            n_modes = 0
            for j in range(n_classes):
                n_modes += row[j] == highest
            if ordinal:
                out[2, i] = cdf_l2
                out[3, i] = cdf_l1
            if ranked_log:
                out[4, i] = _log_of_thresholds(row, outcome)
            out[0, i] = p_true
            out[1, i] = rest_sq
            out[5, i] = (1.0 if row[outcome] == highest else 0.0) / n_modes
            decision[i] = first
        return n_bad

    return kernel  # type: ignore[no-any-return]


@numba.njit(**{**OPTIONS, "fastmath": {"nnan", "nsz", "reassoc"}})
def _extremes(row: Any) -> tuple[float, float]:
    """The smallest and the largest value of a row without missing ones."""
    lowest = row[0]
    highest = row[0]
    for j in range(row.size):
        lowest = min(lowest, row[j])
        highest = max(highest, row[j])
    return lowest, highest


@numba.njit(**OPTIONS)
def _log_of_thresholds(row: Any, outcome: int) -> float:
    """Minus the log probability of the outcome's side of every threshold, summed."""
    total = 0.0
    tail = 0.0
    for j in range(row.size - 1):
        tail += np.float64(row[j])
        if j >= outcome:
            total -= math.log(tail)
    tail = 0.0
    for j in range(row.size - 1, 0, -1):
        tail += np.float64(row[j])
        if j <= outcome:
            total -= math.log(tail)
    return total


@numba.njit(**OPTIONS)
def count(y: Any, decision: Any, p_true: Any, weights: Any, counts: Any) -> int:
    """Add each row's weight to `counts[outcome, decision]`; an empty `weights` means ones.

    Returns the number of rows with weight whose outcome had probability zero.
    """
    n_zero = 0
    for i in range(y.size):
        w = weights[i] if weights.size else 1.0
        # Unsigned, for a signed position would be looked at for counting from the end.
        counts[np.uint64(y[i]), np.uint64(decision[i])] += w
        n_zero += p_true[i] == 0.0 and w > 0.0
    return n_zero
