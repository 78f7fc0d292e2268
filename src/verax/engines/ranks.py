"""Keys of probabilities, in their order: one for each distinct value, or one for each of fixed bins.

An exact key is the bits of the float, counted down from the top above one half, where it is the distance from
one that has the digits. So no two probabilities share one. Where there are too many, rows are counted in bins
whose width is relative to the distance from zero or one, because sure forecasts lie there, and their order
matters as much as that of others.
"""

from __future__ import annotations

import numpy as np

from verax.common.sorting import n_distinct
from verax.engines.histograms import joined, places
from verax.inputs.arrays import Floats, Ints

# The bits of one half.
_HALF_BITS = int(np.array(0.5).view(np.int64))
# The largest exact key, that of 1.
MOST_KEY = 2 * _HALF_BITS + 1
# Bins: at least as large as the key, a probability has this many bits after the leading one in its number.
_WIDTHS = {0.0: 4, 2.0**-64: 8, 2.0**-10: 10}
# Rows that are looked at to see whether values repeat, and the number of rows that makes it worthwhile.
_PROBE, _MANY = 1000, 2**14


def exact_keys(q: Floats) -> Ints:
    """A key for every distinct probability, in increasing order.

    >>> exact_keys(np.array([0.0, 1e-300, 0.5, 1.0])).tolist()
    [0, 118622047889322841, 4602678819172646912, 9205357638345293825]
    """
    upper = q > 0.5
    # Above one half the difference is exact.
    bits = (np.where(upper, 1 - q, q) + 0.0).view(np.int64)
    return np.asarray(np.where(upper, MOST_KEY - bits, bits))


def values_of(keys: Ints) -> Floats:
    """The probabilities that have these exact keys.

    >>> q = np.array([0.0, 5e-324, 0.1, 0.5, 0.9, 1 - 2**-53, 1.0])
    >>> bool((values_of(exact_keys(q)) == q).all())
    True
    """
    upper = keys > _HALF_BITS
    lower = np.where(upper, MOST_KEY - keys, keys).view(np.float64)
    return np.asarray(np.where(upper, 1 - lower, lower))


def distinct(values: Floats) -> tuple[Floats, Ints]:
    """The distinct probabilities in increasing order, and the place of each value among them."""
    if len(values) > _MANY and n_distinct(values[:_PROBE]) < _PROBE // 2:
        # Where every bin has a single value, the bins tell values apart without sorting the rows.
        place, bins = places(rank_bins(values, 0))
        found = np.empty(len(bins))
        found[place] = values
        if bool((found[place] == values).all()):
            return found, place
    found, inverse = np.unique(values, return_inverse=True)
    return found, np.asarray(inverse.reshape(-1))


def _numbers(q: Floats) -> Ints:
    """The number of the bin of each probability up to a half; zero alone has 0."""
    bits = (q + 0.0).view(np.int64)
    number = (bits > 0).astype(np.int64)
    for (least, width), most in zip(_WIDTHS.items(), [*list(_WIDTHS)[1:], 0.5], strict=True):
        start, end = np.array([least, most]).view(np.int64) >> (52 - width)
        number += np.clip(bits >> (52 - width), start, end) - start
    return number


_HALF = int(_numbers(np.array([0.5]))[0])
# More than the number of any bin.
MOST_RANKS = 2 * _HALF + 2


def rank_bins(q: Floats, level: int) -> Ints:
    """The number of the bin of each probability, after neighbours were joined in pairs `level` times.

    >>> rank_bins(np.array([0.0, 1e-99, 1e-15, 1.1e-15, 0.4, 0.5, 0.6, 1 - 1e-15, 1.0]), 0).tolist()
    [0, 11106, 18961, 18990, 37975, 38385, 38796, 57810, 76771]
    """
    upper = q > 0.5
    number = joined(_numbers(np.where(upper, 1 - q, q)), level)
    return np.asarray(np.where(upper, 2 * ((_HALF - 1 >> level) + 1) + 1 - number, number))
