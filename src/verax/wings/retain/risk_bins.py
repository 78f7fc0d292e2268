"""Risk along coverage, from runs of rows that tie: the same for rows and for bins of rows.

Of more rows than are kept there is a histogram of their doubts.
All rows of a bin count with their mean loss, as rows that tie do. So the curve is exact where bins end, and
between its ends it differs from that of the rows by what an order of the rows of the bin can do: of losses
from a to b with the mean r, a part of a bin of weight W can have at most D = W (b - r) (r - a) / (b - a) more
or less than its share. The largest that this makes of the area is a triangle over the bin, D W / 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verax.analyses.uncertainty_scores import UncertaintyScore
from verax.analyses.unitsums import check_weight
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Bools, Floats
from verax.wings.retain.bins import Bins, effective_groups, observed_and_drawn
from verax.wings.retain.summaries import Histograms

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
        trapezoids = (1 / first + 1 / (first + count)) / 2
    tied = np.flatnonzero(count != 1)
    if len(tied):
        from scipy.special import digamma

        trapezoids[tied] += digamma(first[tied] + count[tied]) - digamma(first[tied] + 1)
    return np.where(before > 0, trapezoids, 0.0)


# Replicates are drawn from at most this number of bins: sampling noise is larger than the binning error.
_DRAWN = 2**10


@dataclass(frozen=True, eq=False)
class RiskBins:
    """A histogram of rows by their doubts, with the losses in each bin, and bootstrap replicates of it.

    Attributes
    ----------
    weight, total, count, least, most : array of shape (B,)
        Of each bin, from the most certain on: its share of the weight, what its losses add to the mean of all
        rows, how many rows it has, and the extremes of their losses.
    tied : (B,) bool array
        Whether the rows of a bin all have the same doubt.
    even : bool
        Whether all rows have the same weight.
    drawn_weight, drawn_total : array of shape (R, C)
        The same of each replicate, in C wider bins. Row 0 has what was observed.
    drawn_count : array of shape (C,)
        The numbers of rows in these.
    n_groups : float or None
        The effective number of groups that replicates were drawn of; None for independent rows.
    """

    weight: Floats
    total: Floats
    count: Floats
    least: Floats
    most: Floats
    tied: Bools
    even: bool
    drawn_weight: Floats
    drawn_total: Floats
    drawn_count: Floats
    n_groups: float | None = None

    @property
    def curve(self) -> RiskCurve:
        """The curve of all rows."""
        return RiskCurve(self.weight, self.total, self.count)

    def replicates(self) -> Iterator[RiskCurve]:
        """The curve of all rows, then of each replicate, in the wider bins."""
        for weight, total in zip(self.drawn_weight, self.drawn_total, strict=True):
            here = weight > 0
            weights, sums = weight[here], total[here]
            rows = self.drawn_count[here] * weights / self.drawn_weight[0][here]
            yield RiskCurve(weights / weights.sum(), sums / weights.sum(), np.maximum(rows, 1e-9))

    @property
    def within(self) -> tuple[float, float]:
        """Bounds of the errors of the areas under the risk and under the generalized risk."""
        if not np.isfinite(self.total).all():
            return 0.0, 0.0
        mean = self.total / self.weight
        up, down = np.maximum(self.most - mean, 0.0), np.maximum(mean - self.least, 0.0)
        wide = up + down
        apart = np.where(self.tied, 0.0, np.divide(up * down, wide, out=np.zeros_like(wide), where=wide > 0))
        before = np.cumsum(self.weight) - self.weight
        triangle = self.weight**2 * apart / 2
        whole = np.where(apart > 0, self.weight * np.maximum(up, down), 0.0)
        risk = np.minimum(np.divide(triangle, before, out=whole.copy(), where=before > 0), whole)
        curve, loose = self.curve, np.zeros(2)
        if not self.even:
            # Where the weights of single rows matter: the first of all, and the steps of 1 / coverage.
            end = before + self.weight
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = self.weight * (1 / before + 1 / end) / 2 - np.log(end / before)
                start = np.cumsum(self.total) - self.total
                risk = risk + np.where(before > 0, np.abs(start - mean * before) * steps, 0.0)
            first = float(self.weight[0])
            most = np.array(
                [self.most[0] + curve.area("risk"), first * self.most[0] + curve.area("generalized")]
            )
            loose = first * np.abs(most) / max(1 - first, 1e-300)
        width = 1 - curve.first
        areas = np.array([risk.sum(), triangle.sum()]) / width + loose
        return float(areas[0]), float(areas[1])


def risk_bins(histograms: Histograms, key: UncertaintyScore, plan: Resampling) -> RiskBins:
    """The histogram of rows by their doubts, with replicates."""
    order, groups = histograms.orders[key.name], histograms.replicates[key.name]
    fine = Bins(order)
    whole = float(fine.weights.sum())
    check_weight(whole)
    unit = fine.squares / fine.weights
    n_groups = effective_groups(order, groups) if groups else None
    if groups:
        order = order.coarser(max(0, groups[0].level - order.level)).at_most(_DRAWN)
        groups = tuple(drawn.coarser(max(0, order.level - drawn.level)) for drawn in groups)
    observed, *drawn = observed_and_drawn(order, groups, plan, _DRAWN)
    weights, totals = (np.zeros((len(drawn) + 1, len(observed.rows))) for _ in range(2))
    for replicate, bins in enumerate([observed, *drawn]):
        at = np.searchsorted(-observed.keys, -bins.keys)
        weights[replicate, at], totals[replicate, at] = bins.weights, bins.sums_of(0)
    return RiskBins(
        fine.weights[::-1] / whole,
        fine.sums_of(0)[::-1] / whole,
        fine.rows[::-1],
        fine.least[::-1, 0],
        fine.most[::-1, 0],
        fine.tied[::-1],
        bool(np.ptp(unit) <= 1e-12 * float(unit.max())),
        weights[:, ::-1],
        totals[:, ::-1],
        observed.rows[::-1],
        n_groups,
    )
