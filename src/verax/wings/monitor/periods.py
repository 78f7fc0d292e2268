"""Time steps that a monitor has taken in, and the onset of a change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from verax.inference.intervals import Interval, t_quantile
from verax.inference.sequences import log_factors
from verax.inputs.arrays import Floats
from verax.wings.monitor.evidence import OF_LOSS, Target
from verax.wings.monitor.loops import BINS
from verax.wings.monitor.steps import (
    CLAIMED,
    EXCESS,
    HAPPENED,
    LOSS,
    OF_EVENT,
    PER_EVENT,
    SAMPLED,
    SHIFT,
    STATED,
    TILT,
    Scope,
    Step,
)

# The onset is plausible at steps from which a change explains at most this much less than the likeliest one.
_PLAUSIBLE = 3.0
# The median of a chi-square variable with one degree of freedom.
_MEDIAN = 0.455
_NO_BINS: Floats = np.zeros((0, BINS, 2))


@dataclass(frozen=True)
class Period:
    """One time step: the sums of all rows and of subgroups, and the evidence after it (logarithms)."""

    time: Any
    steps: Mapping[Scope, Step]
    evidence: float
    logs: Mapping[Target, float]

    def __post_init__(self) -> None:
        # Bins are only needed in the capital, where bets adapt to them.
        bare = {scope: replace(step, bins=_NO_BINS) for scope, step in self.steps.items()}
        object.__setattr__(self, "steps", bare)

    @property
    def whole(self) -> Step:
        """All rows."""
        return self.steps["", None]

    def plus(self, later: Period) -> Period:
        """The period with more rows, of the same time or later."""
        both = dict(self.steps)
        for scope, step in later.steps.items():
            both[scope] = added(both[scope], step) if scope in both else step
        return Period(self.time, both, later.evidence, later.logs)

    def to_values(self) -> dict[str, Any]:
        """The fields, for storing."""
        return {
            "time": self.time,
            "scopes": [list(scope) for scope in self.steps],
            "counts": np.array([[s.n_rows, s.n_units] for s in self.steps.values()], np.int64),
            "sums": np.stack([[s.means, s.first, s.second] for s in self.steps.values()]),
            "variances": np.array([s.variance for s in self.steps.values()]),
            "evidence": self.evidence,
            "targets": [list(target) for target in self.logs],
            "logs": np.array(list(self.logs.values())),
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Period:
        """The stored time step."""
        columns = values["scopes"], values["counts"].tolist(), values["sums"], values["variances"].tolist()
        steps = {
            (str(scope[0]), scope[1]): Step(n, units, sums[0], sums[1], sums[2], variance, _NO_BINS)
            for scope, (n, units), sums, variance in zip(*columns, strict=True)
        }
        targets = [(str(a), b, str(c)) for a, b, c in values["targets"]]
        logs = dict(zip(targets, values["logs"].tolist(), strict=True))
        return cls(values["time"], steps, float(values["evidence"]), logs)


def added(one: Step, other: Step) -> Step:
    """A step with the rows of both."""
    n, units = one.n_rows + other.n_rows, one.n_units + other.n_units
    a, b = one.n_rows / n, other.n_rows / n
    first, second = one.first + other.first, one.second + other.second
    variance = a * a * one.variance + b * b * other.variance
    if all(step.n_units == 1 for step in (one, other) if math.isnan(step.variance)) and math.isnan(variance):
        # Single units have no variance, but differ from each other.
        spread = float(second[LOSS]) / units - (float(first[LOSS]) / units) ** 2
        variance = max(spread, 0.0) / (units - 1)
    return Step(n, units, a * one.means + b * other.means, first, second, variance, one.bins)


def joined(periods: Sequence[Period], most: int) -> list[Period]:
    """At most `most` periods, with neighbours joined; each has the time of its first."""
    size = max(1, -(-len(periods) // most))
    return [reduce(Period.plus, periods[i : i + size]) for i in range(0, len(periods), size)]


def onset_of(
    periods: Sequence[Period], target: Target, events: Sequence[str], *, by_step: bool
) -> tuple[Any, Any, Any]:
    """When a change began: the likeliest time, and the earliest and latest plausible one.

    What starts at a step and goes on to the end explains most if it starts at the change: bets on rows or
    groups, or, if `by_step`, a mean of whole time steps that is not zero.
    """
    column, label, name = target
    of_scope = [period for period in periods if (column, label) in period.steps]
    steps = [period.steps[column, label] for period in of_scope]
    n = np.array([float(step.n_units) for step in steps])
    first, second = (np.stack([getattr(step, sums) for step in steps]) for sums in ("first", "second"))
    if name == OF_LOSS:
        places = [(EXCESS, 1.0)]
    else:
        at = OF_EVENT + PER_EVENT * events.index(name)
        places = [(at + bet, sign) for bet in (SHIFT, TILT) for sign in (1.0, -1.0)]
    gains = _gains_of_steps if by_step else _gains_of_units
    best = max((gains(sign * first[:, place], second[:, place], n) for place, sign in places), key=np.max)
    plausible = np.flatnonzero(best >= best.max() - _PLAUSIBLE)
    likeliest, low, high = (of_scope[i].time for i in (best.argmax(), plausible[0], plausible[-1]))
    return likeliest, low, high


def _from_each(numbers: Floats) -> Floats:
    """The sums from each step to the last."""
    return np.asarray(np.cumsum(numbers[::-1], axis=0)[::-1])


def _gains_of_units(first: Floats, second: Floats, n: Floats) -> Floats:
    """The gain of the best bet on rows or groups from each step to the end, in logarithms."""
    return np.asarray(log_factors(*map(_from_each, (first, second, n))).max(axis=1))


def _gains_of_steps(first: Floats, second: Floats, n: Floats) -> Floats:
    """The likelihood of a positive mean from each step to the end over that of none, in logarithms.

    The variance between steps is that of neighbours, whose differences a lasting change enlarges only once.
    """
    means, freedom = first / n, max(float((n - 1).sum()), 1.0)
    within = float(np.maximum(second - means * first, 0.0).sum()) / freedom / n
    apart = float(np.median(np.diff(means) ** 2)) / _MEDIAN / 2 if len(n) > 1 else 0.0
    variance = np.maximum(apart - float(np.median(within)), 0.0) + within
    # Steps of single rows may be all alike.
    precision = 1 / np.maximum(variance, 1e-12)
    return np.maximum(_from_each(means * precision), 0.0) ** 2 / _from_each(precision) / 2


def since_onset(
    periods: Sequence[Period], target: Target, events: Sequence[str], *, by_step: bool
) -> tuple[float, float, float]:
    """The mean probability, frequency and loss since a change began; for the loss the first two are NaN."""
    column, label, name = target
    start, _, _ = onset_of(periods, target, events, by_step=by_step)
    steps = [p.steps[column, label] for p in periods if (column, label) in p.steps and not p.time < start]
    weights = np.array([float(step.n_rows) for step in steps])
    means = np.average([step.means for step in steps], axis=0, weights=weights)
    if name == OF_LOSS:
        return math.nan, math.nan, float(means[LOSS])
    at = OF_EVENT + PER_EVENT * events.index(name)
    return float(means[at + STATED]), float(means[at + HAPPENED]), float(means[LOSS])


def loss_interval(step: Step, confidence: float, bounds: tuple[float, float]) -> Interval:
    """The confidence interval of the mean loss of one time step, within the bounds of the loss."""
    if not step.n_units > 1 or not math.isfinite(step.variance):
        return Interval.undefined("the time step has no two rows that count alike", confidence=confidence)
    half = t_quantile(step.n_units - 1, confidence) * math.sqrt(step.variance)
    mean = float(step.means[LOSS])
    return Interval(mean - half, mean + half, method="t", confidence=confidence).within(bounds)


def loss_ratio(periods: Sequence[Period]) -> float:
    """The mean loss divided by the loss that forecasts expect of themselves; NaN if unknown."""
    rows = np.array([float(period.whole.n_rows) for period in periods])
    means = np.array([period.whole.means for period in periods])
    if not len(periods) or not (rows @ means[:, CLAIMED] > 0 and rows @ means[:, SAMPLED] > 0):
        return math.nan
    loss, claimed, sampled = (float(rows @ means[:, column]) for column in (LOSS, CLAIMED, SAMPLED))
    return (loss / float(rows.sum())) / (claimed / sampled)
