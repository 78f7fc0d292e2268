"""Rows divided by their sums: how many there were, and how far from 1 their sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.inputs.validity import Unity


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
        """The rows with these sums; sums that cannot be divided by are left to the checks."""
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

    def said(self, rows: str = "rows") -> str:
        """What was done, as a sentence; `rows` is what is divided.

        >>> Rescaled(400, 12, 0.93, 1.2).said()
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
