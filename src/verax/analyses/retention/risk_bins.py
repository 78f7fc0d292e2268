"""Risk and coverage of more rows than are kept, from a histogram of their doubts.

All rows of a bin count with their mean loss, as rows that tie do. So the curve is exact where bins end, and
between its ends it differs from that of the rows by what an order of the rows of the bin can do: of losses
from a to b with the mean r, a part of a bin of weight W can have at most D = W (b - r) (r - a) / (b - a) more
or less than its share. The largest that this makes of the area is a triangle over the bin, D W / 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verax.analyses.retention.bins import Bins, effective_groups
from verax.analyses.retention.risk_curve import RiskCurve
from verax.analyses.retention.summaries import Histograms
from verax.analyses.retention.uncertainty_scores import UncertaintyScore
from verax.analyses.unitsums import check_weight
from verax.engines.histograms import Histogram
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Bools, Floats

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
    n_rows : int
        The number of rows.
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
    n_rows: int
    n_groups: float | None = None

    @property
    def curve(self) -> RiskCurve:
        """What was observed."""
        return RiskCurve(self.weight, self.total, self.count)

    def replicates(self) -> Iterator[RiskCurve]:
        """What was observed, and each replicate, in the wider bins."""
        for weight, total in zip(self.drawn_weight, self.drawn_total, strict=True):
            here = weight > 0
            own, sums = weight[here], total[here]
            rows = self.drawn_count[here] * own / self.drawn_weight[0][here]
            yield RiskCurve(own / own.sum(), sums / own.sum(), np.maximum(rows, 1e-9))

    @property
    def within(self) -> tuple[float, float]:
        """How far the areas under the risk and under the generalized risk can be from those of the rows."""
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
        found = np.array([risk.sum(), triangle.sum()]) / width + loose
        return float(found[0]), float(found[1])


def risk_bins(histograms: Histograms, key: UncertaintyScore, plan: Resampling, n_rows: int) -> RiskBins:
    """The histogram of rows by their doubts, with replicates."""
    order, groups = histograms.orders[key.name], histograms.replicates[key.name]
    fine = _Columns(order)
    check_weight(float(fine.weight.sum()))
    squares = fine.squares
    return RiskBins(
        fine.weight / fine.weight.sum(),
        fine.total / fine.weight.sum(),
        fine.count,
        fine.least,
        fine.most,
        fine.tied,
        bool(np.ptp(squares / fine.weight) <= 1e-12 * float((squares / fine.weight).max())),
        *_drawn(order, groups, plan),
        n_rows,
        effective_groups(order, groups) if groups else None,
    )


class _Columns:
    """The columns of a histogram, from the most certain bin on."""

    def __init__(self, found: Histogram) -> None:
        bins, own = Bins(found), found.bins.total.sums.high
        self.keys = found.bins.total.keys
        self.count, self.weight, self.squares = own[:, 0], own[:, 1], own[:, 2]
        self.total = np.where(bins.infinite[::-1, 0] > 0, np.inf, bins.sums[::-1, 0])
        self.least, self.most = bins.least[::-1, 0], bins.most[::-1, 0]
        self.tied: Bools = bins.tied[::-1]


def _drawn(
    order: Histogram, groups: tuple[Histogram, ...], plan: Resampling
) -> tuple[Floats, Floats, Floats]:
    """Weights and losses in the bins of what was observed and of each replicate, and the numbers of rows."""
    wide = order.coarser(max(0, groups[0].level - order.level)) if groups else order
    base = wide.at_most(_DRAWN)
    own = _Columns(base)
    weights, totals = [own.weight], [own.total]
    if groups:
        for each in groups:
            if len(each.bins.total.keys):
                found = _Columns(each.coarser(max(0, base.level - each.level)))
                at = np.searchsorted(own.keys, found.keys)
                for column, values in ((weights, found.weight), (totals, found.total)):
                    spread = np.zeros(len(own.keys))
                    spread[at] = values
                    column.append(spread)
    elif plan.replicates:
        for drawn in Bins(base).drawn(plan.replicates, plan.seed, copies=plan.copies):
            lost = drawn.infinite[::-1, 0] > 0
            weights.append(drawn.weights[::-1])
            totals.append(np.where(lost, np.inf, drawn.sums[::-1, 0]))
    return np.array(weights), np.array(totals), own.count
