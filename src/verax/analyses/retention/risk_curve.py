"""Risk along coverage, from runs of rows that tie: the same for rows and for bins of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verax.inputs.arrays import Floats

# Coverages that differ by less are equal.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class RiskCurve:
    """Coverage and the sum of the losses kept, after every run of rows that tie, or every bin of rows.

    Attributes
    ----------
    weight, total : array of shape (B,)
        The share of each run, from the most certain on, and what its losses add to the mean of all rows.
    count : array of shape (B,)
        The number of rows of each run. Each of them counts with the mean loss and weight of the run.
    """

    weight: Floats
    total: Floats
    count: Floats

    @property
    def coverage(self) -> Floats:
        """The share of the weight that is kept at the end of each run; 1 at the end of all."""
        kept = np.cumsum(self.weight)
        return np.asarray(kept / kept[-1])

    @property
    def generalized(self) -> Floats:
        """The losses kept, per row of all."""
        return np.asarray(np.cumsum(self.total))

    @property
    def risk(self) -> Floats:
        """The mean loss of what is kept."""
        return np.asarray(self.generalized / self.coverage)

    def each_row(self) -> RiskCurve:
        """The same with a point for every row."""
        times = self.count.astype(np.int64)
        weight, total = (np.repeat(column / self.count, times) for column in (self.weight, self.total))
        return RiskCurve(weight, total, np.ones(len(weight)))

    @property
    def first(self) -> float:
        """The share of the first row."""
        return float(self.weight[0] / self.count[0])

    def area(self, heights: str) -> float:
        """The area under the risk, or under the generalized risk, from the first row on."""
        if self.count.sum() < 2:
            return math.nan
        if not np.isfinite(self.total).all():
            return math.inf
        before, start = self.coverage - self.weight, self.generalized - self.total
        row = self.weight / self.count
        if heights == "generalized":
            areas = self.weight * (start + self.total / 2)
            areas[0] -= self.total[0] / self.count[0] * row[0] / 2
        else:
            mean = self.total / self.weight
            areas = mean * self.weight + (start - mean * before) * _reciprocals(before, row, self.count)
            areas[0] = mean[0] * (self.weight[0] - row[0])
        return float(areas.sum() / (1 - self.first))

    def risk_at(self, coverage: float) -> float:
        """The risk of the most certain rows that make at least this share."""
        ends = self.coverage
        at = min(int(np.searchsorted(ends, coverage - _ROUNDING)), len(ends) - 1)
        before, start = (float(ends[at - 1]), float(self.generalized[at - 1])) if at else (0.0, 0.0)
        row = float(self.weight[at] / self.count[at])
        rows = min(max(math.ceil((coverage - _ROUNDING - before) / row), 1), float(self.count[at]))
        share = rows / float(self.count[at])
        return (start + share * float(self.total[at])) / (before + share * float(self.weight[at]))

    def coverage_at(self, risk: float) -> float:
        """The largest coverage at which the risk is at most this."""
        limit = risk + _ROUNDING
        fits = np.flatnonzero(self.risk <= limit)
        last = int(fits[-1]) if len(fits) else -1
        kept = float(self.coverage[last]) if len(fits) else 0.0
        if len(fits) and last + 1 < len(self.weight):
            # Some rows of the next run may still fit.
            at = last + 1
            excess = float(self.total[at] / self.weight[at]) - limit
            room = (limit * kept - float(self.generalized[last])) / excess
            row = float(self.weight[at] / self.count[at])
            kept = min(kept + math.floor(room / row + _ROUNDING) * row, float(self.coverage[at]))
        return kept if kept > 0 else math.nan


def _reciprocals(before: Floats, row: Floats, count: Floats) -> Floats:
    """Trapezoids under 1 / coverage over the rows of each run; not for the first, which begins at zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = before / row
        found = (1 / first + 1 / (first + count)) / 2
    tied = np.flatnonzero(count != 1)
    if len(tied):
        from scipy.special import digamma

        found[tied] += digamma(first[tied] + count[tied]) - digamma(first[tied] + 1)
    return np.where(before > 0, found, 0.0)
