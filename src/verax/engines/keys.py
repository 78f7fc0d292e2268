"""Increasing keys of values: one for each distinct value, or one for each of fixed bins.

An exact key is the bits of the float, so that no two values share one. A bin is known by its number, which
depends on the value alone. So sums by key add up, however the rows are divided. There are three layouts of
bins, each a function of the values and the level, which is `EXACT` or how often neighbouring bins are joined:

- `loss_keys`: of any numbers, relative to their size;
- `forecast_keys`: of probabilities, narrow near both ends;
- `rank_keys`: of probabilities, relative to the distance from zero or one however small it is, because sure
  forecasts lie there, and their order matters as much as that of others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verax.common.sorting import DECIMALS as DECIMALS
from verax.common.sorting import distinct_values, n_distinct
from verax.inputs.arrays import Floats, Ints
from verax.kernels.ledger import compiles

# The level at which every distinct value has a key of its own.
EXACT = -1
Layout = Callable[[Floats, int], Ints]

# Bins are as wide as 2**-10 times the value, near zero 2**-20: their numbers are the first bits of the value
# plus 2**-10.
_NEAR, _SHIFT = 2.0**-10, 42
_FIRST = int(np.array(_NEAR).view(np.int64)) >> _SHIFT
# Finite values of at least 2**40 share a bin, and infinite ones have the next but 1,023.
_TOP = (40 + 10) << 10
_INFINITE = _TOP + (1 << 10)
LAYOUT = (_NEAR, _SHIFT, _FIRST, _TOP, _INFINITE)
# Bins of forecasts above a half are counted down from this number.
ONE = 2**15
# The bits of one half, and the largest exact key of a probability, that of 1.
_HALF_BITS = int(np.array(0.5).view(np.int64))
MOST_KEY = 2 * _HALF_BITS + 1
# Bins of ranks: at least as large as the key, a probability has this many bits after the leading one in its
# number.
_WIDTHS = {0.0: 4, 2.0**-64: 8, 2.0**-10: 10}
# Rows that are looked at to see whether values repeat, and the number of rows that makes it worthwhile.
_PROBE, _MANY = 1000, 2**14
# What a row takes in compiled loops, against a probability of a pass.
_WORK = 8


def compiled(n_rows: int) -> bool:
    """Whether compiled loops should sum up this number of rows."""
    return compiles(_WORK * n_rows, "histograms")


# ---- losses and other numbers ------------------------------------------------------------------------


def bin_numbers(key: Floats) -> Ints:
    """The number of the bin of each value. It grows with the value; zero alone has 0.

    >>> bin_numbers(np.array([-1.0, 0.0, 1e-13, 1e-6, 1.0, 1.0001, 1.001, np.inf])).tolist()
    [-10242, 0, 1, 2, 10242, 10242, 10243, 52225]
    """
    if compiled(len(key)):
        return _compiled_numbers(key)
    bits = (np.abs(key) + _NEAR).view(np.int64)
    numbers = np.minimum((bits >> _SHIFT) - _FIRST, _TOP) + 1
    numbers[np.isinf(key)] = _INFINITE + 1
    numbers[key == 0] = 0
    return np.asarray(np.where(key < 0, -numbers, numbers))


def _compiled_numbers(key: Floats, one: int = 0, level: int = 0) -> Ints:
    from verax.kernels.binning import bin_numbers as kernel

    out = np.empty(len(key), np.int64)
    kernel(np.ascontiguousarray(key), _NEAR, _SHIFT, _FIRST, _TOP, _INFINITE, one, level, out)
    return out


def joined(numbers: Ints, times: int) -> Ints:
    """The numbers of wider bins: neighbours are joined in pairs, `times` times; zero stays alone."""
    if not times:
        return numbers
    size = np.abs(numbers)
    return np.asarray(np.where(numbers == 0, 0, np.sign(numbers) * (((size - 1) >> times) + 1)))


def loss_keys(values: Floats, level: int) -> Ints:
    """The keys of any numbers.

    >>> loss_keys(np.array([-1.0, -0.0, 0.0, 1.0]), EXACT).tolist()
    [-4607182418800017408, 0, 0, 4607182418800017408]
    """
    if level != EXACT:
        return joined(bin_numbers(values), level)
    bits = (np.abs(values) + 0.0).view(np.int64)
    return np.asarray(np.where(values < 0, -bits, bits))


# ---- probabilities -----------------------------------------------------------------------------------


def forecast_keys(q: Floats, level: int) -> Ints:
    """The keys of probabilities; 0 and 1 have bins of their own.

    >>> forecast_keys(np.array([0.0, 1e-7, 0.3, 0.7, 1 - 1e-7, 1.0]), 0).tolist()
    [0, 1, 8401, 24367, 32767, 32768]
    """
    if level == EXACT:
        return exact_keys(q)
    if compiled(len(q)):
        return _compiled_numbers(q, ONE, level)
    upper = q > 0.5
    number = joined(bin_numbers(np.where(upper, 1 - q, q)), level)
    return np.asarray(np.where(upper, ONE - number, number))


def exact_keys(q: Floats) -> Ints:
    """A key for every distinct probability, in increasing order.

    It is counted down from the top above one half, where it is the distance from one that has the digits.

    >>> exact_keys(np.array([0.0, 1e-300, 0.5, 1.0])).tolist()
    [0, 118622047889322841, 4602678819172646912, 9205357638345293825]
    """
    upper = q > 0.5
    # Above one half the difference is exact.
    bits = (np.where(upper, 1 - q, q) + 0.0).view(np.int64)
    return np.asarray(np.where(upper, MOST_KEY - bits, bits))


def exact_values(keys: Ints) -> Floats:
    """The probabilities that have these exact keys.

    >>> exact_values(exact_keys(np.array([0.0, 1e-300, 0.5, 0.7, 1.0]))).tolist()
    [0.0, 1e-300, 0.5, 0.7, 1.0]
    """
    upper = keys > _HALF_BITS
    q = np.where(upper, MOST_KEY - keys, keys).view(np.float64)
    return np.asarray(np.where(upper, 1 - q, q))


def _rank_numbers(q: Floats) -> Ints:
    """The number of the bin of each probability up to a half; zero alone has 0."""
    bits = (q + 0.0).view(np.int64)
    number = (bits > 0).astype(np.int64)
    for (least, width), most in zip(_WIDTHS.items(), [*list(_WIDTHS)[1:], 0.5], strict=True):
        start, end = np.array([least, most]).view(np.int64) >> (52 - width)
        number += np.clip(bits >> (52 - width), start, end) - start
    return number


_HALF = int(_rank_numbers(np.array([0.5]))[0])
# More than the number of any bin of ranks.
MOST_RANKS = 2 * _HALF + 2


def rank_keys(q: Floats, level: int) -> Ints:
    """The keys of probabilities that rank rows.

    >>> rank_keys(np.array([0.0, 1e-99, 1e-15, 1.1e-15, 0.4, 0.5, 0.6, 1 - 1e-15, 1.0]), 0).tolist()
    [0, 11106, 18961, 18990, 37975, 38385, 38796, 57810, 76771]
    """
    if level == EXACT:
        return exact_keys(q)
    upper = q > 0.5
    number = joined(_rank_numbers(np.where(upper, 1 - q, q)), level)
    return np.asarray(np.where(upper, 2 * ((_HALF - 1 >> level) + 1) + 1 - number, number))


# ---- distinct values ---------------------------------------------------------------------------------


def distinct(values: Floats) -> tuple[Floats, Ints]:
    """The distinct numbers in increasing order, and the place of each value among them."""
    if len(values) > _MANY and n_distinct(values[:_PROBE]) < _PROBE // 2:
        # Where every bin has a single value, the bins tell values apart without sorting the rows.
        bins, place = distinct_values(rank_keys(values, 0))
        different = np.empty(len(bins))
        different[place] = values
        if bool((different[place] == values).all()):
            return different, place
    order = np.argsort(values)
    ordered, place = values[order], np.empty(len(values), np.int64)
    rises = ordered[1:] != ordered[:-1]
    if rises.all():
        place[order] = np.arange(len(values))
        return ordered, place
    first = np.concatenate([[True], rises])
    place[order] = np.cumsum(first) - 1
    return ordered[first], place


def places(values: Floats, layout: Layout, level: int) -> tuple[Ints, Ints]:
    """The keys of values that occur, in order, and the place of each value's key among them."""
    if level != EXACT:
        keys_and_places: tuple[Ints, Ints] = distinct_values(layout(values, level))
        return keys_and_places
    different, place = distinct(values)
    return layout(different, EXACT), place
