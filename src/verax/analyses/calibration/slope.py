"""Calibration slope and intercept: the logistic regression of an event on the log odds of its forecast."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, fdtrc, log_expit

from verax.analyses.binary import BinaryEvent, EventRows
from verax.analyses.calibration.places import ListEvents, check_places, refuse_places
from verax.analyses.units import SamplingUnits, dot
from verax.common.checks import check_flag
from verax.common.results import Result
from verax.display.tables import FrameKind, data_frame, html_table, text_table
from verax.inference.intervals import Interval, check_confidence
from verax.inputs.arrays import Bools, Floats
from verax.inputs.forecasts import Forecasts
from verax.inputs.options import Reading, reads
from verax.inputs.rows import Rows, pair
from verax.inputs.skipping import MaySkip


@reads
def calibration_slope(
    y: object,
    p: object,
    *,
    ordered: bool = False,
    places: int | None = None,
    confidence: float = 0.95,
    **read: Unpack[Reading],
) -> CalibrationSlopes:
    """Calibration slope and intercept: logit P(event) = intercept + slope x logit(forecast).

    A slope below 1 says that the forecasts are too extreme, above 1 that they are too timid. The intercept
    with the slope held at 1 (calibration in the large) says whether they are too low (above 0) or too high
    on the whole. Calibrated forecasts have slope 1 and intercept 0.

    The regression is not penalized. Intervals come from the sandwich variance, with groups from sums over
    groups. Forecasts of 0 or 1 have infinite log odds: where they are right they say nothing about a positive
    slope and are left out; where one is wrong there is no fit.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K)
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows.
    p : array_like of shape (N, K) or (N,), or TopLists
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough.
    ordered : bool, default False
        Whether to take thresholds of ordered classes, Y >= class, instead of each class. Two classes have one
        event, class 1.
    places : int, optional
        For top lists: how many of the first places have a slope; 10 if not given. Lists also have one for any
        listed class, and one for the whole list, whose sum is the forecast that the outcome is listed.
    confidence : float, default 0.95
        Confidence level of the intervals.
    **read

    Returns
    -------
    CalibrationSlopes
        Slope and intercept of each event, by name.

    See Also
    --------
    reliability : Whole curves instead of lines.

    References
    ----------
    Cox (1958), doi:10.1093/biomet/45.3-4.562; Van Calster et al. (2016), doi:10.1016/j.jclinepi.2015.12.005

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=5000)
    >>> y = (rng.random(5000) < 1 / (1 + np.exp(-z))).astype(int)
    >>> too_sure = 1 / (1 + np.exp(-2 * z))
    >>> line = vx.calibration_slope(y, too_sure)["1"]
    >>> round(line.slope, 2), line.slope_interval.high < 1
    (0.52, True)
    """
    check_confidence(confidence)
    forecasts = pair(y, p, ordered=check_flag("ordered", ordered), **read)
    if not isinstance(forecasts, Forecasts):
        return _of_lists(forecasts, check_places(places), confidence)
    refuse_places(places)
    rows = EventRows.of(forecasts, ordered)
    lines = tuple(_line(event, rows.units, confidence) for event in rows.events())
    prefix = "y " if ordered else "class "
    heading = rows.heading("calibration slopes")
    return CalibrationSlopes(lines, heading, prefix, len(rows.y), rows.n_groups, ordered, confidence)


def _of_lists(rows: Rows, places: int, confidence: float) -> CalibrationSlopes:
    """The slopes of the first places, of any place and of the whole list."""
    found = ListEvents.of(rows, "calibration slopes")
    lines = tuple(
        _line(
            BinaryEvent(event.name, event.given, event.rest, event.given, event.happened),
            found.units_of(event),
            confidence,
        )
        for event in found.all(places)
    )
    n_groups = None if found.groups is None else found.units.n
    grouped = "" if n_groups is None else f", {n_groups:,} groups"
    heading = f"verax calibration slopes: {found.n_lists:,} top lists{grouped}, {found.said}"
    return CalibrationSlopes(lines, heading, "", found.n_lists, n_groups, False, confidence)


# ---- results -----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class CalibrationLine(Result):
    """Slope and intercept of one event.

    Attributes
    ----------
    name : str
        The class, or ">= class".
    slope : float
        The slope of the regression; NaN where there is none, and the caution of its interval says why.
    intercept : float
        The intercept of the regression.
    in_the_large : float
        The intercept if the slope is 1.
    slope_interval : Interval
        The confidence interval of the slope.
    intercept_interval : Interval
        The confidence interval of the intercept.
    in_the_large_interval : Interval
        The confidence interval of `in_the_large`.
    p_value : float
        The p-value of slope 1 and intercept 0 together (Wald test).
    certain : int
        How many rows with a forecast of 0 or 1, which was right, were left out.

    Examples
    --------
    >>> import verax as vx
    >>> line = vx.calibration_slope([1, 0, 1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1, 0.8, 0.5])["1"]
    >>> line.name, line.certain
    ('1', 0)
    """

    name: str
    slope: float
    intercept: float
    in_the_large: float
    slope_interval: Interval
    intercept_interval: Interval
    in_the_large_interval: Interval
    p_value: float
    certain: int

    def _shown(self) -> dict[str, Any]:
        return {k: v.to_dict() if isinstance(v, Interval) else v for k, v in vars(self).items()}


@dataclass(frozen=True, repr=False, eq=False)
class CalibrationSlopes(MaySkip):
    """Slopes and intercepts of all events; `slopes["name"]` is one of them.

    Attributes
    ----------
    lines : tuple of CalibrationLine
        Slope and intercept of each event.
    heading : str
        What the events are, in words.
    prefix : str
        What stands before the name of an event in a table.
    n_rows : int
        The number of rows.
    n_groups : int or None
        The number of groups; None without groups.
    ordered : bool
        Whether the events are thresholds of ordered classes.
    confidence : float
        Confidence level of the intervals.

    Examples
    --------
    >>> import verax as vx
    >>> slopes = vx.calibration_slope([1, 0, 1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1, 0.8, 0.5])
    >>> [line.name for line in slopes.lines]
    ['1']
    """

    lines: tuple[CalibrationLine, ...]
    heading: str
    prefix: str
    n_rows: int
    n_groups: int | None
    ordered: bool
    confidence: float

    def __iter__(self) -> Iterator[CalibrationLine]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, name: object) -> CalibrationLine:
        for line in self.lines:
            if line.name == str(name):
                return line
        raise KeyError(f"{name!r} has no slope; there are {', '.join(line.name for line in self.lines)}")

    def _shown(self) -> dict[str, Any]:
        return {
            "n_rows": self.n_rows,
            "n_groups": self.n_groups,
            "ordered": self.ordered,
            "confidence": self.confidence,
            "lines": [line._shown() for line in self.lines],
            **self._noted(),
        }

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per event, as a data frame of the kind named.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        columns: dict[str, list[Any]] = {"event": [line.name for line in self.lines]}
        for name in ("slope", "intercept", "in_the_large"):
            intervals = [getattr(line, f"{name}_interval") for line in self.lines]
            columns[name] = [getattr(line, name) for line in self.lines]
            columns[f"{name}_low"] = [interval.low for interval in intervals]
            columns[f"{name}_high"] = [interval.high for interval in intervals]
        columns["p_value"] = [line.p_value for line in self.lines]
        return data_frame(columns, kind)

    def _cells(self) -> list[list[str]]:
        header = ["", "slope", "intercept", "intercept if the slope is 1", "p (calibrated)"]
        lines = []
        for line in self.lines:
            values = [
                _text(getattr(line, name), getattr(line, f"{name}_interval"))
                for name in ("slope", "intercept", "in_the_large")
            ]
            p = "" if math.isnan(line.p_value) else f"{line.p_value:.2g}"
            lines.append([self.prefix + line.name, *values, p])
        return [header, *lines]

    def _notes(self) -> list[str]:
        notes = ["Slope below 1: too extreme; above 1: too timid. Intercept above 0: too low on the whole."]
        reasons = dict.fromkeys(x.slope_interval.caution for x in self.lines if x.slope_interval.caution)
        notes += [f"Caution: {reason}." for reason in reasons]
        certain = max(line.certain for line in self.lines)
        if certain:
            notes.append(f"Forecasts of 0 or 1, which were right, were left out: up to {certain:,} rows.")
        return notes

    def __repr__(self) -> str:
        table = text_table(self._cells(), right=(1, 2, 3, 4))
        return "\n".join([self.heading, *table, *self._notes(), *self._said()])

    def _repr_html_(self) -> str:
        return html_table(self._cells(), caption=self.heading, notes=self._notes())


def _text(value: float, interval: Interval) -> str:
    return f"{value:.3f} ({interval:.3f})" if interval.defined else f"{value:.3f}"


# ---- the fit -----------------------------------------------------------------------------------


def _line(event: BinaryEvent, units: SamplingUnits, confidence: float) -> CalibrationLine:
    with np.errstate(divide="ignore"):
        odds = np.log(event.given) - np.log(event.rest)
    finite = np.isfinite(odds)
    x, h, w = odds[finite], event.happened[finite], units.share[finite]
    problem = _problem(odds, event.happened)
    if problem:
        return _undefined(event, problem, units, confidence, int((~finite).sum()))
    slope_problem = _slope_problem(x, h)
    level = _intercept(x, h, w)
    residual = np.zeros(len(odds))
    residual[finite] = h - expit(level + x)
    information = dot(w, expit(level + x) * expit(-level - x))
    spread = float(units.variances(units.influence([residual / information]))[0])
    fits = [(level, spread)]
    p_value = math.nan
    if slope_problem:
        fits += [(math.nan, math.nan)] * 2
    else:
        both, covariance = _regression(odds, event.happened, finite, units)
        fits += [(float(both[i]), float(covariance[i, i])) for i in range(2)]
        p_value = _wald(both - [0.0, 1.0], covariance, units.freedom)
    cautions = ["", slope_problem, slope_problem]
    intervals = [
        units.interval(value, variance, confidence, caution=caution)
        for (value, variance), caution in zip(fits, cautions, strict=True)
    ]
    (large, _), (intercept, _), (slope, _) = fits
    certain = int((~finite).sum())
    return CalibrationLine(
        event.name,
        slope,
        intercept,
        large,
        intervals[2],
        intervals[1],
        intervals[0],
        p_value,
        certain,
    )


def _problem(odds: Floats, happened: Bools) -> str:
    """Why nothing can be fitted; empty where it can."""
    if happened.all() or not happened.any():
        return "the event always or never happened"
    if (np.isneginf(odds) & happened).any() or (np.isposinf(odds) & ~happened).any():
        return "an event with a forecast of 0 happened, or one with a forecast of 1 did not"
    finite = happened[np.isfinite(odds)]
    if finite.all() or not finite.any():
        return "apart from forecasts of 0 and 1, the event always or never happened"
    return ""


def _slope_problem(x: Floats, h: Bools) -> str:
    """Why there is no finite slope; empty where there is one."""
    if x.min() == x.max():
        return "all forecasts are the same, so there is no slope"
    if x[h].min() >= x[~h].max() or x[h].max() <= x[~h].min():
        return "the forecasts separate the outcomes, so the slope is infinite"
    return ""


def _undefined(
    event: BinaryEvent, problem: str, units: SamplingUnits, confidence: float, certain: int
) -> CalibrationLine:
    nothing = Interval.undefined(problem, method=units.method, confidence=confidence)
    return CalibrationLine(
        event.name, math.nan, math.nan, math.nan, nothing, nothing, nothing, math.nan, certain
    )


def _intercept(x: Floats, h: Bools, w: Floats) -> float:
    """The intercept that makes the mean forecast right, with slope 1."""
    reach = float(np.abs(x).max()) + 800.0

    def excess(level: float) -> float:
        return dot(w, expit(level + x)) - float(w[h].sum())

    return float(brentq(excess, -reach, reach, xtol=1e-13, rtol=1e-14))


def _regression(odds: Floats, happened: Bools, finite: Bools, units: SamplingUnits) -> tuple[Floats, Floats]:
    """Intercept and slope by maximum likelihood, and their sandwich covariance."""
    x, h, w = odds[finite], happened[finite], units.share[finite]
    # Forecasts in units of their spread, so that the curvature is the same in all directions.
    centre, scale = float(np.average(x, weights=w)), float(x.std()) or 1.0
    columns = np.stack([np.ones(len(x)), (x - centre) / scale])
    sign = np.where(h, 1.0, -1.0)

    def loss(b: Floats) -> float:
        return -dot(w, log_expit(sign * (b @ columns)))

    def slope_of(b: Floats) -> Floats:
        return np.asarray(columns @ (w * (expit(b @ columns) - h)))

    def curvature(b: Floats) -> Floats:
        z = b @ columns
        return np.asarray((columns * (w * expit(z) * expit(-z))) @ columns.T)

    start = np.array([centre, scale])
    found = minimize(loss, start, jac=slope_of, hess=curvature, method="trust-exact", options={"gtol": 1e-11})
    b = found.x
    residual = h - expit(b @ columns)
    scores = np.zeros((2, len(odds)))
    scores[:, finite] = np.linalg.solve(curvature(b), columns * residual)
    back = np.array([[1.0, -centre / scale], [0.0, 1 / scale]])
    influence = units.influence(list(back @ scores))
    rest = np.sqrt(1 - units.sums(units.share))[:, None]
    covariance = (influence / rest).T @ (influence / rest)
    return back @ b, covariance


def _wald(deviation: Floats, covariance: Floats, freedom: float) -> float:
    """The p-value of two estimates being zero together, by Hotelling's F distribution."""
    if freedom <= 1 or not np.isfinite(covariance).all() or np.linalg.matrix_rank(covariance) < 2:
        return math.nan
    statistic = float(deviation @ np.linalg.solve(covariance, deviation))
    return float(fdtrc(2, freedom - 1, statistic * (freedom - 1) / (2 * freedom)))
