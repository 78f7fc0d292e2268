"""Compiled loops over lists of different lengths, for the statistics that rules are formulas over.

The arrays are private copies that no caller can write to. The loops still do not rely on values
they have read before: every index is bounded by the sizes of the arrays, whatever the arrays hold.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from verax.kernels.functions import bits, compiled, from_bits, plus, select
from verax.kernels.shared import GRID, SMALLEST_MASS
from verax.kernels.statistics import places
from verax.kernels.texts import Kernel

# Up to this length comparing all pairs is faster than sorting one list; a power of two. A sort within
# a kernel takes seconds to compile.
_PAIRS_UP_TO = 32
# The size of a hash table that fits a first-level cache, and the multiplier of the hash function.
_SLOTS = 2**11
_SCATTER = 0x9E3779B97F4A7C1 | 1


# The longest list that has keys, and the bits of a key that are a confidence.
MOST_PACKED = _PAIRS_UP_TO
_UPPER = np.uint64(2**64 - _PAIRS_UP_TO)
# Cells of confidences: 128 per power of two, from 2^-26 to 1, and one for all below.
_CELL_SHIFT = np.uint64(45)
_FIRST_CELL = (1023 - 26) << 7
N_CELLS = 26 * 128 + 1


def _bounds(offsets: Any, i: int, size: int) -> tuple[int, int]:
    """Where list i begins and ends, within an array of this size."""
    a = min(max(offsets[i], 0), size)
    return a, min(max(offsets[i + 1], a), size)


@compiled
def order(classes: Any, confidences: Any, offsets: Any, new_classes: Any, new_confidences: Any) -> None:
    """Write every list of at most MOST_PACKED entries with the most confident class first; equals keep their
    order. Longer lists are left to array calls.

    Lists are ranked by counting the entries that come before each entry: more comparisons than sorting, but
    no branch that depends on the data.
    """
    for i in range(offsets.size - 1):
        a, b = _bounds(offsets, i, confidences.size)
        if b - a > _PAIRS_UP_TO:
            continue
        row = confidences[a:b]
        for j in range(row.size):
            confidence = row[j]
            place = a
            for k in range(j):
                place += row[k] >= confidence
            for k in range(j + 1, row.size):
                place += row[k] > confidence
            place = min(place, b - 1)
            new_confidences[place] = confidence
            new_classes[place] = classes[a + j]


@compiled
def repeated(classes: Any, offsets: Any, twice: Any, which: Any, slots: Any) -> int:
    """Mark the lists that have a class twice, say which class, and return how many there are.

    Every class writes the number of its list to its slot of a hash table, which must hold no such number.
    Where it finds that number there already, there is a repeat or, in few lists, a collision: the classes
    before it are looked through. Lists of more than MOST_PACKED entries are marked in either case, and array
    calls decide.
    """
    n_repeats = 0
    for i in range(min(offsets.size - 1, twice.size, which.size)):
        a, b = _bounds(offsets, i, classes.size)
        met = 0
        for j in range(a, b):
            slot = (classes[j] * _SCATTER >> 40) & (_SLOTS - 1)
            if slots[slot] == i:
                met += 1
                if b - a <= _PAIRS_UP_TO:
                    for k in range(a, j):
                        if classes[k] == classes[j]:
                            twice[i] = True
                            which[i] = classes[j]
            slots[slot] = i
        if met and b - a > _PAIRS_UP_TO:
            twice[i] = True
        n_repeats += twice[i]
    return n_repeats


def no_slots() -> Any:
    """A hash table for `repeated` that holds nothing."""
    return np.full(_SLOTS, -1, np.int64)


@compiled
def pack(confidences: Any, start: int, keys: Any) -> int:
    """Write keys of lists of the same length, whose order is theirs; how many entries are out of order.

    A key is a confidence with its place in the lowest five bits. Of equals the first has the largest.
    """
    n, k = keys.shape
    rising = 0
    for i in range(n):
        a = min(max(start + i * k, 0), confidences.size)
        before = np.inf
        for j in range(min(k, confidences.size - a)):
            t = confidences[a + j]
            keys[i, j] = from_bits((bits(t) & _UPPER) | np.uint64(_PAIRS_UP_TO - 1 - j))
            rising += not t <= before
            before = t
    return rising


@compiled
def unpack(
    keys: Any, classes: Any, confidences: Any, start: int, new_classes: Any, new_confidences: Any
) -> None:
    """Write lists in the order of their sorted keys, the largest first.

    Confidences that differ in the last bits have keys in the order of their places, and so these are put in
    order here. That also holds if the arrays that are read have changed since the keys were written.
    """
    n, k = keys.shape
    size = min(confidences.size, classes.size, new_confidences.size, new_classes.size)
    for i in range(n):
        a = min(max(start + i * k, 0), size)
        length = min(k, size - a)
        for j in range(length):
            place = _PAIRS_UP_TO - 1 - np.int64(bits(keys[i, k - 1 - j]) & ~_UPPER)
            place = a + min(max(place, 0), length - 1)
            confidence = confidences[place]
            at = a + j
            while at > a and new_confidences[at - 1] < confidence:
                new_confidences[at] = new_confidences[at - 1]
                new_classes[at] = new_classes[at - 1]
                at -= 1
            new_confidences[at] = confidence
            new_classes[at] = classes[place]


@compiled
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
            high = plus(high, h)
            low = plus(low, confidences[j] - h)
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


@compiled
def count_statements(
    classes: Any,
    confidences: Any,
    offsets: Any,
    total: Any,
    y: Any,
    weights: Any,
    weight: Any,
    claimed: Any,
    happened: Any,
    sums: Any,
) -> None:
    """Add up the statements of lists: of every place, and in the last row of each table of the whole list.

    `weight`, `claimed` and `happened` are (P + 1, C): the weight, the weighted confidences and the weight of
    those that happened, by the cell of the confidence. `sums` is (P + 1, 4): the weighted squares of the
    confidences, the weighted confidences of those that happened, and confidences and their squares by the
    squared weight. Without weights, which are then one number, the last two stay zero.
    """
    n_places = min(weight.shape[0], claimed.shape[0], happened.shape[0], sums.shape[0]) - 1
    n_cells = min(weight.shape[1], claimed.shape[1], happened.shape[1])
    even = weights.size == 1
    for i in range(min(offsets.size - 1, y.size, total.size)):
        a, b = _bounds(offsets, i, min(confidences.size, classes.size))
        w = weights[0 if even else min(i, weights.size - 1)]
        n = min(b - a, n_places)
        outcome = y[i]
        place = -1
        for j in range(a, b):
            place = j - a if classes[j] == outcome else place
        for j in range(n + 1):
            t = min(confidences[a + j] if j < n else total[i], 1.0)
            row = j if j < n else n_places
            cell = min(max(np.int64(bits(t) >> _CELL_SHIFT) - _FIRST_CELL, 0), n_cells - 1)
            weight[row, cell] += w
            claimed[row, cell] += w * t
            sums[row, 0] += w * t * t
            if not even:
                sums[row, 2] += w * w * t
                sums[row, 3] += w * w * t * t
            if j == place if j < n else place >= 0:
                happened[row, cell] += w
                sums[row, 1] += w * t


@cache
def row_stats(*, ranks: bool) -> Kernel:
    """A kernel for top lists: from lists, their survey and the outcomes to statistics.

    `out` has one row per statistic, as `statistics.PLACE` says.
    """
    p_true_at, rest_sq_at, hit_at, answered_at = places("p_true", "rest_sq", "hit", "answered")
    (invalid_at,) = places("invalid")
    listed_at, length_at, unaccounted_at = places("listed", "length", "unaccounted")
    above_at, tied_at = places("above", "tied")

    @compiled
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
            else:
                others -= 1.0
            for j in range(a, end):
                c = select(j == place, 0.0, confidences[j])
                rest_sq = plus(rest_sq, c * c)
            out[p_true_at, i] = p_true
            out[rest_sq_at, i] = rest_sq + (others * proxy) * proxy
            hit = 0.0
            if end == a or m * confidences[a] <= 1.0 + tolerance:
                hit = 1.0 / m
            elif a <= place < end and p_true == confidences[a]:
                # Lists are in order, so that equals stand together.
                n_modes = 1
                while a + n_modes < end and confidences[a + n_modes] == p_true:
                    n_modes += 1
                hit = 1.0 / n_modes
            out[hit_at, i] = hit
            if n_kept < b - a:
                # What an invalid list puts first is its answer, whatever the confidence.
                hit = 0.0
                if a <= place < b and confidences[place] == confidences[a]:
                    n_first = 1
                    while a + n_first < b and confidences[a + n_first] == confidences[a]:
                        n_first += 1
                    hit = 1.0 / n_first
            out[answered_at, i] = hit
            out[invalid_at, i] = n_kept < b - a
            out[listed_at, i] = place >= a
            out[length_at, i] = b - a
            out[unaccounted_at, i] = left[i]
            if ranks:
                above = 0
                tied = 0
                if place >= a:
                    first = place
                    while first > a and confidences[first - 1] == confidences[place]:
                        first -= 1
                    last = place + 1
                    while last < b and confidences[last] == confidences[place]:
                        last += 1
                    above = first - a
                    tied = last - first
                out[above_at, i] = above
                out[tied_at, i] = tied

    return kernel
