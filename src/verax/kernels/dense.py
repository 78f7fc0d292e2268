"""The one pass compiled for NumPy blocks.

These kernels know row statistics, never a rule: rules reach compiled code through
`engines.fusion`, which translates their own formulas.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from verax.kernels.functions import compiled
from verax.kernels.operations import fma, higher, lower
from verax.kernels.statistics import PLACE
from verax.kernels.texts import Kernel

# Up to this many classes a kernel is compiled for that number, so that its loops are unrolled.
SHORT_ROWS = 8


def row_stats(n_classes: int, needs: frozenset[str]) -> Kernel:
    """A kernel (p, y, clear, out, decision) -> number of rows that are not clearly valid.

    `out` has one row per statistic, as `statistics.PLACE` says; what is not asked for may stay as it
    was, and so does a row that is not clear. `y` must be the pass's own copy, because it is used as
    an index after it was checked; `p` may be the caller's. Cumulative errors are sums from the nearer
    end, never one minus a sum.
    """
    ordinal = bool(needs & {"cdf_l1", "cdf_l2"})
    ranked_log, top = "cdf_log" in needs, "top" in needs
    if n_classes <= SHORT_ROWS:
        return _short_rows(n_classes, ordinal, ranked_log, top)
    return _long_rows(ordinal, ranked_log, top)


# Places reach the kernels as closed-over numbers.
@cache
def _short_rows(n_classes: int, ordinal: bool, ranked_log: bool, top: bool) -> Kernel:
    """For few classes: no branch depends on the data, for a wrong guess costs as much as the row."""
    last = n_classes - 1
    p_true_at, rest_sq_at, hit_at, hit_lowest_at = places("p_true", "rest_sq", "hit", "hit_lowest")
    cdf_l2_at, cdf_l1_at, cdf_log_at, top_at = places("cdf_l2", "cdf_l1", "cdf_log", "top")

    @compiled
    def kernel(p: Any, y: Any, clear: float, out: Any, decision: Any) -> int:
        n_unclear = 0
        for i in range(p.shape[0]):
            outcome = y[i]
            if outcome < 0 or outcome > last:
                n_unclear += 1
                continue
            row = p[i]
            p_true = np.float64(row[outcome])
            lowest = np.float64(row[0])
            highest = lowest
            rest_sq = 0.0
            total = 0.0
            for j in range(n_classes):
                v = np.float64(row[j])
                lowest = v if v < lowest else lowest
                highest = v if v > highest else highest
                rest = 0.0 if j == outcome else v
                rest_sq += rest * rest
                total += v
            if not (lowest >= 0.0 and abs(total - 1.0) <= clear):
                n_unclear += 1
            n_modes = 0
            first = 0
            for j in range(last, -1, -1):
                is_mode = np.float64(row[j]) == highest
                n_modes += is_mode
                first = j if is_mode else first
            if ordinal:
                cdf_l1 = 0.0
                cdf_l2 = 0.0
                below = 0.0
                above = 0.0
                for j in range(last):
                    below += np.float64(row[j])
                    above += np.float64(row[last - j])
                    b = below if j < outcome else 0.0
                    a = above if last - j > outcome else 0.0
                    cdf_l1 += b + a
                    cdf_l2 += b * b + a * a
                out[cdf_l2_at, i] = cdf_l2
                out[cdf_l1_at, i] = cdf_l1
            if ranked_log:
                out[cdf_log_at, i] = _log_of_thresholds(row, outcome)
            out[p_true_at, i] = p_true
            out[rest_sq_at, i] = rest_sq
            out[hit_at, i] = (1.0 if p_true == highest else 0.0) / n_modes
            out[hit_lowest_at, i] = 1.0 if first == outcome else 0.0
            if top:
                out[top_at, i] = highest
            decision[i] = first
        return n_unclear

    return kernel


@cache
def _long_rows(ordinal: bool, ranked_log: bool, top: bool) -> Kernel:
    """For many classes: separate loops below and above the outcome, and extremes that vectorise."""
    p_true_at, rest_sq_at, hit_at, hit_lowest_at = places("p_true", "rest_sq", "hit", "hit_lowest")
    cdf_l2_at, cdf_l1_at, cdf_log_at, top_at = places("cdf_l2", "cdf_l1", "cdf_log", "top")

    @compiled
    def kernel(p: Any, y: Any, clear: float, out: Any, decision: Any) -> int:
        n, n_classes = p.shape
        n_unclear = 0
        for i in range(n):
            outcome = y[i]
            if outcome < 0 or outcome >= n_classes:
                n_unclear += 1
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
            if not (abs(below + p_true + above - 1.0) <= clear and lowest >= 0.0):
                n_unclear += 1
                continue
            # The caller's memory may change while it is read: no loop may rely on what was found before.
            first = 0
            while first < n_classes - 1 and row[first] != highest:
                first += 1
            n_modes = 0
            for j in range(n_classes):
                n_modes += row[j] == highest
            if ordinal:
                out[cdf_l2_at, i] = cdf_l2
                out[cdf_l1_at, i] = cdf_l1
            if ranked_log:
                out[cdf_log_at, i] = _log_of_thresholds(row, outcome)
            out[p_true_at, i] = p_true
            out[rest_sq_at, i] = rest_sq
            out[hit_at, i] = (1.0 if row[outcome] == highest else 0.0) / n_modes
            out[hit_lowest_at, i] = 1.0 if first == outcome else 0.0
            if top:
                out[top_at, i] = highest
            decision[i] = first
        return n_unclear

    return kernel


def places(*names: str) -> list[int]:
    """The rows of some statistics in the buffer."""
    return [PLACE[name] for name in names]


def _extremes(row: Any) -> tuple[float, float]:
    """The smallest and the largest value of a row without missing ones."""
    lowest = row[0]
    highest = row[0]
    for j in range(row.size):
        lowest = lower(lowest, row[j])
        highest = higher(highest, row[j])
    return lowest, highest


# Products of probabilities are split where they fall below this; smaller factors are taken alone.
_SMALL_PRODUCT, _SMALL_FACTOR = 2.0**-500, 2.0**-400


def _log_of_thresholds(row: Any, outcome: int) -> float:
    """Minus the log probability of the outcome's side of every threshold, summed."""
    total = 0.0
    product = 1.0
    error = 0.0
    tail = 0.0
    n = row.size
    for i in range(2 * (n - 1)):
        # First the thresholds from below up to the last, then from above down to the first.
        j = i if i < n - 1 else 2 * (n - 1) - i
        tail = np.float64(row[j]) + (0.0 if i == n - 1 else tail)
        if (j < outcome) if i < n - 1 else (j > outcome):
            continue
        if tail < _SMALL_FACTOR:
            total -= math.log(tail)
            continue
        # One logarithm of a product instead of many; its rounding errors come along.
        high = product * tail
        error = fma(error, tail, fma(product, tail, -high))
        product = high
        if product < _SMALL_PRODUCT:
            total -= math.log(product) + error / product
            product = 1.0
            error = 0.0
    return total - (math.log(product) + error / product)
