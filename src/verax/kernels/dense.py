"""The statistics of rows of many classes: loops over the classes of a row, and of columns of several rows.

These kernels know row statistics, never a rule: rules reach compiled code through
`engines.fusion`, which translates their own formulas.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np

from verax.kernels.functions import (
    bits,
    compiled,
    fma,
    from_bits,
    higher,
    lower,
    plus,
    select,
    turn_square,
)
from verax.kernels.statistics import MODE, places
from verax.kernels.texts import LOG, Kernel, pattern

# Rows at a time, and how many of them and of their classes are turned into columns at once.
STRIP, _ROWS, _SHIFT = 256, 32, 6
_COLUMNS = 1 << _SHIFT
# The bits of floats: those of exponents follow those of mantissas.
_BITS, _MOST, _EVEN = np.uint64(52), np.uint64(2047), np.uint64(1024)
_CENTRE = np.uint64((1024 << 52) - pattern(math.sqrt(0.5)))
_LN2 = math.log(2)
# 2^52 + n has the integer n in its last bits: a conversion that vectors can do on every processor.
_INTEGERS, _INTEGERS_FROM = np.uint64(pattern(2.0**52)), 2.0**52 + 1024
_L0, _L1, _L2, _L3, _L4, _L5, _L6 = LOG
# A sum of these numbers over the modes of a row has their number, and where the mode is if there is one.
_MODE, _HALF, _PLACE = 2**32, 32, 2**32 - 1
# Columns that are added at a time, and the size from which on products are not multiplied any further.
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

    Rows that were just read are still near when their classes are turned into columns.
    """
    out, at, decision, valid = into
    outcome, sums = np.zeros(_ROWS, np.int64), (np.empty(_ROWS), np.empty(_ROWS))
    total, lowest = sums
    for begin in range(0, n, _ROWS):
        rows = min(_ROWS, n - begin)
        for i in range(rows):
            row, given = p[start + begin + i], np.int64(y[start + begin + i])
            known = (given >= 0) & (given < len(row))
            outcome[i] = select(known, given, 0)
            valid[begin + i] = select(known, 1.0, 0.0)
            out[_P_TRUE, at + begin + i] = np.float64(row[outcome[i]])
            if squares or modes or not (l1 or l2 or logs):
                total[i], lowest[i] = _write_plain(
                    row, outcome[i], out, at + begin + i, decision, squares, modes
                )
        if l1 or l2 or logs:
            _write_cumulative(p, start + begin, rows, outcome, out, at + begin, sums, l1, l2, logs)
        for i in range(rows):
            # A missing value shows in the sum, which says what the extremes need not.
            fine = (abs(total[i] - 1.0) <= clear) & (lowest[i] >= 0.0)
            valid[begin + i] = select(fine, valid[begin + i], 0.0)


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
    p: Any,
    first: int,
    rows: int,
    outcome: Any,
    out: Any,
    at: int,
    sums: Any,
    l1: bool,
    l2: bool,
    logs: bool,
) -> None:
    """Write the statistics of cumulative probabilities of some rows; to `sums` what `_write_plain` returns.

    Classes are turned into columns, so that the compiler can do several rows at once. They are added up from
    the first one to the last, and then from the last one to the first, where numbers of classes are mirrored.
    """
    total, lowest = sums
    columns, mirrored = np.empty((_COLUMNS, _ROWS)), np.zeros(_ROWS, np.int64)
    tails = np.empty(_ROWS), lowest, np.empty(_ROWS), np.empty(_ROWS)
    products = np.empty(_ROWS), np.empty(_ROWS), np.empty(_ROWS), np.empty(_ROWS), np.empty(_ROWS)
    tail, _lowest, absolute, square = tails
    product, error, log, _before, _high = products
    for i in range(rows):
        lowest[i], absolute[i], square[i] = 0.0, 0.0, 0.0
        product[i], error[i], log[i] = 1.0, 0.0, 0.0
    last = p.shape[1] - 1
    n_chunks = (last >> _SHIFT) + 1
    for down in range(2):
        for i in range(rows):
            tail[i] = 0.0
            mirrored[i] = select(down > 0, last - outcome[i], outcome[i])
        for c in range(n_chunks):
            begin = select(down > 0, n_chunks - 1 - c, c) << _SHIFT
            n_columns = (min(_COLUMNS, last + 1 - begin) + _FOUR - 1) & -_FOUR
            if down == 0 or c > 0:
                _turn(p, first, rows, begin, columns)
            for j in range(0, n_columns, _FOUR):
                column = select(down > 0, n_columns - 1 - j, j)
                number = select(down > 0, last - begin - column, begin + column)
                classes = columns, column, 1 - 2 * down, number, last, mirrored
                _add_four(rows, classes, tails, products, l1, l2, logs)
        if down == 0:
            for i in range(rows):
                total[i] = tail[i]
    for i in range(rows):
        if l1:
            out[_CDF_L1, at + i] = absolute[i]
        if l2:
            out[_CDF_L2, at + i] = square[i]
        if logs:
            out[_CDF_LOG, at + i] = log[i] + _log_with_error(product[i], error[i])


