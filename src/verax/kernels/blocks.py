"""Statistics of rows of many ordered classes, by blocks of eight classes that are taken side by side.

A vector of the processor has the same place of several blocks. Sums of blocks tell each block what lies
before and behind it, so its own cumulative probabilities need no other block. The block of the largest
probability is found before its place.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verax.kernels.operations import bits, fma, from_bits, higher, lower, plus, select, turn_square
from verax.kernels.statistics import places
from verax.kernels.texts import LOG, pattern

# How many classes a block has, and that many bits of the number of a class say where in its block it is.
_BLOCK, _PLACE = 8, 3
# Blocks are turned into columns by squares of four classes of four blocks.
_FOUR = 4
# How many blocks are held at a time, those of one row or of several: what the nearest cache holds.
_BLOCKS = 128
# Rows of up to this number of classes are taken by blocks.
BLOCKED = _BLOCK * _BLOCKS
# The bits of floats: those of exponents follow those of mantissas.
_BITS, _MOST, _EVEN = np.uint64(52), np.uint64(2047), np.uint64(1024)
_CENTRE = np.uint64((1024 << 52) - pattern(math.sqrt(0.5)))
_LN2 = math.log(2)
# 1.5 * 2^52 + n has the integer n in its last bits: a conversion that vectors can do on every processor.
_INTEGERS, _INTEGERS_FROM = np.uint64(pattern(1.5 * 2.0**52)), 1.5 * 2.0**52 + 1024
# Where the product of some factors is no smaller than this, its rounding errors are normal numbers.
LEAST_PRODUCT = 2.0**-900
_L0, _L1, _L2, _L3, _L4, _L5, _L6 = LOG

_P_TRUE, _REST_SQ, _HIT, _HIT_LOWEST, _TOP = places("p_true", "rest_sq", "hit", "hit_lowest", "top")
_CDF_L2, _CDF_L1, _CDF_LOG = places("cdf_l2", "cdf_l1", "cdf_log")


def block_statistics(
    p: Any,
    y: Any,
    start: int,
    n: int,
    clear: float,
    out: Any,
    at: int,
    decision: Any,
    valid: Any,
    first: int,
    ranked_log: bool,
) -> None:
    """Write the statistics of `n` rows of up to BLOCKED classes, with those of cumulative probabilities.

    `valid` has 1 for rows that are clearly valid, else 0.
    """
    n_blocks = (p.shape[1] + _BLOCK - 1) >> _PLACE
    fitting = int(_BLOCKS / n_blocks)
    column, total = np.empty((_BLOCK, _BLOCKS)), np.empty(_BLOCKS)
    done = 0
    while done < n:
        n_rows = min(fitting, n - done)
        _hold(p, start + done, n_rows, n_blocks, column)
        rows = p, y, start + done, n_rows, n_blocks
        _write_plain(rows, clear, out, at + done, decision, valid, first + done, column, total)
        _write_cumulative(rows, out, at + done, ranked_log, column, total)
        done += n_rows


def _hold(p: Any, start: int, n_rows: int, n_blocks: int, column: Any) -> None:
    """Let `column` have the first classes of all blocks, then the second ones; zeros behind the last."""
    n_classes, n_whole = p.shape[1], p.shape[1] >> _PLACE
    for r in range(n_rows):
        row, begin = p[start + r], r * n_blocks
        for b in range(0, n_whole - _FOUR + 1, _FOUR):
            for t in range(0, _BLOCK, _FOUR):
                j = _BLOCK * b + t
                turn_square(
                    row[j], row[j + _BLOCK], row[j + 2 * _BLOCK], row[j + 3 * _BLOCK], column[t, begin + b]
                )
        for b in range(n_whole - n_whole % _FOUR, n_whole):
            for t in range(_BLOCK):
                column[t, begin + b] = np.float64(row[_BLOCK * b + t])
        for t in range(_BLOCK * (n_blocks - n_whole)):
            j = _BLOCK * n_whole + t
            column[t, begin + n_whole] = np.float64(row[j]) if j < n_classes else 0.0


def _write_plain(
    rows: Any, clear: float, out: Any, at: int, decision: Any, valid: Any, begin: int, column: Any, total: Any
) -> None:
    """Write what does not depend on the order of classes, and to `total` the sums of blocks."""
    p, y, start, n_rows, n_blocks = rows
    square, least, most = np.empty(_BLOCKS), np.empty(_BLOCKS), np.empty(_BLOCKS)
    outcome, p_true = np.empty(_BLOCKS, np.int64), np.empty(_BLOCKS)
    # Without the outcome there is nothing to choose in the loop over squares.
    for r in range(n_rows):
        given = np.int64(y[start + r])
        outcome[r] = select((given >= 0) & (given < p.shape[1]), given, 0)
        place, block = outcome[r] & (_BLOCK - 1), r * n_blocks + (outcome[r] >> _PLACE)
        p_true[r] = column[place, block]
        column[place, block] = 0.0
    for u in range(n_rows * n_blocks):
        squares = 0.0
        for t in range(_BLOCK):
            squares = squares + column[t, u] * column[t, u]
        square[u] = squares
    for r in range(n_rows):
        column[outcome[r] & (_BLOCK - 1), r * n_blocks + (outcome[r] >> _PLACE)] = p_true[r]
    for u in range(n_rows * n_blocks):
        added, low, high = column[0, u], column[0, u], column[0, u]
        for t in range(1, _BLOCK):
            added = added + column[t, u]
            low = lower(low, column[t, u])
            high = higher(high, column[t, u])
        total[u], least[u], most[u] = added, low, high
    for r in range(n_rows):
        first = r * n_blocks
        whole, rest_sq, lowest, highest = 0.0, 0.0, least[first], most[first]
        for u in range(first, first + n_blocks):
            whole = plus(whole, total[u])
            rest_sq = plus(rest_sq, square[u])
            lowest = lower(lowest, least[u])
            highest = higher(highest, most[u])
        n_modes, mode = 0.0, p.shape[1] - 1
        for u in range(first, first + n_blocks):
            if most[u] == highest:
                for t in range(_BLOCK):
                    if column[t, u] == highest:
                        n_modes += 1.0
                        mode = min(mode, _BLOCK * (u - first) + t)
        out[_P_TRUE, at + r] = p_true[r]
        out[_REST_SQ, at + r] = rest_sq
        out[_HIT, at + r] = select(p_true[r] == highest, 1.0, 0.0) / n_modes
        out[_HIT_LOWEST, at + r] = select(mode == outcome[r], 1.0, 0.0)
        out[_TOP, at + r] = highest
        decision[at + r] = mode
        # A missing value shows in the sum, which says what the extremes need not.
        fine = (abs(whole - 1.0) <= clear) & (lowest >= 0.0) & (outcome[r] == np.int64(y[start + r]))
        valid[begin + r] = select(fine, 1.0, 0.0)


def _write_cumulative(rows: Any, out: Any, at: int, ranked_log: bool, column: Any, total: Any) -> None:
    """Write the statistics of cumulative probabilities.

    The thresholds before the outcome are added up from the first class on, and those behind it from the last
    class on. The other side of every threshold is a factor of the product of its block, whose rounding errors
    come along.
    """
    p, y, start, n_rows, n_blocks = rows
    below, above, after = np.empty(_BLOCKS), np.empty(_BLOCKS), np.empty((_BLOCK, _BLOCKS))
    l1, l2, logs = np.empty(_BLOCKS), np.empty(_BLOCKS), np.empty(_BLOCKS)
    products, errors = np.empty(_BLOCKS), np.empty(_BLOCKS)
    before, ahead = np.empty(_BLOCKS, np.int64), np.empty(_BLOCKS, np.int64)
    for r in range(n_rows):
        low, high, first, final = 0.0, 0.0, r * n_blocks, (r + 1) * n_blocks - 1
        for b in range(n_blocks):
            below[first + b] = low
            above[final - b] = high
            low = low + total[first + b]
            high = high + total[final - b]
        outcome = np.int64(y[start + r])
        for b in range(n_blocks):
            before[first + b] = outcome - _BLOCK * b
            ahead[first + b] = p.shape[1] - 1 - _BLOCK * b
    for u in range(n_rows * n_blocks):
        own, other, side, last = below[u], above[u], before[u], ahead[u]
        one, two, product, error = 0.0, 0.0, 1.0, 0.0
        for t in range(_BLOCK - 1, -1, -1):
            after[t, u] = other
            other = other + column[t, u]
        for t in range(_BLOCK):
            own = own + column[t, u]
            gap = select(t < side, own, after[t, u])
            one = one + gap
            two = two + gap * gap
            if ranked_log:
                factor = select(t < side, after[t, u], own)
                # There is no threshold behind the last class.
                factor = select(t < last, factor, 1.0)
                rounded = product * factor
                error = fma(error, factor, fma(product, factor, -rounded))
                product = rounded
        l1[u], l2[u], products[u], errors[u] = one, two, product, error
    if ranked_log:
        for u in range(n_rows * n_blocks):
            logs[u] = log_with_error(products[u], errors[u], np.uint64(0))
    for r in range(n_rows):
        one, two, log, smallest = 0.0, 0.0, 0.0, 1.0
        for u in range(r * n_blocks, (r + 1) * n_blocks):
            one = plus(one, l1[u])
            two = plus(two, l2[u])
            if ranked_log:
                log = plus(log, logs[u])
                smallest = lower(smallest, products[u])
        out[_CDF_L1, at + r] = one
        out[_CDF_L2, at + r] = two
        if ranked_log:
            out[_CDF_LOG, at + r] = -log
            if not smallest >= LEAST_PRODUCT:
                out[_CDF_LOG, at + r] = log_of_thresholds(p[start + r], y[start + r])


def log_with_error(product: Any, error: Any, exponent: Any) -> float:
    """The logarithm of (product + error) * 2^exponent, for a normal number and a far smaller error."""
    whole = bits(product)
    power = (whole + _CENTRE) >> _BITS
    f = from_bits(whole - ((power - _EVEN) << _BITS)) - 1.0
    f = fma(error, from_bits((_MOST - power) << _BITS), f)
    s = f / (2.0 + f)
    z = s * s
    r = fma(fma(fma(fma(fma(fma(_L6, z, _L5), z, _L4), z, _L3), z, _L2), z, _L1), z, _L0)
    k = from_bits(exponent + power + _INTEGERS) - _INTEGERS_FROM
    found: float = fma(k, _LN2, fma(s, z * r, s + s))
    return found


# Products of probabilities are split where they fall below this; smaller factors are taken alone.
_SMALL_PRODUCT, _SMALL_FACTOR = 2.0**-500, 2.0**-400


def log_of_thresholds(row: Any, outcome: int) -> float:
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
