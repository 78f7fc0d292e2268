"""Calibration slope and intercept: the logistic regression of an event on the log odds of its forecast."""

from __future__ import annotations

from typing import Unpack

from verax.analyses.calibration.list_events import check_places, refuse_places
from verax.analyses.calibration.slope_fit import fit_slopes
from verax.analyses.calibration.slope_result import CalibrationSlopes
from verax.common.checks import check_flag
from verax.inference.intervals import check_confidence
from verax.inputs.memory import open_rows
from verax.inputs.options import Reading, reads


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

    A slope below 1 means overconfident (too extreme), above 1 underconfident. The intercept
    with the slope held at 1 (calibration in the large) says whether they are too low (above 0) or too high
    on the whole. Calibrated forecasts have slope 1 and intercept 0.

    The regression is not penalized. Intervals come from the sandwich variance, with groups from sums over
    groups. Forecasts of 0 or 1 have infinite log odds: where they are right they say nothing about a positive
    slope and are left out; where one is wrong there is no fit.

    Parameters
    ----------
    y
        They are read about four times: for a first fit to bins, and for each of Newton's steps from there to
        the fit to the rows.
    p
    ordered : bool, default False
        Whether to take thresholds of ordered classes, Y > class, instead of each class. Two classes have one
        event, class 1.
    places : int, optional
        For top lists: how many of the first places have a slope; 10 if not given. Lists also have one for any
        listed class, and one for the whole list, whose sum is the forecast that the outcome is listed.
    confidence
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
    handle = open_rows(y, p, ordered=ordered, single=True, **read)
    if not handle.lists:
        refuse_places(places)
    return fit_slopes(handle, ordered, check_places(places), confidence)
