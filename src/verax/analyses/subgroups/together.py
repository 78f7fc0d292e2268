"""What several subgroups show together: a shift or a slope that each alone may be too small to show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.subgroups.ratios import EventCounts
from verax.analyses.subgroups.scores import SHIFT, SLOPE, EventTest, cr2, p_over_groups
from verax.common.faces import Record
from verax.common.summaries import joined_names
from verax.engines.clusters import sums_by_label
from verax.inputs.arrays import Floats

# Without any one subgroup the others must still differ by this normal quantile, and "all subgroups" are said
# to be off only if equal shifts are not rejected at this level.
_WITHOUT, _ALIKE = 1.6448536, 0.05
# The event of more than two classes.
MOST_LIKELY = "the most likely class"


@dataclass(frozen=True)
class PooledEvent:
    """The event of a subgroup that is added up over the subgroups.

    Attributes
    ----------
    test : EventTest
        Its tests.
    counts : EventCounts
        What was observed and expected.
    labels : array or None
        The groups of rows.
    """

    test: EventTest
    counts: EventCounts
    labels: Any


@dataclass(frozen=True)
class Pooled(Record):
    """The shift and the slope that several subgroups have together.

    Attributes
    ----------
    model : str
        The name of the model.
    event : str
        The event: "" for the second of two classes, else "the most likely class".
    ratio : float
        Observed divided by expected events of all of them.
    p_value : float
        The two-sided p-value of their sum of observed minus expected events.
    n : int
        How many subgroups were pooled.
    several : bool
        Whether the shift is also seen without any one of them.
    alike : bool
        Whether all subgroups were tested, and equal shifts are not rejected.
    slope : float
        The slope of outcomes on the log-odds of forecasts within the subgroups, by one step from 1.
    slope_p_value : float or None
        The two-sided p-value of a slope of 1.
    p_adjusted, slope_p_adjusted : float or None
        The p-values after the correction for all that was tested together.
    """

    model: str
    event: str
    ratio: float
    p_value: float
    n: int
    several: bool
    alike: bool
    slope: float
    slope_p_value: float | None
    p_adjusted: float | None = None
    slope_p_adjusted: float | None = None

    @classmethod
    def of(cls, events: Sequence[PooledEvent], model: str, event: str) -> Pooled | None:
        """That of the subgroups of a model; None of fewer than two that vary."""
        known = [each for each in events if each.counts.right > 0]
        if len(known) < 2 or any((each.labels is None) != (known[0].labels is None) for each in known):
            return None
        grouped = known[0].labels is not None
        if grouped and any(each.test.of_groups is None for each in known):
            return None
        shift = np.array([each.test.statistics[SHIFT] for each in known])
        p, variance = _pooled(known, SHIFT)
        if math.isnan(p):
            return None
        least = np.array([each.test.variances[SHIFT] for each in known])
        # Over groups, each subgroup has its part of the variance.
        own = (
            least * (variance / least.sum())
            if grouped
            else np.array([each.counts.variance for each in known])
        )
        total, spread = shift.sum(), own.sum()
        without = np.sign(total) * (total - shift) / np.sqrt(spread - own)
        apart = float((shift**2 / own).sum() - total**2 / spread)
        tested = all(not math.isnan(each.test.p_values[SHIFT]) for each in events)
        alike = tested and not _crossed(known) and _p_of_chi_square(apart, len(known) - 1) > _ALIKE
        slope = sum(float(each.test.statistics[SLOPE]) for each in known)
        # Variances have squared weights, and how much a slope moves the statistic has weights.
        sloped = sum(
            float(each.test.variances[SLOPE]) * each.test.weight / each.test.squares for each in known
        )
        slope_p = _pooled(known, SLOPE)[0] if sloped > 0 else math.nan
        return cls(
            model,
            event,
            sum(each.counts.observed for each in known) / sum(each.counts.expected for each in known),
            p,
            len(known),
            bool(without.min() > _WITHOUT),
            alike,
            1 + slope / sloped if sloped > 0 else math.nan,
            None if math.isnan(slope_p) else slope_p,
        )

    @property
    def everywhere(self) -> bool:
        """Whether the shift can be said of all subgroups, and not only as a whole."""
        return self.several and self.alike

    @property
    def p_whole(self) -> float:
        """The p-value of both tests."""
        return min(1.0, 2 * min(self.p_value, 1.0 if self.slope_p_value is None else self.slope_p_value))


def _pooled(events: Sequence[PooledEvent], kind: int) -> tuple[float, float]:
    """The two-sided p-value of a statistic that is added up over subgroups, and its variance."""
    total = sum(each.test.statistics[kind] for each in events)
    right = sum(each.test.variances[kind] for each in events)
    if events[0].labels is None:
        # Forecasts that are right on average alone vary more than right ones.
        variance = sum(each.counts.variance for each in events) if kind == SHIFT else right
        return math.erfc(abs(total) / math.sqrt(2 * variance)), variance
    sums = _over_subgroups(events, kind)
    variance, freedom = cr2(sums[:, 0], sums[:, 1])
    return p_over_groups(total, right, variance, freedom), max(right, variance)


def _over_subgroups(events: Sequence[PooledEvent], kind: int) -> Floats:
    """What each group of rows adds to a statistic and its part of the variance, (G, 2): it may be in several
    subgroups.
    """
    parts = [np.stack([column[kind] for column in each.test.of_groups or ()], axis=1) for each in events]
    labels = events[0].labels
    for each in events[1:]:
        labels = joined_names(labels, each.labels)
    return sums_by_label(labels, np.concatenate(parts))[1]


def _crossed(events: Sequence[PooledEvent]) -> bool:
    """Whether a group of rows is in several subgroups."""
    if events[0].labels is None:
        return False
    return len(_over_subgroups(events, SHIFT)) < sum(len(each.labels) for each in events)


def _p_of_chi_square(value: float, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, max(value, 0.0)))
