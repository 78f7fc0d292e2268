"""The logistic regression of an event on the log odds of its forecast: whether there is one, and the fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, fdtrc, log_expit

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.slope_result import CalibrationLine
from verax.analyses.units import CountedUnits, IndependentUnits, dot
from verax.common.specs import Ends, Whole
from verax.common.summaries import Summary, merges
from verax.inference.intervals import Interval
from verax.inputs.arrays import Bools, Floats


def log_odds(event: BinaryEvent) -> Floats:
    """The log odds of the forecasts; infinite where a forecast is 0 or 1."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(event.given) - np.log(event.rest))


class Overlap(Summary):
    """Where the log odds of rows with and without an event lie: what decides whether there is a fit.

    Attributes
    ----------
    n, happened : int
        The number of rows, and of those with the event.
    finite, finite_happened : int
        The same of the rows with finite log odds.
    wrong : int
        How many rows had a forecast of 0 or 1 that was wrong.
    without, with_event : pair of floats
        The smallest and the largest finite log odds of the rows without and with the event.
    """

    n: int = merges(Whole())
    happened: int = merges(Whole(most="n"))
    finite: int = merges(Whole(most="n"))
    finite_happened: int = merges(Whole(most="finite"))
    wrong: int = merges(Whole(most="n"))
    without: tuple[float, float] = merges(Ends())
    with_event: tuple[float, float] = merges(Ends())

    @classmethod
    def of(cls, odds: Floats, happened: Bools) -> Overlap:
        """Of rows with these log odds and outcomes."""
        finite = np.isfinite(odds)
        wrong = (np.isneginf(odds) & happened) | (np.isposinf(odds) & ~happened)
        sides = [odds[finite & side] for side in (~happened, happened)]
        ends = [(float(x.min(initial=np.inf)), float(x.max(initial=-np.inf))) for x in sides]
        return cls(
            len(odds),
            int(happened.sum()),
            int(finite.sum()),
            len(sides[1]),
            int(wrong.sum()),
            ends[0],
            ends[1],
        )

    @property
    def certain(self) -> int:
        """How many rows had a forecast of 0 or 1."""
        return self.n - self.finite

    @property
    def problem(self) -> str:
        """Why nothing can be fitted; empty where it can."""
        if self.happened in (0, self.n):
            return "the event always or never happened"
        if self.wrong:
            return "an event with a forecast of 0 happened, or one with a forecast of 1 did not"
        if self.finite_happened in (0, self.finite):
            return "apart from forecasts of 0 and 1, the event always or never happened"
        return ""

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the rarer outcome: with few events, tests have the tails of few rows."""
        return min(self.finite_happened, self.finite - self.finite_happened) - 1.0

    @property
    def slope_problem(self) -> str:
        """Why there is no finite slope; empty where there is one."""
        (low, high), (low_hit, high_hit) = self.without, self.with_event
        if min(low, low_hit) == max(high, high_hit):
            return "all forecasts are the same, so there is no slope"
        if low_hit >= high or high_hit <= low:
            return "the forecasts separate the outcomes, so the slope is infinite"
        return ""


def fit_intercept(x: Floats, h: Bools, w: Floats) -> float:
    """The intercept that makes the mean forecast right, with slope 1."""
    reach = float(np.abs(x).max()) + 800.0

    def excess(level: float) -> float:
        return dot(w, expit(level + x)) - float(w[h].sum())

    return float(brentq(excess, -reach, reach, xtol=1e-13, rtol=1e-14))


@dataclass(frozen=True)
class Regression:
    """Intercept and slope by maximum likelihood, in units of the spread of the log odds.

    Attributes
    ----------
    coefficients : array of shape (2,)
        Of the constant, and of (x - centre) / scale.
    centre, scale : float
        The units.
    """

    coefficients: Floats
    centre: float
    scale: float

    @classmethod
    def of(cls, x: Floats, h: Bools, w: Floats) -> Regression:
        """Of rows with these log odds, outcomes and weights."""
        # Forecasts in units of their spread, so that the curvature is the same in all directions.
        units = cls(np.zeros(2), float(np.average(x, weights=w)), float(x[w > 0].std()) or 1.0)
        columns = units.columns(x)
        sign = np.where(h, 1.0, -1.0)

        def loss(b: Floats) -> float:
            return -dot(w, log_expit(sign * (b @ columns)))

        def slope_of(b: Floats) -> Floats:
            return np.asarray(columns @ (w * (expit(b @ columns) - h)))

        def curvature(b: Floats) -> Floats:
            z = b @ columns
            return np.asarray((columns * (w * expit(z) * expit(-z))) @ columns.T)

        start, options = np.array([units.centre, units.scale]), {"gtol": 1e-11}
        found = minimize(loss, start, jac=slope_of, hess=curvature, method="trust-exact", options=options)
        # One more of Newton's steps gives the last digits.
        last = np.linalg.solve(curvature(found.x), slope_of(found.x))
        return cls(found.x - last, units.centre, units.scale)

    def columns(self, x: Floats) -> Floats:
        """(2, N) the constant and the log odds in these units."""
        return np.stack([np.ones(len(x)), (x - self.centre) / self.scale])

    @property
    def back(self) -> Floats:
        """The matrix that turns coefficients into intercept and slope."""
        return np.array([[1.0, -self.centre / self.scale], [0.0, 1 / self.scale]])


def wald(deviation: Floats, covariance: Floats, freedom: float) -> float:
    """The p-value of two estimates being zero together, by Hotelling's F distribution."""
    if freedom <= 1 or not np.isfinite(covariance).all() or np.linalg.matrix_rank(covariance) < 2:
        return math.nan
    statistic = float(deviation @ np.linalg.solve(covariance, deviation))
    return float(fdtrc(2, freedom - 1, statistic * (freedom - 1) / (2 * freedom)))


