"""The rates of decisions at thresholds that are given or chosen on the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Unpack

import numpy as np

from verax.analyses.bands import States
from verax.analyses.binary import EventRows, ScannedRows, event_names
from verax.analyses.dealing import dealt
from verax.analyses.rates import COMPARED, RATES, Gaps, Rates, rate_interval
from verax.analyses.sampled import sampled_rows
from verax.analyses.table import RowTable
from verax.analyses.units import SamplingUnits
from verax.common.checks import check_count, check_flag
from verax.errors import InputError
from verax.inference.estimates import holm
from verax.inference.intervals import check_confidence, check_seed
from verax.inputs.arrays import Floats
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.scores.metrics import CostsLike
from verax.wings.decide.cells import Counted
from verax.wings.decide.rates.chosen import (
    Aim,
    Chosen,
    Draws,
    check_thresholds,
    resampled,
    states_of,
)
from verax.wings.decide.rates.promised import promised
from verax.wings.decide.rates.result import OperatingPoint, OperatingPoints, Rate, RateDifference


@reads
def operating_points(
    y: object,
    p: object = None,
    *,
    threshold: float | Sequence[float] | str = 0.5,
    costs: CostsLike | None = None,
    ordered: bool = False,
    folds: int = 5,
    confidence: float = 0.95,
    seed: int = 0,
    **read: Unpack[RowOptions],
) -> OperatingPoints:
    """Sensitivity, specificity, predictive values, F1 and likelihood ratios of decisions at a threshold.

    A row is acted on where the probability of the event is at least the threshold. Thresholds are given, or
    chosen on the rows: for a rate to reach (`"sensitivity>=0.9"`), for the best value of a rate (`"youden"`,
    `"f1"`, `"balanced_accuracy"`, `"accuracy"`), or for the lowest cost (`"cost"`).

    A threshold for a sensitivity is a promise: the highest one at which the lower confidence limit of the
    sensitivity is at least the value asked for. On new rows it is reached with the given confidence, which is
    exact for independent rows without weights (order statistics of the events). With weights or groups it
    holds for the effective number of events, and for groups of the kinds that were seen. Too few events
    promise nothing, and fewer than 4 groups with events: the threshold is NaN, and `note` says why. A
    specificity is promised likewise.

    Other chosen thresholds promise nothing. Their rates are those of the threshold that is shown: the rates
    in these rows minus their optimism, from 200 resamples of rows or groups that choose their own thresholds.

    Rates that are shares of rows have mid-P intervals. Youden's J, likelihood ratios and the paired
    differences of models combine these limits (MOVER). With weights or groups they are those of the number of
    independent rows that would give the same variance. A promised rate has the limits of its order statistic.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions that
        `scan` has opened, in place of both `y` and `p`; of more than 100,000 rows, or 8 million
        probabilities, thresholds are chosen on a random sample (`sampled`).
    p : array_like of shape (N, K) or (N,), or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name, for paired differences.
    threshold : float, sequence of floats, or str, default 0.5
        Probabilities from 0 to 1, or what to choose one for: a rate to reach, such as "sensitivity>=0.9",
        "specificity>=0.95", "ppv>=0.5" or "npv>=0.99"; a rate to maximise; or "cost". Sensitivity and
        specificity are promised; "ppv" and "npv" are reached in these rows only.
    costs : array_like of shape (2, 2), optional
        For "cost": what leaving alone and acting (columns) cost without and with the event (rows), such as
        [[0, 1], [5, 0]] where a miss costs five false alarms.
    ordered : bool, default False
        Whether events are thresholds of ordered classes, Y > class, instead of classes. Two classes have one
        event, class 1.
    folds : int, default 5
        Number of folds for `per_fold`, which shows how much a chosen threshold varies; rows of a group are in
        one fold.
    confidence
    seed : int, default 0
        Random seed of the folds and the resamples.
    **read

    Returns
    -------
    OperatingPoints
        The rates with their intervals.

    See Also
    --------
    roc_curve : Sensitivity and specificity at all thresholds.
    net_benefit : What decisions are worth at all thresholds.
    choose_thresholds : Thresholds between ordered classes, by a metric of decisions.

    References
    ----------
    Berry and Armitage (1995), doi:10.2307/2348891; Zou and Donner (2008), doi:10.1002/sim.3095; Korn and
    Graubard (1998), Survey Methodology 24, 193-201; Efron (1983), doi:10.1080/01621459.1983.10477973

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> y = (rng.random(400) < p).astype(int)
    >>> points = vx.operating_points(y, p, threshold=0.3)
    >>> round(points["sensitivity"], 3), round(points["specificity"], 3), round(points["ppv"], 3)
    (0.948, 0.495, 0.675)
    >>> chosen = vx.operating_points(y, p, threshold="sensitivity>=0.9").points[0]
    >>> round(chosen.threshold, 3), f"{chosen.rate('sensitivity').interval:.2f}"
    (0.32, '0.90 to 0.96')
    """
    check_confidence(confidence)
    check_seed(seed)
    check_flag("ordered", ordered)
    if isinstance(threshold, str):
        aim = Aim.of(threshold, costs)
        check_count("folds", folds, least=2)
        handle = open_rows(y, p, ordered=ordered, dense=True, **read)
        return chosen_points(handle, aim, confidence, seed, ordered=ordered, folds=folds)
    if costs is not None:
        raise InputError(
            'are for threshold="cost"', argument="costs", found="the threshold is given", kind="value"
        )
    grid = np.array(check_thresholds(threshold))
    handle = open_rows(y, p, ordered=ordered, dense=True, **read)
    return given_points(handle, grid, confidence, ordered=ordered)


# ---- from states -------------------------------------------------------------------------------


def given_points(
    handle: Handle, grid: Floats, confidence: float, *, ordered: bool = False
) -> OperatingPoints:
    """The rates of every model at given thresholds."""
    counted = Counted(handle, grid, "right", ordered=ordered, stretches=False)
    names, pairs = counted.models, list(combinations(counted.models, 2))
    points, gaps = [], []
    for i, event in enumerate(counted.events):
        known = {name: _Known(counted.states(i, name), event, grid) for name in names}
        points += [known[name].point(name, t, confidence) for name in names for t in range(len(grid))]
        both = {pair: counted.states(i, *pair) for pair in pairs}
        gaps += _differences(both, event, dict.fromkeys(names, grid), confidence)
    result = OperatingPoints(tuple(points), tuple(gaps), counted.rows, confidence)
    return result.with_skipped(counted.skipped)


@dataclass(frozen=True)
class _Known:
    """The states of the rows for one model and event at thresholds that are given, or at a chosen one."""

    states: States
    event: str
    grid: Any
    chosen: Chosen | None = None

    def point(self, model: str, t: int, confidence: float) -> OperatingPoint:
        """The rates at one of the thresholds."""
        states, chosen = self.states, self.chosen
        rates, tail = Rates(states, choice=chosen), (1 - confidence) / 2
        caution = _caution(states) if chosen is None or chosen.exists else chosen.note
        values = tuple(
            _rate(
                name,
                float(rates.value(name)[t]),
                rates.limits(name, tail)[:, t],
                confidence=confidence,
                method=rates.method(name, t)
                if chosen is None
                else chosen.method(name, rates.method(name, t)),
                caution=caution,
            )
            for name in RATES
        )
        acts, happened = states.acts[0], states.happened
        kinds = (acts & happened, acts & ~happened, ~acts & happened, ~acts & ~happened)
        tp, fp, fn, tn = (float((states.share * kind).sum(axis=0)[t]) for kind in kinds)
        threshold = float(self.grid[t])
        shares = (math.nan,) * 4 if math.isnan(threshold) else (tp, fp, fn, tn)
        choice = (None, "") if chosen is None else (chosen.per_fold, chosen.note)
        return OperatingPoint(model, self.event, threshold, values, shares, *choice)

    def _method(self, rates: Rates, name: str, t: int) -> str:
        usual = rates.method(name, t)
        return usual if self.chosen is None else self.chosen.method(name, usual)


def _rate(name: str, value: float, ends: Floats, **how: Any) -> Rate:
    """A rate with its interval."""
    return Rate(name, value, rate_interval(name, value, ends, **how))


def _caution(states: States) -> str:
    """Why intervals may be unreliable: few groups. Those of few rows hold."""
    return states.cells.units.caution if states.cells.units.grouped else ""


def _differences(
    both: dict[tuple[str, str], States],
    event: str,
    at: dict[str, Any],
    confidence: float,
    chosen: Mapping[str, Chosen] | None = None,
) -> list[RateDifference]:
    """The paired differences of all rates at the thresholds of each model."""
    if not both:
        return []
    choices = chosen or {}
    gaps = {(a, b): Gaps(states, (choices.get(a), choices.get(b))) for (a, b), states in both.items()}
    differences = []
    first = next(iter(both.values()))
    tail = (1 - confidence) / 2
    how: Any = {"confidence": confidence, "caution": _caution(first)}
    for name in COMPARED:
        values = {pair: gap.value(name) for pair, gap in gaps.items()}
        limits = {pair: gap.limits(name, tail) for pair, gap in gaps.items()}
        p_values = np.stack([gap.p_values(name) for gap in gaps.values()])
        for t in range(first.n_thresholds):
            for (a, b), p, q in zip(gaps, p_values[:, t].tolist(), holm(p_values[:, t]), strict=True):
                value, ends = float(values[a, b][t]), limits[a, b][:, t]
                interval = rate_interval(name, value, ends, method=gaps[a, b].method(name, t), **how)
                thresholds = float(at[a][t]), float(at[b][t])
                differences.append(
                    RateDifference(a, b, event, thresholds, name, value, interval, p, float(q))
                )
    return differences


# ---- chosen thresholds -------------------------------------------------------------------------


def chosen_points(
    handle: Handle, aim: Aim, confidence: float, seed: int, *, ordered: bool = False, folds: int = 5
) -> OperatingPoints:
    """The rates of every model at a threshold chosen on the rows."""
    sampled, summaries = sampled_rows(handle)
    kept = sampled.by_content()
    tables, decimals = {}, 0
    for i, name in enumerate(handle.models):
        forecasts = kept.forecasts(i, ordered=ordered)
        tables[name], decimals = RowTable.of(forecasts, []).weighty(), forecasts.unity.decimals
    first = next(iter(tables.values()))
    w = np.ones(len(first.y)) if first.weights is None else first.weights / first.weights.max()
    units = SamplingUnits(w / w.sum(), first.groups)
    fold = dealt(len(first.y), first.groups, folds, seed)
    labels = tuple(map(str, range(handle.n_classes)))
    names, pairs = handle.models, list(combinations(handle.models, 2))
    events = {
        name: EventRows(table.y, table.p, units, labels, ordered, decimals).events()
        for name, table in tables.items()
    }
    points, gaps = [], []
    drawn = Draws(w, first.groups, seed)
    for i, event in enumerate(event_names(handle.class_names, ordered=ordered)):
        of_event = {name: events[name][i] for name in names}
        happened = of_event[names[0]].happened
        if aim.promise is None:
            chosen = resampled(aim, of_event, drawn, fold)
        else:
            chosen = {name: promised(aim, choice, units, confidence) for name, choice in of_event.items()}
        at = {name: [choice.threshold] for name, choice in chosen.items()}
        # Where there is no threshold, no row is acted on.
        acts = {name: of_event[name].ranked >= at[name][0] for name in names}
        for name in names:
            states = states_of([acts[name]], happened, units)
            points.append(_Known(states, event, at[name], chosen[name]).point(name, 0, confidence))
        both = {(a, b): states_of([acts[a], acts[b]], happened, units) for a, b in pairs}
        gaps += _differences(both, event, at, confidence, chosen)
    counted = states.cells.units
    rows = ScannedRows(
        kept.n_cases(summaries.n_rows),
        counted.n if counted.grouped else None,
        handle.n_classes,
        ordered,
        counted,
    )
    result = OperatingPoints(tuple(points), tuple(gaps), rows, confidence, aim.text)
    if rows.n_rows < summaries.n_rows:
        result = result.with_sample(rows.n_rows, summaries.n_rows)
    return result.with_skipped(summaries.skipped)
