"""Compiled loops over lists of different lengths. Rules are formulas over these statistics.

The arrays are private copies that no caller can write to. The loops still do not rely on values
they have read before: every index is bounded by the sizes of the arrays, whatever the arrays hold.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np

from verax.kernels.arithmetic import OPTIONS
from verax.kernels.dense import places
from verax.kernels.limits import GRID, SMALLEST_MASS
from verax.kernels.texts import Kernel

# Up to this length comparing all pairs is faster than sorting.
_PAIRS_UP_TO = 32
# The size of a hash table that fits a first-level cache, and the multiplier of the hash function.
_SLOTS = 2**11
_SCATTER = 0x9E3779B97F4A7C1 | 1


@numba.njit(**OPTIONS)
def _bounds(offsets: Any, i: int, size: int) -> tuple[int, int]:
    """Where list i begins and ends, within an array of this size."""
    a = min(max(offsets[i], 0), size)
    return a, min(max(offsets[i + 1], a), size)


@numba.njit(**OPTIONS)
def order(classes: Any, confidences: Any, offsets: Any, new_classes: Any, new_confidences: Any) -> None:
    """Write every list with the most confident class first; equals keep their order.

    Short lists are ranked by counting the entries that come before each entry: more comparisons than
    sorting, but no branch that depends on the data.
    """
    for i in range(offsets.size - 1):
        a, b = _bounds(offsets, i, confidences.size)
        if b - a > _PAIRS_UP_TO:
            rank = np.argsort(-confidences[a:b], kind="mergesort")
            new_confidences[a:b] = confidences[a:b][rank]
            new_classes[a:b] = classes[a:b][rank]
            continue
        row = confidences[a:b]
        for j in range(row.size):
            own = row[j]
            place = a
            for k in range(j):
                place += row[k] >= own
            for k in range(j + 1, row.size):
                place += row[k] > own
            place = min(place, b - 1)
            new_confidences[place] = own
            new_classes[place] = classes[a + j]


@numba.njit(**OPTIONS)
def repeated(classes: Any, offsets: Any, twice: Any, which: Any) -> None:
    """Mark the lists that have a class twice, and say which class.

    Every class writes the number of its list to its slot of a hash table. Where it finds that number
    there already, there is a repeat or, in few lists, a collision: the list is sorted to see which.
    """
    slots = np.full(_SLOTS, -1, np.int64)
    for i in range(min(offsets.size - 1, twice.size)):
        a, b = _bounds(offsets, i, classes.size)
        row = classes[a:b]
        n_met = 0
        for j in range(row.size):
            slot = (row[j] * _SCATTER >> 40) & (_SLOTS - 1)
            n_met += slots[slot] == i
            slots[slot] = i
        if n_met == 0:
            continue
        codes = np.sort(row)
        for j in range(1, codes.size):
            if codes[j] == codes[j - 1]:
                twice[i] = True
                which[i] = codes[j]
                break


@numba.njit(**OPTIONS)
def survey(
    confidences: Any,
    offsets: Any,
    m: float,
    tolerance: float,
    total: Any,
    left: Any,
    kept: Any,
    left_kept: Any,
) -> None:
    """The mass of every list and its largest valid sublist, as `Ragged.survey` has them."""
    for i in range(min(offsets.size - 1, kept.size)):
        a, b = _bounds(offsets, i, confidences.size)
        k = b - a
        high = 0.0
        low = 0.0
        for j in range(a, b):
            h = np.rint(confidences[j] * GRID) / GRID
            high += h
            low += confidences[j] - h
        rest = (1.0 - high) - low
        rest = 0.0 if rest < SMALLEST_MASS or k >= m else rest
        total[i] = high + low
        left[i] = rest
        if k > 0 and (m - k) * confidences[b - 1] < rest - tolerance:
            n = 0
            run = 0.0
            while n < k:
                t = confidences[a + n]
                run += t
                if (m - (n + 1)) * t + run < 1.0 - tolerance:
                    break
                n += 1
            k = n
            high = 0.0
            low = 0.0
            for j in range(a, a + k):
                h = np.rint(confidences[j] * GRID) / GRID
                high += h
                low += confidences[j] - h
            rest = (1.0 - high) - low
            rest = 0.0 if rest < SMALLEST_MASS else rest
        kept[i] = k
        left_kept[i] = rest


@cache
def row_stats(*, ranks: bool) -> Kernel:
    """A kernel for top lists: from lists, their survey and the outcomes to statistics.

    `out` has one row per statistic, as `statistics.PLACE` says.
    """
    p_true_at, rest_sq_at, hit_at, invalid_at = places("p_true", "rest_sq", "hit", "invalid")
    listed_at, length_at, unaccounted_at = places("listed", "length", "unaccounted")
    above_at, tied_at = places("above", "tied")

    @numba.njit(**OPTIONS)
    def kernel(
        classes: np.ndarray[Any, Any],
        confidences: np.ndarray[Any, Any],
        offsets: np.ndarray[Any, Any],
        left: np.ndarray[Any, Any],
        kept: np.ndarray[Any, Any],
        left_kept: np.ndarray[Any, Any],
        y: np.ndarray[Any, Any],
        m: float,
        tolerance: float,
        out: np.ndarray[Any, Any],
    ) -> None:
        for i in range(min(y.size, offsets.size - 1, out.shape[1])):
            a, b = _bounds(offsets, i, confidences.size)
            outcome = y[i]
            place = -1
            for j in range(a, b):
                place = j if classes[j] == outcome else place
            n_kept = min(max(kept[i], 0), b - a)
            end = a + n_kept
            unlisted = m - n_kept
            proxy = left_kept[i] / unlisted if unlisted > 0 else 0.0
            others = unlisted
            p_true = proxy
            rest_sq = 0.0
            if a <= place < end:
                p_true = confidences[place]
                for j in range(a, place):
                    rest_sq += confidences[j] * confidences[j]
                for j in range(place + 1, end):
                    rest_sq += confidences[j] * confidences[j]
            else:
                others -= 1.0
                for j in range(a, end):
                    rest_sq += confidences[j] * confidences[j]
            out[p_true_at, i] = p_true
            out[rest_sq_at, i] = rest_sq + (others * proxy) * proxy
            hit = 0.0
            if end == a or m * confidences[a] <= 1.0 + tolerance:
                hit = 1.0 / m
            elif a <= place < end and p_true == confidences[a]:
                n_modes = 0
                for j in range(a, end):
                    n_modes += confidences[j] == p_true
                hit = 1.0 / max(n_modes, 1)
            out[hit_at, i] = hit
            out[invalid_at, i] = n_kept < b - a
            out[listed_at, i] = place >= a
            out[length_at, i] = b - a
            out[unaccounted_at, i] = left[i]
            if ranks:
                above = 0
                tied = 0
                if place >= a:
                    for j in range(a, b):
                        above += confidences[j] > confidences[place]
                        tied += confidences[j] == confidences[place]
                out[above_at, i] = above
                out[tied_at, i] = tied

    return kernel  # type: ignore[no-any-return]
