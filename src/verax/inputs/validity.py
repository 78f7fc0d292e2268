"""The one definition of a valid row of probabilities, for every pass and engine.

A row is valid if no value is negative or NaN and its sum differs from 1 by at most the tolerance of its
precision. The sum is the exact sum of its values, rounded once (`math.fsum`).

Passes add the values of a row in whatever order suits the hardware, so their sums differ from the exact
one by rounding. A pass therefore accepts only rows that are clear (`Unity.clear`); all others are decided
by `Unity.holds`, which computes exact sums where rounding matters. No two passes can disagree.

`Rescaled` counts the rows that are divided by their sums on request.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from verax.inputs.arrays import Array, Namespace, kind_of, namespace_of

# Above this share of rows left out, results carry a caution, and errors do not advise to leave rows out.
MANY = 0.02
# Rows printed with six decimals may sum to 1.000001, which no binary number is: they count as within 1e-6.
_SLACK = 1 + 1e-6
_TOLERANCES = {16: 1e-2, 32: 1e-4}
LARGEST_TOLERANCE: float = max(_TOLERANCES.values())
_DECIMALS = {1e-2: 3, 1e-4: 6, 1e-6: 12}


def tolerance_of(bits: int) -> float:
    """How far a sum of probabilities may be from 1, given their precision in bits."""
    return _TOLERANCES.get(bits, 1e-6)


@dataclass(frozen=True)
class Unity:
    """The requirement that rows sum to 1 within `tolerance`."""

    tolerance: float

    @classmethod
    def of(cls, p: Array) -> Unity:
        """The requirement for rows of the precision that `p` came in."""
        return _unity_of(namespace_of(p), p.dtype) if kind_of(p) == "real" else cls.at(64)

    @classmethod
    def at(cls, bits: int) -> Unity:
        """The requirement for probabilities of a given precision in bits."""
        return cls(tolerance_of(bits))

    @property
    def limit(self) -> float:
        """The largest deviation of a valid row's exact sum from 1."""
        return self.tolerance * _SLACK

    @property
    def decimals(self) -> int:
        """The number of decimals to which sums of probabilities are compared: .1 + .7 equals .2 + .6.

        It depends on the tolerance, and so on the precision of the forecasts.
        """
        return _DECIMALS[self.tolerance]

    def clear(self, n_classes: int, epsilon: float = 2.0**-52) -> float:
        """The largest deviation of a sum, taken in any order, that shows its row to be valid.

        `epsilon` is the spacing of the numbers that are added. Sums of K values near 1 are off by less
        than K times that.
        """
        return self.limit - n_classes * epsilon

    def both_classes(self, p: Array, xp: Namespace) -> Array:
        """(n, 2) rows from probabilities of class 1; one that exceeds 1 within the tolerance leaves 0."""
        rest = xp.where((p > 1) & (p <= 1 + self.limit), xp.zeros_like(p), 1 - p)
        return xp.stack([rest, p], axis=1)

    def holds(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each of some (n, K) rows is valid."""
        rows = rows.astype(np.float64, copy=False)
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.abs(rows.sum(axis=1) - 1)
            rounding = rows.shape[1] * 2.0**-52
            valid = np.asarray(off <= self.limit)
            # NaN compares as false: such rows are not close, and not valid.
            for row in np.flatnonzero(np.abs(off - self.limit) <= 2 * rounding):
                valid[row] = abs(math.fsum(rows[row]) - 1) <= self.limit
            return np.asarray(valid & (rows.min(axis=1) >= 0))


@lru_cache(maxsize=64)
def _unity_of(xp: Namespace, dtype: Any) -> Unity:
    return Unity.at(int(xp.finfo(dtype).bits))


@dataclass(frozen=True)
class Rescaled:
    """The rows whose sums differ from 1 by more than valid rows may.

    Attributes
    ----------
    n_rows : int
        The number of all rows.
    count : int
        The number of rows that were divided by another sum than 1.
    low, high : float
        The smallest and the largest of their sums.
    """

    n_rows: int = 0
    count: int = 0
    low: float = math.inf
    high: float = -math.inf

    @classmethod
    def of(cls, totals: np.ndarray[Any, Any], unity: Unity) -> Rescaled:
        """The rows with these sums; checks refuse sums that cannot be divided by."""
        fits = np.isfinite(totals) & (totals > 0)
        off = totals[fits & (np.abs(totals - 1) > unity.limit)]
        return cls(totals.size, off.size, float(off.min(initial=math.inf)), float(off.max(initial=-math.inf)))

    def __add__(self, other: Rescaled) -> Rescaled:
        return Rescaled(
            self.n_rows + other.n_rows,
            self.count + other.count,
            min(self.low, other.low),
            max(self.high, other.high),
        )

    def sentence(self, rows: str = "rows") -> str:
        """A sentence on the division; `rows` names what was divided.

        >>> Rescaled(400, 12, 0.93, 1.2).sentence()
        '12 of 400 rows were divided by their sums, 0.93 to 1.2.'
        """
        if not self.count:
            return f"None of the {self.n_rows:,} {rows} had to be divided by its sum."
        verb, sums = ("was", "its sum") if self.count == 1 else ("were", "their sums")
        low, high = f"{self.low:.4g}", f"{self.high:.4g}"
        return (
            f"{self.count:,} of {self.n_rows:,} {rows} {verb} divided by {sums}, "
            f"{low if low == high else f'{low} to {high}'}."
        )
