"""`at_horizon`: times to events as outcomes and weights that every function takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.common.checks import check_number
from verax.errors import InputError, Offenders
from verax.inputs.arrays import Floats, kind_of, to_array, to_host
from verax.wings.horizon.followup import NO_COMPETING, Censoring
from verax.wings.horizon.result import OutcomesAtHorizon
from verax.wings.horizon.times import TimeSums


def at_horizon(
    time: object, event: object, *, horizon: float, weights: object | None = None
) -> OutcomesAtHorizon:
    """Whether an event happened by a horizon, with weights for rows that were censored before it.

    Pass `outcomes` and `weights` of the result to functions that judge probabilities of the event by then.
    Rows that were censored before it have weight 0, those with the event at t the weight 1 / G(t-), and those
    that were followed to the horizon T the weight 1 / G(T-), where G is the Kaplan-Meier estimate of the
    probability of being followed beyond a time. At a time with both, events come before censorings.

    The Brier score is then that of Graf, the AUC that of Uno and Blanche for cumulative cases and dynamic
    controls, and the observed share of events one minus the Kaplan-Meier estimate. Net benefit, calibration
    curves and slopes use the same weights.

    Parameters
    ----------
    time : array_like of shape (N,)
        The time of the event, or up to which a row without it was followed; not negative.
    event : array_like of shape (N,)
        1 where the event happened at that time, 0 where the row was censored.
    horizon : float
        The time that the probabilities are about, in the unit of `time`; at most the last time.
    weights : array_like of shape (N,), optional
        Importance weights of the rows, not negative, not all zero. Only their ratios matter.

    Returns
    -------
    OutcomesAtHorizon
        Outcomes and weights, and how many rows were censored.

    Raises
    ------
    InputError
        If times, events, weights or the horizon are invalid. Competing events are refused.

    See Also
    --------
    scan : `scan(source, time=..., horizon=...)` does the same for files and frames.

    Notes
    -----
    Censoring must not depend on the risk: patients who leave because they are ill make the observed risk too
    small. Intervals treat the weights as known, which makes them somewhat too wide.

    References
    ----------
    Graf et al. (1999), doi:10.1002/(SICI)1097-0258(19990915/30)18:17/18<2529::AID-SIM274>3.0.CO;2-5

    Uno et al. (2007), doi:10.1198/016214507000000149

    Blanche et al. (2013), doi:10.1002/sim.5958

    Examples
    --------
    >>> import verax as vx
    >>> time, event, risk = [1, 2, 3, 6, 7], [1, 0, 1, 0, 1], [0.7, 0.5, 0.6, 0.2, 0.4]
    >>> found = vx.at_horizon(time, event, horizon=5)
    >>> card = vx.evaluate(found.outcomes, risk, weights=found.weights)
    >>> round(card["brier"] / 2, 4)
    0.114
    """
    limit = check_number("horizon", horizon, "must be a number above 0", lambda number: number > 0)
    times = _numbers(time, "time")
    _refuse(times, ~(np.isfinite(times) & (times >= 0)), "time", "must hold times, finite and not negative")
    happened = _numbers(event, "event", len(times))
    _refuse(
        happened,
        ~((happened == 0) | (happened == 1)),
        "event",
        "must be 1 where the event happened and 0 where a row was censored",
    )
    given = None if weights is None else _numbers(weights, "weights", len(times))
    if given is not None:
        _refuse(given, ~(np.isfinite(given) & (given >= 0)), "weights", "must be finite and not negative")
    sums = TimeSums.of(times, happened == 1, given, limit)
    censoring = Censoring.of(sums, limit)
    y, weights_then = censoring.judged(times, happened == 1, given)
    numbers = (censoring.n_rows, censoring.n_happened, censoring.n_censored)
    return OutcomesAtHorizon(y.astype(np.int64), weights_then, limit, *numbers)


def _numbers(values: object, argument: str, n_rows: int | None = None) -> Floats:
    """A number per row."""
    raw: Any = to_host(to_array(values, argument)[0])
    if kind_of(raw) not in ("real", "integer", "bool") or raw.ndim != 1 or not len(raw):
        raise InputError(
            "must have one number per row",
            argument=argument,
            kind="type",
            found=f"the shape is {raw.shape} and the type {raw.dtype}",
        )
    if n_rows is not None and len(raw) != n_rows:
        raise InputError(
            f"must have {n_rows} rows, like `time`",
            argument=argument,
            kind="length",
            found=f"it has {len(raw)}",
        )
    return np.asarray(raw, float)


def _refuse(values: Floats, bad: Any, argument: str, requirement: str) -> None:
    """Refuse values, with the first rows."""
    competing = argument == "event" and bool((values[bad] > 1).any())
    remedies = (NO_COMPETING,) if competing else ()
    offenders = Offenders(
        argument, requirement, "label" if argument == "event" else "sign", remedies=remedies
    )
    offenders.add(bad, values, 0)
    if offenders.count:
        raise offenders.error()
