"""Reliability diagrams of every class, of every threshold, or of the places of top lists."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from verax.analyses.calibration.curves import Reliability, curve_of
from verax.analyses.calibration.events import events, split
from verax.analyses.calibration.lists import reliability_of_lists
from verax.analyses.calibration.liststreams import reliability_of_list_handle
from verax.analyses.calibration.places import refuse_places
from verax.analyses.calibration.streams import reliability_of_handle
from verax.analyses.table import RowTable
from verax.common.checks import check_flag
from verax.inference.intervals import Resampling
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle
from verax.inputs.options import Reading, reads
from verax.inputs.rows import pair
from verax.scores.registry import brier, rps


@reads
def reliability(
    y: object,
    p: object = None,
    *,
    ordered: bool = False,
    places: int | None = None,
    resamples: int = 200,
    seed: int = 0,
    confidence: float = 0.95,
    **read: Unpack[Reading],
) -> Reliability:
    """The reliability curve of every class, or of every threshold of ordered classes.

    A curve is the isotonic regression of the event on its forecast (CORP): the frequencies of the
    event, forced to grow with the forecast. Where it follows the diagonal the forecast is calibrated;
    the band shows what a calibrated forecast with these values would do. Two classes without an order
    have one curve, that of class 1.

    Top lists have a curve for each place, one for any listed class, and one for the whole list: how often
    the outcome was listed, against the sum of the list. The result is a `ListReliability`, whose `claims`
    test the mean of each.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions
        that `scan` has opened, in place of both `y` and `p`. Where these have more than 2^20 distinct
        forecasts, the curves are fitted to bins that are at most a thousandth of the forecast wide.
    p : array_like of shape (N, K) or (N,), or TopLists, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough.
    ordered : bool, default False
        Whether to draw curves of P(Y <= class), which the RPS is made of, instead of P(Y = class).
    places : int, optional
        For top lists: how many of the first places have a curve; 10 if not given.
    resamples : int, default 200
        Number of draws for the consistency bands and the tests of calibration (the `p_value` of a curve's
        components); 0 for none. Outcomes are drawn from the forecasts independently. With groups, the
        deviations of outcomes from forecasts change their signs group by group instead (wild bootstrap), but
        not those of predictions that `scan` has opened, whose bands are then too narrow.
    seed : int, default 0
        Random seed.
    confidence : float, default 0.95
        Confidence level of the bands.
    **read

    Returns
    -------
    Reliability
        The curves by name; a `ListReliability` for top lists.

    See Also
    --------
    decompose : How much of the score is miscalibration.
    calibration_slope : Calibration in two numbers.

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118

    Examples
    --------
    >>> import verax as vx
    >>> diagram = vx.reliability([1, 0, 1, 1, 0, 0], [0.9, 0.6, 0.6, 0.3, 0.3, 0.1], resamples=0)
    >>> curve = diagram["1"]
    >>> curve.forecast.tolist(), curve.frequency.tolist()
    ([0.1, 0.3, 0.6, 0.9], [0.0, 0.5, 0.5, 1.0])
    >>> round(curve.components.miscalibration, 4)
    0.02
    """
    Resampling.checked(confidence, resamples, seed, or_none=True, argument="resamples")
    ordered = check_flag("ordered", ordered)
    if isinstance(y, Handle):
        rule, handle = (rps, y.in_order()) if ordered else (brier, y)
        if handle.lists:
            return reliability_of_list_handle(handle, places, resamples, seed, confidence)
        refuse_places(places)
        return reliability_of_handle(handle, rule, resamples, seed, confidence)
    forecasts = pair(y, p, ordered=ordered, **read)
    if not isinstance(forecasts, Forecasts):
        plan: dict[str, Any] = {"resamples": resamples, "seed": seed, "confidence": confidence}
        return reliability_of_lists(forecasts, places=places, **plan)
    refuse_places(places)
    rows = RowTable.of(forecasts, [])
    how = split(rps if ordered else brier, forecasts.n_classes)
    rng = np.random.default_rng(seed)
    only = None if ordered or forecasts.n_classes > 2 else [1]
    curves = [
        curve_of(event, event.fit(rows.weights), rows, resamples, rng, confidence)
        for event in events(forecasts, rows, how, only)
    ]
    return Reliability(
        tuple(curves), ordered, forecasts.n_rows, forecasts.n_classes, resamples, confidence, seed
    )
