"""Observed and expected events of subgroups, and their ratio with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verax.analyses.calibration.sums import Events
from verax.analyses.subgroups.scores import SHIFT, EventTest
from verax.common.faces import Record
from verax.engines.clusters import variances_over
from verax.inference.intervals import Interval, t_quantile
from verax.inference.shares import mid_p_limits

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
    """

    observed: float
    expected: float
    interval: Interval

    _facts = ("ratio",)

    @property
    def ratio(self) -> float:
        """Observed divided by expected; NaN where nothing was expected."""
        return self.observed / self.expected if self.expected > 0 else math.nan


@dataclass(frozen=True)
class EventCounts:
    """Observed and expected events of one event in a subgroup, and how they vary.

    Attributes
    ----------
    observed, expected : float
        The weight of the rows in which it happened, and the weighted sum of its probabilities.
    right, variance : float
        The variance of observed minus expected if rows are independent and their probabilities are right, and
        one that allows for groups and for probabilities that are right on average alone.
    freedom : float
        The degrees of freedom of the latter; infinite without groups, zero in one group.
    rows : float
        The number of rows that a unit of weight is worth.
    """

    observed: float
    expected: float
    right: float
    variance: float
    freedom: float
    rows: float

    @classmethod
    def of(cls, test: EventTest, events: Events, i: int, *, flipped: bool, copies: bool) -> EventCounts:
        """Those of event `i`, which was tested; or of its opposite if `flipped`."""
        weight, observed, expected = test.weight, test.observed, test.expected
        right, variance, freedom = float(test.variances[SHIFT]), test.average, math.inf
        if events.groups is not None:
            of_groups, free = variances_over(events.labels, events.groups[:, [0, 1 + i]] / weight)
            variance, freedom = float(np.max(of_groups)) * weight**2, float(np.max(free))
        if flipped:
            observed, expected = weight - observed, weight - expected
        rows = 1.0 if copies else weight / test.squares
        return cls(observed, expected, right, max(right, variance), freedom, rows)


def event_ratios(counts: Sequence[EventCounts | None], confidence: float) -> list[EventRatio | None]:
    """Observed and expected events with the intervals of their ratios; None where there are none."""
    from scipy.special import ndtri

    known = [each for each in counts if each is not None]
    quantile = -float(ndtri((1 - confidence) / 2))
    observed, expected, right, variance, rows = (
        np.array([(each.observed, each.expected, each.right, each.variance, each.rows) for each in known])
        .reshape(-1, 5)
        .T
    )
    student = np.array(
        [
            quantile if not 0 < each.freedom < math.inf else t_quantile(each.freedom, confidence)
            for each in known
        ]
    )
    with np.errstate(all="ignore"):
        share = np.clip(1 - right * rows / expected, _EDGE, 1 - _EDGE)
        n = np.maximum(expected / share, observed)
        fewer = rows * right / variance * (quantile / student) ** 2
        limits = mid_p_limits(observed / n, n * fewer, (1 - confidence) / 2) * n / expected
    ends = iter(limits.T.tolist())
    return [None if each is None else _ratio(each, next(ends), confidence) for each in counts]


def _ratio(counts: EventCounts, ends: Sequence[float], confidence: float) -> EventRatio:
    why = ""
    if not (counts.expected > 0 and counts.right > 0):
        why = "the event was not uncertain"
    elif not counts.freedom > 0:
        why = "all rows belong to one group"
    if why:
        interval = Interval.undefined(why, method="mid-P", confidence=confidence)
    else:
        interval = Interval(ends[0], ends[1], method="mid-P", confidence=confidence)
    return EventRatio(counts.observed, counts.expected, interval)
