"""The statistics of rows of many classes: loops over the classes of one row after the other.

These kernels know row statistics, never a rule: rules reach compiled code through
`engines.fusion`, which translates their own formulas.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np

from verax.kernels.functions import bits, compiled, fma, from_bits, higher, lower, plus, select
from verax.kernels.statistics import MODE, places
from verax.kernels.texts import LOG, Kernel, pattern

# Rows at a time.
STRIP = 256
# The bits of floats: those of exponents follow those of mantissas.
_BITS, _MOST, _EVEN = np.uint64(52), np.uint64(2047), np.uint64(1024)
_CENTRE = np.uint64((1024 << 52) - pattern(math.sqrt(0.5)))
_LN2 = math.log(2)
# 2^52 + n has the integer n in its last bits: a conversion that vectors can do on every processor.
_INTEGERS, _INTEGERS_FROM = np.uint64(pattern(2.0**52)), 2.0**52 + 1024
_L0, _L1, _L2, _L3, _L4, _L5, _L6 = LOG
# A sum of these numbers over the modes of a row has their number, and where the mode is if there is one.
_MODE, _HALF, _PLACE = 2**32, 32, 2**32 - 1
# Probabilities are multiplied to _FOUR products, which are split off where they fall below _SMALL_PRODUCT.
_FOUR, _SMALL_PRODUCT = 4, 2.0**-200

_P_TRUE, _REST_SQ, _HIT, _HIT_LOWEST, _TOP = places("p_true", "rest_sq", "hit", "hit_lowest", "top")
_CDF_L2, _CDF_L1, _CDF_LOG = places("cdf_l2", "cdf_l1", "cdf_log")


def statistic_flags(needs: Collection[str]) -> tuple[bool, bool, bool, bool, bool]:
    """Whether `needs` has squares, modes, and each of the statistics of cumulative probabilities."""
    modes = bool(MODE & set(needs))
    return "rest_sq" in needs, modes, "cdf_l1" in needs, "cdf_l2" in needs, "cdf_log" in needs


def row_stats(needs: frozenset[str]) -> Kernel:
    """A kernel (p, y, clear, out, decision) -> number of rows that are not clearly valid.

    `out` has one row per statistic, as `statistics.PLACE` says; what is not asked for may stay as it
    was. What it has of rows that are not clear means nothing. `y` must be the pass's own copy, because it is
    used as an index after it was checked; `p` may be the caller's.
    """
    return _row_stats(*statistic_flags(needs))


@cache
def _row_stats(squares: bool, modes: bool, l1: bool, l2: bool, logs: bool) -> Kernel:
    @compiled
    def kernel(p: Any, y: Any, clear: float, out: Any, decision: Any) -> int:
        n_unclear = 0
        valid = np.empty(STRIP)
        for start in range(0, p.shape[0], STRIP):
            n = min(STRIP, p.shape[0] - start)
            into = out, start, decision, valid
            strip_statistics(p, y, start, n, clear, into, squares, modes, l1, l2, logs)
            for i in range(n):
                n_unclear += select(valid[i] > 0.0, 0, 1)
        return n_unclear

    return kernel


def strip_statistics(
    p: Any,
    y: Any,
    start: int,
    n: int,
    clear: float,
    into: Any,
    squares: bool,
    modes: bool,
    l1: bool,
    l2: bool,
    logs: bool,
) -> None:
    """Write the statistics of up to STRIP rows, from `start` on, `into` buffers of statistics and decisions,
    and 1 for rows that are clearly valid, else 0.
    """
    out, at, decision, valid = into
    product, error = np.empty(STRIP), np.empty(STRIP)
    for i in range(n):
        row, given = p[start + i], np.int64(y[start + i])
        known = (given >= 0) & (given < len(row))
        outcome = select(known, given, 0)
        total, lowest = 0.0, 0.0
        if squares or modes or not (l1 or l2 or logs):
            total, lowest = _write_plain(row, outcome, out, at + i, decision, squares, modes)
        if l1 or l2 or logs:
            total, lowest, product[i], error[i] = _write_cumulative(row, outcome, out, at + i, l1, l2, logs)
        out[_P_TRUE, at + i] = np.float64(row[outcome])
        # A missing value shows in the sum, which says what the extremes need not.
        fine = (abs(total - 1.0) <= clear) & (lowest >= 0.0)
        valid[i] = select(known & fine, 1.0, 0.0)
    if logs:
        for i in range(n):
            out[_CDF_LOG, at + i] += _log_with_error(product[i], error[i])


def _write_plain(
    row: Any, outcome: int, out: Any, at: int, decision: Any, squares: bool, modes: bool
) -> tuple[float, float]:
    """Write what does not depend on the order of classes; the sum and the smallest of the probabilities.

    Classes are taken several at a time. The caller's memory may change while it is read: no loop may rely on
    what was found before.
    """
    n_classes, p_true = len(row), np.float64(row[outcome])
    total, rest_sq, lowest, highest = 0.0, 0.0, p_true, p_true
    for j in range(n_classes):
        v = np.float64(row[j])
        total = plus(total, v)
        lowest = lower(lowest, v)
        if squares:
            rest = select(j == outcome, 0.0, v)
            rest_sq = plus(rest_sq, rest * rest)
        if modes:
            highest = higher(highest, v)
    if squares:
        out[_REST_SQ, at] = rest_sq
    if modes:
        coded = 0
        for j in range(n_classes):
            coded += select(np.float64(row[j]) == highest, _MODE + j, 0)
        n_modes, mode = coded >> _HALF, min(coded & _PLACE, n_classes - 1)
        if n_modes > 1:
            for j in range(n_classes):
                mode = min(mode, select(np.float64(row[j]) == highest, j, n_classes))
        out[_HIT, at] = select(p_true == highest, 1.0, 0.0) / float(n_modes)
        out[_HIT_LOWEST, at] = select(mode == outcome, 1.0, 0.0)
        out[_TOP, at] = highest
        decision[at] = mode
    return total, lowest


def _write_cumulative(
    row: Any, outcome: int, out: Any, at: int, l1: bool, l2: bool, logs: bool
) -> tuple[float, float, float, float]:
    """Write the statistics of cumulative probabilities; what `_write_plain` returns, and a product of
    probabilities with its rounding error, whose logarithm is still to be subtracted.

    Errors of thresholds are sums from the nearer end, never one minus a sum. Sums that go on beyond the
    outcome are the probabilities of its side.
    """
    last, lowest, first, second = len(row) - 1, 0.0, 0.0, 0.0
    below, above = 0.0, 0.0
    for j in range(outcome):
        v = np.float64(row[j])
        lowest = lower(lowest, v)
        below = below + v
        if l1:
            first = first + below
        if l2:
            second = second + below * below
    for j in range(last, outcome, -1):
        v = np.float64(row[j])
        lowest = lower(lowest, v)
        above = above + v
        if l1:
            first = first + above
        if l2:
            second = second + above * above
    p_true = np.float64(row[outcome])
    total, lowest = below + above + p_true, lower(lowest, p_true)
    if l1:
        out[_CDF_L1, at] = first
    if l2:
        out[_CDF_L2, at] = second
    product, error = 1.0, 0.0
    if logs:
        products, errors, log = np.empty(_FOUR), np.empty(_FOUR), 0.0
        lanes = products, errors, np.empty(_FOUR), np.empty(_FOUR), np.empty(_FOUR)
        for u in range(_FOUR):
            products[u] = 1.0
            errors[u] = 0.0
        whole = (last - outcome) & -_FOUR
        for j in range(outcome, outcome + whole, _FOUR):
            below, log = _multiply(row, j, 1, _FOUR, below, log, lanes)
        for j in range(outcome + whole, last):
            below, log = _multiply(row, j, 1, 1, below, log, lanes)
        whole = outcome & -_FOUR
        for j in range(outcome, outcome - whole, -_FOUR):
            above, log = _multiply(row, j, -1, _FOUR, above, log, lanes)
        for j in range(outcome - whole, 0, -1):
            above, log = _multiply(row, j, -1, 1, above, log, lanes)
        out[_CDF_LOG, at] = log
        for u in range(_FOUR):
            high = product * products[u]
            low = fma(product, products[u], -high)
            error = fma(error, products[u], fma(product, errors[u], low))
            product = high
    return total, lowest, product, error


def _multiply(
    row: Any, j: int, step: int, many: int, tail: float, log: float, lanes: Any
) -> tuple[float, float]:
    """Add the classes from `j` on to a tail, and multiply several products, which need not wait for each
    other, by its sums. The rounding errors of products come along. The tail, and minus the logarithm of
    products that were split off because they are small.
    """
    product, error, side, high, low = lanes
    least = 1.0
    for u in range(many):
        tail = tail + np.float64(row[j + step * u])
        side[u] = tail
        high[u] = product[u] * tail
        low[u] = fma(error[u], tail, fma(product[u], tail, -high[u]))
        least = lower(least, high[u])
    if not least >= _SMALL_PRODUCT:
        for u in range(many):
            log -= math.log(side[u]) + (math.log(product[u]) + error[u] / product[u])
            high[u] = 1.0
            low[u] = 0.0
    for u in range(many):
        product[u] = high[u]
        error[u] = low[u]
    return tail, log


def _log_with_error(product: Any, error: Any) -> float:
    """Minus the logarithm of product + error, for a normal number and a far smaller error."""
    whole = bits(product)
    power = (whole + _CENTRE) >> _BITS
    f = from_bits(whole - ((power - _EVEN) << _BITS)) - 1.0
    f = fma(error, from_bits((_MOST - power) << _BITS), f)
    s = f / (2.0 + f)
    z = s * s
    r = fma(fma(fma(fma(fma(fma(_L6, z, _L5), z, _L4), z, _L3), z, _L2), z, _L1), z, _L0)
    k = from_bits(power | _INTEGERS) - _INTEGERS_FROM
    negative: float = -fma(k, _LN2, fma(s, z * r, s + s))
    return negative