def _turn(p: Any, first: int, rows: int, begin: int, columns: Any) -> None:
    """Turn some classes of rows into columns, with columns of zeros up to a multiple of four."""
    n_columns = min(_COLUMNS, p.shape[1] - begin)
    whole, of_four = n_columns & -_FOUR, rows & -_FOUR
    for i in range(0, of_four, _FOUR):
        row = first + i
        for j in range(0, whole, _FOUR):
            at = begin + j
            turn_square(p[row, at], p[row + 1, at], p[row + 2, at], p[row + 3, at], columns[j, i])
    for j in range((n_columns + _FOUR - 1) & -_FOUR):
        for i in range(select(j < whole, of_four, 0), rows):
            columns[j, i] = np.float64(p[first + i, begin + j]) if j < n_columns else 0.0


def _add_four(rows: int, classes: Any, tails: Any, products: Any, l1: bool, l2: bool, logs: bool) -> None:
    """Add four classes to the tails of rows.

    Errors of thresholds are sums from the nearer end, never one minus a sum. Tails that go on beyond the
    outcome are the probabilities of its side. Their logarithms are those of a product, whose rounding errors
    come along; it is split off where it becomes small.
    """
    columns, column, step, number, last, outcome = classes
    tail, lowest, absolute, square = tails
    product, error, _log, before, high = products
    least = 1.0
    for i in range(rows):
        below, smallest, first, second = tail[i], lowest[i], absolute[i], square[i]
        whole, rounded = product[i], error[i]
        for u in range(_FOUR):
            v, away = columns[column + step * u, i], number + u < outcome[i]
            below = below + v
            smallest = lower(smallest, v)
            if l1:
                first = first + select(away, below, 0.0)
            if l2:
                second = second + select(away, below * below, 0.0)
            if logs:
                side = select(away | (number + u >= last), 1.0, below)
                after = whole * side
                rounded = fma(rounded, side, fma(whole, side, -after))
                whole = after
        if logs:
            before[i], high[i], error[i] = tail[i], whole, select(whole >= _SMALL_PRODUCT, rounded, error[i])
            least = lower(least, whole)
        tail[i], lowest[i], absolute[i], square[i] = below, smallest, first, second
    if logs:
        if not least >= _SMALL_PRODUCT:
            _split_off(rows, classes, products)
        for i in range(rows):
            product[i] = high[i]


def _split_off(rows: int, classes: Any, products: Any) -> None:
    """Subtract the logarithms of products that four classes would make small, and of these classes' sides."""
    columns, column, step, number, last, outcome = classes
    product, error, log, before, high = products
    for i in range(rows):
        if not high[i] >= _SMALL_PRODUCT:
            log[i] -= math.log(product[i]) + error[i] / product[i]
            below = before[i]
            for u in range(_FOUR):
                below = below + columns[column + step * u, i]
                if (number + u >= outcome[i]) & (number + u < last):
                    log[i] -= math.log(below)
            high[i], error[i] = 1.0, 0.0


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
