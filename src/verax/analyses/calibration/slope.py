"""Calibration slope and intercept: the logistic regression of an event on the log odds of its forecast."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from scipy.special import expit

from verax.analyses.binary import BinaryEvent, EventRows
from verax.analyses.calibration.logistic import (
    Overlap,
    Regression,
    fit_intercept,
    heading_of_lists,
    line_of,
    log_odds,
    undefined_line,
)
from verax.analyses.calibration.places import ListEvents, check_places, refuse_places
from verax.analyses.calibration.slope_result import CalibrationLine, CalibrationSlopes
from verax.analyses.units import SamplingUnits, dot
from verax.common.checks import check_flag
from verax.inference.intervals import check_confidence
from verax.inputs.arrays import Bools, Floats
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle
from verax.inputs.options import Reading, reads
from verax.inputs.rows import Rows, pair


@reads
def calibration_slope(
    y: object,
    p: object = None,
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
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions that
        `scan` has opened, in place of both `y` and `p`. They are read about four times: for a first fit to a
        histogram, and for each of Newton's steps from there to the fit to the rows.
    p : array_like of shape (N, K) or (N,), or TopLists, optional
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
    check_flag("ordered", ordered)
    if isinstance(y, Handle):
        from verax.analyses.calibration.slope_streams import slopes_of_handle

        if not y.lists:
            refuse_places(places)
        return slopes_of_handle(y, ordered, check_places(places), confidence)
    forecasts = pair(y, p, ordered=ordered, **read)
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
    heading = heading_of_lists(found.n_lists, n_groups, found.said)
    return CalibrationSlopes(lines, heading, "", found.n_lists, n_groups, False, confidence)


def _line(event: BinaryEvent, units: SamplingUnits, confidence: float) -> CalibrationLine:
    odds = log_odds(event)
    overlap = Overlap.of(odds, event.happened)
    if overlap.problem:
        return undefined_line(event.name, overlap, units, confidence)
    finite = np.isfinite(odds)
    x, h, w = odds[finite], event.happened[finite], units.share[finite]
    level = fit_intercept(x, h, w)
    residual = np.zeros(len(odds))
    residual[finite] = h - expit(level + x)
    information = dot(w, expit(level + x) * expit(-level - x))
    spread = float(units.variances(units.influence([residual / information]))[0])
    both, covariance = None, np.zeros((2, 2))
    if not overlap.slope_problem:
        both, covariance = _regression(odds, event.happened, finite, units)
    return line_of(event.name, (level, spread), both, covariance, overlap, units, confidence)


def _regression(odds: Floats, happened: Bools, finite: Bools, units: SamplingUnits) -> tuple[Floats, Floats]:
    """Intercept and slope by maximum likelihood, and their sandwich covariance."""
    x, h, w = odds[finite], happened[finite], units.share[finite]
    found = Regression.of(x, h, w)
    columns = found.columns(x)
    z = found.coefficients @ columns
    curvature = (columns * (w * expit(z) * expit(-z))) @ columns.T
    scores = np.zeros((2, len(odds)))
    scores[:, finite] = np.linalg.solve(curvature, columns * (h - expit(z)))
    influence = units.influence(list(found.back @ scores))
    # A single group says nothing about its own variance.
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = np.sqrt(1 - units.sums(units.share))[:, None]
        covariance = (influence / rest).T @ (influence / rest)
    return found.back @ found.coefficients, covariance
