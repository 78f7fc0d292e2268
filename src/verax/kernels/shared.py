"""Numbers, and the sum with its rounding error, that compiled and uncompiled code share."""

from __future__ import annotations

from typing import Any

# A rest below this is the rounding of the confidences themselves.
SMALLEST_MASS = 2.0**-52
# High parts of probabilities are multiples of 1/_GRID: sums of up to 2^26 of them are exact.
GRID = 2.0**26
# From here down, relative to the largest logit, a probability or its inverse may leave the range of floats.
FAR = -600.0
# A statistic below this counts as this in derivatives: those of its logarithm and its root are then finite.
TINY = 1e-300
# Cells of groups count rows in 8 bits: at this number they start again, and it is noted that they were full.
FULL = 2**8


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum and the rounding error, which is exact (Knuth); for numbers and arrays of any kind."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)