# Where weights are so unequal that fewer rows in effect count than this share of them, a few rows decide on
# the slope, and its sandwich variance is too small: at 0.4, 10 to 13 % of calibrated slopes exclude 1, and at
# 0.1 it is 24 %.
_EVEN = 0.6
_UNEVEN = "the weights are very unequal, so the interval is too narrow"


# ---- lines -------------------------------------------------------------------------------------


def line_of(
    name: str,
    large: tuple[float, float],
    both: Floats | None,
    covariance: Floats,
    overlap: Overlap,
    units: CountedUnits,
    confidence: float,
) -> CalibrationLine:
    """Slope and intercepts with their intervals.

    `large` is the intercept if the slope is 1, with its variance; `both` are intercept and slope, None where
    there is no slope. A rare event has no more degrees of freedom than the number of its occurrences gives.
    """
    uneven = not units.grouped and units.freedom + 1 < _EVEN * units.n
    units = replace(units, degrees=max(1.0, min(units.freedom, overlap.freedom)))
    fits, p_value, slope_p = [large], math.nan, math.nan
    if both is None:
        fits += [(math.nan, math.nan)] * 2
    else:
        fits += [(float(both[i]), float(covariance[i, i])) for i in range(2)]
        p_value = wald(both - [0.0, 1.0], covariance, units.freedom)
        slope_p = math.nan if uneven else units.p_value(fits[2][0] - 1, fits[2][1])
    problem = "; ".join(filter(None, [overlap.slope_problem, _UNEVEN if uneven else ""]))
    cautions = ["", problem, problem]
    intervals = [
        units.interval(value, variance, confidence, caution=caution)
        for (value, variance), caution in zip(fits, cautions, strict=True)
    ]
    (level, _), (intercept, _), (slope, _) = fits
    shown = intervals[2], intervals[1], intervals[0]
    return CalibrationLine(name, slope, intercept, level, *shown, p_value, overlap.certain, slope_p)


def undefined_line(
    name: str, overlap: Overlap, units: IndependentUnits, confidence: float
) -> CalibrationLine:
    """The line of an event that has no fit."""
    none = Interval.undefined(overlap.problem, method=units.method, confidence=confidence)
    return CalibrationLine(name, math.nan, math.nan, math.nan, none, none, none, math.nan, overlap.certain)


def heading_of_lists(n_lists: int, n_groups: int | None, said: str) -> str:
    """The first line of the slopes of top lists."""
    grouped = "" if n_groups is None else f", {n_groups:,} groups"
    return f"verax calibration slopes: {n_lists:,} top lists{grouped}, {said}"
