"""Observed and expected events of subgroups: how far off they are, and whether they are so together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verax.analyses.calibration.claims import p_value_of, variances_of_gap
from verax.analyses.calibration.sums import CLAIM, HIT, Events
from verax.common.faces import Hidden, Record
from verax.inference.intervals import Interval, t_quantile
from verax.inference.shares import mid_p_limits

# Where fewer rows of the rarer outcome are expected, there is no test, and nothing to be pooled.
_FEWEST = 2.0
# Without any one subgroup the others must still differ by this normal quantile, and "all subgroups" are said
# to be off only if equal shifts are not rejected at this level.
_WITHOUT, _ALIKE = 1.6448536, 0.05
_EDGE = 1e-9


@dataclass(frozen=True)
class EventRatio(Record):
    """How often the second of two classes happened in a subgroup, and how often that was expected.

    Attributes
    ----------
    observed : float
        The number of rows, or their weight, in which it happened.
    expected : float
        The sum of its probabilities.
    interval : Interval
        The interval of observed divided by expected: mid-P limits of the number of events among those rows of
        equal probability that have the same mean and variance.
    p_value : float or None
        The two-sided p-value of their difference; None where fewer than two rows of the rarer outcome were
        expected, or all rows belong to one group.
    right, variance : float
        The variance of observed minus expected if rows are independent and their probabilities are right, and
        one that allows for groups and for probabilities that are right on average alone.
    weight : float
        The weight of all rows.
    pooled : bool
        Whether the rows are independent of those of other subgroups.
    """

    observed: float
    expected: float
    interval: Interval
    p_value: float | None
    right: Hidden[float]
    variance: Hidden[float]
    weight: Hidden[float]
    pooled: Hidden[bool]

    _facts = ("ratio",)

    @property
    def ratio(self) -> float:
        """Observed divided by expected; NaN where nothing was expected."""
        return self.observed / self.expected if self.expected > 0 else math.nan

    @classmethod
    def of(cls, events: Events, confidence: float, *, copies: bool) -> EventRatio:
        """That of two classes, from their sums: of both, or of the event that the first one happens."""
        first = events.n_events == 1
        weight = float(events.weight.high[0])
        expected, observed = events.totals.high[0 if first else 1, [CLAIM, HIT]].tolist()
        if first:
            expected, observed = weight - expected, weight - observed
        event = 0 if first else 1
        right, variance, freedom = variances_of_gap(events, event, copies=copies)
        p = p_value_of(events, event, copies=copies) if min(expected, weight - expected) >= _FEWEST else None
        rows = 1.0 if copies else weight / float(events.weight.high[1])
        interval = _interval(observed, expected, (right, variance, freedom), rows, confidence)
        return cls(observed, expected, interval, p, right, variance, weight, pooled=math.isinf(freedom))


def _interval(
    observed: float, expected: float, spread: tuple[float, float, float], rows: float, confidence: float
) -> Interval:
    """The interval of observed divided by expected; `rows` is how many rows a unit of weight is worth."""
    from scipy.special import ndtri

    right, variance, freedom = spread
    if not (expected > 0 and right > 0):
        return Interval.undefined("the event was not uncertain", method="mid-P", confidence=confidence)
    if not freedom > 0:
        return Interval.undefined("all rows belong to one group", method="mid-P", confidence=confidence)
    quantile = -float(ndtri((1 - confidence) / 2))
    student = quantile if math.isinf(freedom) else t_quantile(freedom, confidence)
    share = min(max(1 - right * rows / expected, _EDGE), 1 - _EDGE)
    fewer = rows * right / variance * (quantile / student) ** 2
    n = max(expected / share, observed)
    low, high = mid_p_limits(observed / n, n * fewer, (1 - confidence) / 2).tolist()
    return Interval(low * n / expected, high * n / expected, method="mid-P", confidence=confidence)


@dataclass(frozen=True)
class Pooled:
    """The shift that several subgroups have together.

    Attributes
    ----------
    ratio : float
        Observed divided by expected events of all of them.
    p_value : float
        The two-sided p-value of their sum.
    n : int
        How many subgroups were pooled.
    several : bool
        Whether it is also seen without any one of them.
    alike : bool
        Whether all subgroups were pooled, and equal shifts are not rejected.
    p_adjusted : float
        The p-value after the correction for all that was tested together.
    """

    ratio: float
    p_value: float
    n: int
    several: bool
    alike: bool
    p_adjusted: float = math.nan

    @classmethod
    def of(cls, ratios: Sequence[EventRatio | None]) -> Pooled | None:
        """That of subgroups whose rows are independent; None of fewer than two."""
        known = [
            each
            for each in ratios
            if each is not None
            and each.pooled
            and each.right > 0
            and min(each.expected, each.weight - each.expected) >= _FEWEST
        ]
        if len(known) < 2:
            return None
        shift = np.array([each.observed - each.expected for each in known])
        variance = np.array([each.variance for each in known])
        total, spread = shift.sum(), variance.sum()
        z = total / math.sqrt(spread)
        without = np.sign(total) * (total - shift) / np.sqrt(spread - variance)
        apart = float((shift**2 / variance).sum() - total**2 / spread)
        return cls(
            sum(each.observed for each in known) / sum(each.expected for each in known),
            math.erfc(abs(z) / math.sqrt(2)),
            len(known),
            bool(without.min() > _WITHOUT),
            len(known) == len(ratios) and _p_of_chi_square(apart, len(known) - 1) > _ALIKE,
        )

    @property
    def everywhere(self) -> bool:
        """Whether it can be said of all subgroups, and not only as a whole."""
        return self.several and self.alike


def _p_of_chi_square(value: float, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, max(value, 0.0)))
