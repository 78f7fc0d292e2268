"""The one pass compiled for NumPy blocks.

These kernels know row statistics, never a rule: rules reach compiled code through
`engines.fusion`, which translates their own formulas.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from verax.kernels.blocks import BLOCKED, LEAST_PRODUCT, block_statistics, log_of_thresholds, log_with_error
from verax.kernels.functions import compiled
from verax.kernels.operations import bits, fma, from_bits, higher, lower, plus, select, turn_square
from verax.kernels.statistics import places
from verax.kernels.texts import Kernel, pattern

# How many rows are taken side by side, and how many of their classes are held as columns at a time.
# Short rows may lie in columns, one after the other: that costs them nothing.
SHORT_ROWS = 8
STRIP, _HELD = 32, 128
# Rows of up to so many classes are taken side by side; others have enough numbers to be taken one by one,
# unless cumulative probabilities need their columns anyway.
_SHORT = 31
# Classes are taken by fours; those behind the last are zero.
_FOUR = 4
ROOM = _HELD + 2 * _FOUR
# The bits of floats: those of exponents follow those of mantissas.
_BITS, _MANTISSA, _ONE = np.uint64(52), np.uint64(2**52 - 1), np.uint64(pattern(1.0))
_TWICE, _BIAS = np.uint64(2046), np.uint64(1023)

_P_TRUE, _REST_SQ, _HIT, _HIT_LOWEST, _TOP = places("p_true", "rest_sq", "hit", "hit_lowest", "top")
_CDF_L2, _CDF_L1, _CDF_LOG = places("cdf_l2", "cdf_l1", "cdf_log")


def row_stats(needs: frozenset[str]) -> Kernel:
    """A kernel (p, y, clear, out, decision) -> number of rows that are not clearly valid.

    `out` has one row per statistic, as `statistics.PLACE` says; what is not asked for may stay as it
    was, and so does a row that is not clear. `y` must be the pass's own copy, because it is used as
    an index after it was checked; `p` may be the caller's. Cumulative errors are sums from the nearer
    end, never one minus a sum.
    """
    return _row_stats(bool(needs & {"cdf_l1", "cdf_l2"}), "cdf_log" in needs)


@cache
def _row_stats(ordinal: bool, ranked_log: bool) -> Kernel:
    @compiled
    def kernel(p: Any, y: Any, clear: float, out: Any, decision: Any) -> int:
        n_unclear = 0
        held, valid = np.empty((ROOM, STRIP)), np.empty(STRIP)
        for start in range(0, p.shape[0], STRIP):
            n = min(STRIP, p.shape[0] - start)
            strip_statistics(
                p, y, start, n, clear, out, start, decision, valid, 0, ordinal or ranked_log, ranked_log, held
            )
            for i in range(n):
                n_unclear += select(valid[i] > 0.0, 0, 1)
        return n_unclear

    return kernel


def plain_statistics(p: Any, i: int, outcome: int, clear: float, out: Any, at: int, decision: Any) -> int:
    """Write what does not depend on the order of classes; 1 where the row is clearly valid, else 0.

    Classes are taken several at a time. The caller's memory may change while it is read: no loop may rely on
    what was found before.
    """
    n_classes = p.shape[1]
    if outcome < 0 or outcome >= n_classes:
        return 0
    row = p[i]
    p_true = np.float64(row[outcome])
    total, rest_sq = 0.0, 0.0
    lowest, highest = np.float64(row[0]), np.float64(row[0])
    for j in range(n_classes):
        v = np.float64(row[j])
        rest = select(j == outcome, 0.0, v)
        total = plus(total, v)
        rest_sq = plus(rest_sq, rest * rest)
        lowest = lower(lowest, v)
        highest = higher(highest, v)
    n_modes, first = 0.0, n_classes - 1
    for j in range(n_classes):
        v = np.float64(row[j])
        n_modes = plus(n_modes, select(v == highest, 1.0, 0.0))
        first = min(first, select(v == highest, j, n_classes))
    out[_P_TRUE, at] = p_true
    out[_REST_SQ, at] = rest_sq
    out[_HIT, at] = select(p_true == highest, 1.0, 0.0) / n_modes
    out[_HIT_LOWEST, at] = select(first == outcome, 1.0, 0.0)
    out[_TOP, at] = highest
    decision[at] = first
    # A missing value shows in the sum, which says what the extremes need not.
    return int(abs(total - 1.0) <= clear and lowest >= 0.0)


def strip_statistics(
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
    ordinal: bool,
    ranked_log: bool,
    held: Any,
) -> None:
    """The same for the `n` rows of a strip; `valid` has 1 for those that are clearly valid, else 0.

    With `ordinal` statistics of cumulative probabilities are written. Short rows are turned into columns,
    which are `held`, and taken side by side.
    """
    if ordinal and p.shape[1] > _HELD and p.shape[1] <= BLOCKED:
        block_statistics(p, y, start, n, clear, out, at, decision, valid, first, ranked_log)
    else:
        if p.shape[1] <= _SHORT or (ordinal and p.shape[1] <= _HELD):
            _turn(p, start, n, held)
            _side_by_side(y, start, n, p.shape[1], clear, out, at, decision, valid, first, held)
        else:
            for i in range(n):
                fine = plain_statistics(p, start + i, y[start + i], clear, out, at + i, decision)
                valid[first + i] = float(fine)
        if ordinal:
            _cumulative_statistics(p, y, start, n, out, at, ranked_log, held)


def _turn(p: Any, start: int, n: int, held: Any) -> None:
    """Turn rows into columns, four of each at a time; the last ones may have been turned before.

    Nothing outside of the rows is read. Columns of zeros follow, up to a multiple of four.
    """
    last, final = p.shape[1] - _FOUR, n - _FOUR
    if last >= 0 and final >= 0:
        for i in range(0, n, _FOUR):
            row = min(i, final)
            first = start + row
            for j in range(0, p.shape[1], _FOUR):
                at = min(j, last)
                turn_square(p[first, at], p[first + 1, at], p[first + 2, at], p[first + 3, at], held[at, row])
    else:
        for j in range(p.shape[1]):
            for i in range(n):
                held[j, i] = np.float64(p[start + i, j])
    for j in range(p.shape[1], p.shape[1] + _FOUR - 1):
        for i in range(n):
            held[j, i] = 0.0


def _side_by_side(
    y: Any,
    start: int,
    n: int,
    n_classes: int,
    clear: float,
    out: Any,
    at: int,
    decision: Any,
    valid: Any,
    begin: int,
    held: Any,
) -> None:
    """The statistics of rows that are columns."""
    total, rest_sq, p_true, modes = np.empty(STRIP), np.empty(STRIP), np.empty(STRIP), np.empty(STRIP)
    lowest, highest = np.empty(STRIP), np.empty(STRIP)
    chosen, happened = np.empty(STRIP, np.int64), np.empty(STRIP, np.int64)
    for i in range(n):
        happened[i] = np.int64(y[start + i])
        total[i] = 0.0
        rest_sq[i] = 0.0
        p_true[i] = 0.0
        modes[i] = 0.0
        lowest[i] = held[0, i]
        highest[i] = -1.0
        chosen[i] = 0
    # Zeros behind the last class change nothing in rows that are valid.
    for j in range(0, n_classes, _FOUR):
        for i in range(n):
            outcome, added, squares, own = happened[i] - j, total[i], rest_sq[i], p_true[i]
            least, most, count, first = lowest[i], highest[i], modes[i], chosen[i]
            for u in range(_FOUR):
                v = held[j + u, i]
                own = select(u == outcome, v, own)
                rest = select(u == outcome, 0.0, v)
                added = added + v
                squares = squares + rest * rest
                least = select(v < least, v, least)
                count = select(v > most, 1.0, count + select(v == most, 1.0, 0.0))
                first = select(v > most, np.int64(j + u), first)
                most = select(v > most, v, most)
            total[i], rest_sq[i], p_true[i] = added, squares, own
            lowest[i], highest[i], modes[i], chosen[i] = least, most, count, first
    for i in range(n):
        out[_P_TRUE, at + i] = p_true[i]
        out[_REST_SQ, at + i] = rest_sq[i]
        out[_TOP, at + i] = highest[i]
        decision[at + i] = chosen[i]
    for i in range(n):
        out[_HIT, at + i] = select(p_true[i] == highest[i], 1.0, 0.0) / modes[i]
        out[_HIT_LOWEST, at + i] = select(chosen[i] == happened[i], 1.0, 0.0)
    for i in range(n):
        fine = (abs(total[i] - 1.0) <= clear) & (lowest[i] >= 0.0)
        known = (happened[i] >= 0) & (happened[i] < n_classes)
        valid[begin + i] = select(fine & known, 1.0, 0.0)


def _cumulative_statistics(
    p: Any, y: Any, start: int, n: int, out: Any, at: int, ranked_log: bool, held: Any
) -> None:
    """Write the statistics of cumulative probabilities for the `n` rows of a strip, side by side.

    The thresholds before the outcome are added up from the first class on, and those behind it from the last
    class on. The other side of every threshold is a factor of one product, whose exponent is held apart, and
    whose rounding errors come along. `held` has what
    `strip_statistics` has left there.
    """
    l1, l2, smallest = np.empty(STRIP), np.empty(STRIP), np.empty(STRIP)
    product, error, exponent = np.empty(STRIP), np.empty(STRIP), np.empty(STRIP, np.uint64)
    for i in range(n):
        l1[i] = 0.0
        l2[i] = 0.0
        smallest[i] = 1.0
        product[i] = 1.0
        error[i] = 0.0
        exponent[i] = np.uint64(0)
    if p.shape[1] <= _HELD:
        _at_once(p, y, start, n, ranked_log, held, l1, l2, smallest, product, error, exponent)
    else:
        _in_two_turns(p, y, start, n, ranked_log, held, l1, l2, smallest, product, error, exponent)
    for i in range(n):
        out[_CDF_L1, at + i] = l1[i]
        out[_CDF_L2, at + i] = l2[i]
    if ranked_log:
        for i in range(n):
            out[_CDF_LOG, at + i] = -log_with_error(product[i], error[i], exponent[i])
        for i in range(n):
            if not smallest[i] >= LEAST_PRODUCT:
                out[_CDF_LOG, at + i] = log_of_thresholds(p[start + i], y[start + i])


def _at_once(
    p: Any,
    y: Any,
    start: int,
    n: int,
    ranked_log: bool,
    held: Any,
    l1: Any,
    l2: Any,
    smallest: Any,
    product: Any,
    error: Any,
    exponent: Any,
) -> None:
    """The thresholds of rows that are held as a whole: both sides of each are known."""
    last = p.shape[1] - 1
    above, below, rest = np.empty((ROOM, STRIP)), np.empty(STRIP), np.empty(STRIP)
    for i in range(n):
        below[i] = 0.0
        rest[i] = 0.0
    for j in range(last - last % _FOUR, -1, -_FOUR):
        for i in range(n):
            tail = rest[i]
            for u in range(_FOUR - 1, -1, -1):
                above[j + u, i] = tail
                tail = tail + held[j + u, i]
            rest[i] = tail
    for j in range(0, last, _FOUR):
        ahead = last - j
        for i in range(n):
            before = np.int64(y[start + i]) - j
            own, first, second = below[i], l1[i], l2[i]
            high, low, powers, least = product[i], error[i], exponent[i], smallest[i]
            for u in range(_FOUR):
                own = own + held[j + u, i]
                other = above[j + u, i]
                gap = select(u < before, own, other)
                first = first + gap
                second = second + gap * gap
                if ranked_log:
                    factor = select(u < before, other, own)
                    factor = select(u >= ahead, 1.0, factor)
                    rounded = high * factor
                    low = fma(low, factor, fma(high, factor, -rounded))
                    high = rounded
            below[i], l1[i], l2[i] = own, first, second
            if ranked_log:
                whole = bits(high)
                exponent[i] = powers + (whole >> _BITS) - _BIAS
                product[i] = from_bits((whole & _MANTISSA) | _ONE)
                error[i] = low * from_bits((_TWICE - (whole >> _BITS)) << _BITS)
                smallest[i] = select(high < least, high, least)


def _in_two_turns(
    p: Any,
    y: Any,
    start: int,
    n: int,
    ranked_log: bool,
    held: Any,
    l1: Any,
    l2: Any,
    smallest: Any,
    product: Any,
    error: Any,
    exponent: Any,
) -> None:
    """The thresholds of longer rows, some at a time: first from the first class on, then mirrored."""
    n_classes = p.shape[1]
    last = n_classes - 1
    tail, side = np.empty(STRIP), np.empty(STRIP, np.int64)
    for j in range(_FOUR):
        for i in range(n):
            held[j, i] = 0.0
    for turn in range(2):
        step = 1 - 2 * turn
        for i in range(n):
            tail[i] = 0.0
            side[i] = select(turn == 0, np.int64(y[start + i]), last - np.int64(y[start + i]))
        for begin in range(0, n_classes, _HELD):
            size = min(_HELD, n_classes - begin)
            lowest = select(turn == 0, begin, n_classes - begin - size)
            for j in range(size):
                for i in range(n):
                    held[_FOUR + j, i] = np.float64(p[start + i, lowest + j])
            for j in range(_FOUR + size, 2 * _FOUR + size - 1):
                for i in range(n):
                    held[j, i] = 0.0
            nearest = select(turn == 0, _FOUR, _FOUR + size - 1)
            for j in range(0, size, _FOUR):
                behind, ahead = nearest + step * j, last - begin - j
                for i in range(n):
                    before = side[i] - begin - j
                    own, first, second = tail[i], l1[i], l2[i]
                    high, low, powers, least = product[i], error[i], exponent[i], smallest[i]
                    for u in range(_FOUR):
                        own = own + held[behind + step * u, i]
                        gap = select(u < before, own, 0.0)
                        first = first + gap
                        second = second + gap * gap
                        if ranked_log:
                            factor = select((u < before) | (u >= ahead), 1.0, own)
                            rounded = high * factor
                            low = fma(low, factor, fma(high, factor, -rounded))
                            high = rounded
                    tail[i], l1[i], l2[i] = own, first, second
                    if ranked_log:
                        whole = bits(high)
                        exponent[i] = powers + (whole >> _BITS) - _BIAS
                        product[i] = from_bits((whole & _MANTISSA) | _ONE)
                        error[i] = low * from_bits((_TWICE - (whole >> _BITS)) << _BITS)
                        smallest[i] = select(high < least, high, least)
